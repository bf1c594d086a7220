/** A STOMP connection's dependencies: rules and stores it reaches, and its reports. */

import type { Language } from '../../src/delivery/texts.ts'
import type { CallRequest } from '../../src/domain/calls/call-command.ts'
import type { Restriction } from '../../src/domain/devices/restriction.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import type { Badge } from '../../src/domain/messages/notice.ts'
import type { SignalError } from '../../src/errors.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import type { DeviceInbox } from '../../src/store/messages/device-inbox.ts'
import type { DevTopicMessage, PresenceMessage, TopicSubscriber } from '../messages.ts'
import type { EventFrames } from './event-frames.ts'

/** The inbox of a connection's device. */
export type ConnectionInbox = Pick<
  DeviceInbox,
  'head' | 'after' | 'isSettling' | 'settleSoon' | 'settleNow' | 'failedSettles' | 'change' | 'markDelivered'
>

/** The owner of a credential. */
export interface TokenOwner {
  /** The sign-in session's id in the form of `sessionName`. */
  readonly sessionName: string
  readonly userId: UserId
  readonly deviceId?: DeviceId
}

/** A device that is signed in. */
export interface ConnectedDevice {
  readonly userId: UserId
  readonly deviceId: DeviceId
}

/** Calls as far as STOMP reaches them. Rejections are `SignalError`s. */
export interface StompCalls {
  /** Resolves when the command has been carried out and what it changed is durable. */
  command(callId: CallId, request: CallRequest): Promise<unknown>
  /**
   * Subscribes to the call's live events: its room tells `subscriber` `topic-joined` with the tag, then each event. The
   * topic's name is `call.` and the id. Rejects when the device has no part in the call.
   */
  subscribe(callId: string, by: ConnectedDevice, subscriber: TopicSubscriber, tag: number): Promise<unknown>
  unsubscribe(callId: string, connectionId: string): void
}

export interface StompConnectionDeps {
  /** `name/version`, of printable ASCII. */
  readonly server: string
  readonly hasTestTopics: boolean
  readonly areRatesLimited: boolean
  /** Whether the server is stopping: a connection that opens now is asked to come back. */
  readonly isDraining: () => boolean
  /**
   * Milliseconds from an arbitrary start, never going back. Read for every frame that is sent; one that moves by tenths
   * of a second is exact enough.
   */
  readonly monotonicMs: () => number
  /** 22 base64url characters, of no other event. */
  readonly newEventId: () => string
  /**
   * Whose an `Authorization` header of the form `Bearer …` is; empty for none. Throws `TOKEN_MISSING`,
   * `TOKEN_INVALID`, `TOKEN_EXPIRED` or `SESSION_REVOKED`.
   */
  readonly authenticate: (authorization: string) => TokenOwner
  /** Why the device may do little at this moment; undefined for one that may do all. */
  readonly restrictionOf: (device: ConnectedDevice) => Restriction | undefined
  /** Counts CONNECTs by network and session; absent where no rate counts. Returns the milliseconds to wait, 0 for none. */
  readonly admission?:
    | {
        connected(network: string, session: string): number
        failedConnect(network: string, authorization: string): number
      }
    | undefined
  readonly inbox: ConnectionInbox
  /** The user's badge as it is now. */
  readonly badgeOf: (userId: UserId) => Badge
  readonly frames: EventFrames
  readonly calls: StompCalls
  /** The presence of a user, by decimal id. */
  readonly users: (userId: string) => Ref<PresenceMessage>
  /** A topic of the development surface, by name. */
  readonly topics: (name: string) => Ref<DevTopicMessage>
  /** Status and problem body (contract 1.5) of an error; `requestId` is the connection's id. */
  readonly problemOf: (
    error: SignalError,
    requestId: string,
    language: Language | undefined,
  ) => { status: number; body: string }
  /** The best language for the `accept-language` of a CONNECT. */
  readonly languageOf: (acceptLanguage: string | undefined) => Language
  /** Told of a fault of ours that an answer hides from the peer, with the request id that the peer got. */
  readonly onFault: (error: unknown, requestId: string) => void
  /** Told why each connection came to its end, for the metrics: a word of few. */
  readonly onEnded: (reason: string) => void
}

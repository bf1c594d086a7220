/** What a connection's session is told, and what it needs of the world around it. */

import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import type { Badge, Notice } from '../../src/domain/notice.ts'
import type { SignalError } from '../../src/errors.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import type { SaidCallCommand } from '../../src/schema/call.ts'
import type { Broadcast } from '../../src/stomp/broadcast.ts'
import type { CallCommandName } from '../../src/stomp/destination.ts'
import type { DeviceInbox } from '../../src/store/device-inbox.ts'
import type { Connection } from '../../src/transport/connection.ts'
import type { DevTopicMessage } from '../dev-topic.ts'
import type { UserSessionMessage } from '../user-session.ts'
import type { Unread } from './unread.ts'

/** The inbox of a connection's device. */
export type SessionInbox = Pick<
  DeviceInbox,
  'head' | 'after' | 'isSettling' | 'settleSoon' | 'settleNow' | 'change' | 'markDelivered'
>

export type StompSessionMessage =
  | { readonly kind: 'open'; readonly connection: Connection }
  | Unread
  | { readonly kind: 'drained' | 'closed' }
  /** A message to this session was refused, because its mailbox is full. */
  | { readonly kind: 'overrun' }
  /** From here on the connection is told of news and badges: it looks once for what came before. */
  | { readonly kind: 'attached' }
  /** The device's inbox has something new. */
  | { readonly kind: 'news' }
  /** The user's badge may be another. */
  | { readonly kind: 'badge' }
  | { readonly kind: 'dismissed'; readonly why: Dismissal }
  | { readonly kind: 'timer'; readonly timer: SessionTimer }
  | TopicMessage
  | { readonly kind: 'topic-refused'; readonly tag: number; readonly error: unknown }

/** What a live topic tells those who are subscribed to it. */
export type TopicMessage =
  /** From here on; `tag` is what the session asked with. */
  | { readonly kind: 'topic-joined'; readonly tag: number }
  | { readonly kind: 'topic-message'; readonly topic: string; readonly broadcast: Broadcast }

/** Why a connection is ended that did nothing wrong. */
export type Dismissal =
  /** By a newer connection of its device. */
  'replaced' | 'too_many_connections' | 'session_revoked' | 'device_removed' | 'draining'

export type SessionTimer = 'connect' | 'life' | 'lag' | 'settle' | 'mark'

/** Who a credential belongs to. */
export interface SessionCaller {
  /** As `sessionName` has it. */
  readonly sessionName: string
  readonly userId: UserId
  readonly deviceId?: DeviceId
}

/** A device that is signed in. */
export interface SessionDevice {
  readonly userId: UserId
  readonly deviceId: DeviceId
}

/** Calls as far as STOMP reaches them. What rejects does so with a `SignalError`. */
export interface SessionCalls {
  /** What a SEND to `/app/call/{callId}/{command}` says. Throws `MALFORMED_JSON` or `VALIDATION_FAILED`. */
  parse(command: CallCommandName, body: Uint8Array): SaidCallCommand
  /** Resolves when the command has been carried out and what it changed is durable. */
  command(callId: string, by: SessionDevice, said: SaidCallCommand): Promise<unknown>
  /**
   * Has the call's room tell `session` of its live events, once it has told it `topic-joined` with the tag. The topic's
   * name is `call.` and the id. Rejects when the device has no business there.
   */
  subscribe(callId: string, by: SessionDevice, session: Ref<TopicMessage>, tag: number): Promise<unknown>
  unsubscribe(callId: string, session: Ref<TopicMessage>): void
}

export interface StompSessionWorld {
  /** `name/version`, of printable ASCII. */
  readonly server: string
  readonly isDevelopment: boolean
  readonly areRatesLimited: boolean
  /** Whether the server is stopping: a connection that opens now is told to come back. */
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
  readonly authenticate: (authorization: string) => SessionCaller
  /** Counts a CONNECT whose credentials are bad; returns 0, or how many milliseconds its network has to wait. */
  readonly noteFailedConnect: (network: string) => number
  readonly inbox: SessionInbox
  /** The user's badge as it is now. */
  readonly badgeOf: (userId: UserId) => Badge
  /** The JSON of a notice as the device reads it (contract 7.3), with the badge if it carries it. */
  readonly eventBody: (notice: Notice, reader: SessionDevice, badge: Badge | undefined) => string
  readonly calls: SessionCalls
  /** The user session of a user, by decimal id. */
  readonly users: (userId: string) => Ref<UserSessionMessage>
  /** A topic of the development surface, by name. */
  readonly topics: (name: string) => Ref<DevTopicMessage>
  /** Status and problem body (contract 1.5) of an error; `requestId` is the connection's id. */
  readonly problemOf: (error: SignalError, requestId: string) => { status: number; body: string }
  /** Told of a fault of ours that an answer hides from the peer, with the request id that the peer got. */
  readonly onFault: (error: unknown, requestId: string) => void
  /** Told why each connection came to its end, for the metrics: a word of few. */
  readonly onEnded: (reason: string) => void
}

/**
 * Everything that actors say to one another, one union per kind of actor, told apart by `kind`.
 *
 * A message is plain data: ids, values, addresses (`Ref`) and tags that correlate an answer with its question. Three
 * members are more than that, each on purpose:
 *
 * - `reply`: the runtime makes a `Reply` for each `ask`. It refuses by itself when the deadline passes or the actor fails,
 *   which an address and a tag could not.
 * - `connection` and `unread` of `open`: the two halves of a socket, handed to the actor that owns them from then on.
 * - `broadcast`: one object for all receivers, so that its octets are encoded once.
 */

import type { DeliveryOutcome, Skipped } from '../src/delivery/outcome.ts'
import type { WebhookOutcome } from '../src/delivery/webhook.ts'
import type { CallDeviceRef, RoomEntry } from '../src/domain/calls/call.ts'
import type {
  CallAnswer,
  CallReply,
  CallRequest,
  OperatorRequest,
  SentKeyMap,
} from '../src/domain/calls/call-command.ts'
import type { CallId, DeviceId, UserId } from '../src/domain/ids.ts'
import type { Alongside, Registration } from '../src/keyserver/registration.ts'
import type { LogHead } from '../src/log/checkpoint.ts'
import type { GatewayFailure } from '../src/media/gateway.ts'
import type { MediaSettings } from '../src/media/media-settings.ts'
import type { Ref, Reply } from '../src/runtime/actor.ts'
import type { Broadcast } from '../src/stomp/broadcast.ts'
import type { Headers } from '../src/stomp/frame.ts'
import type { SentItems, SettledOffsets } from '../src/store/messages/inbox-writes.ts'
import type { WaitingMessage } from '../src/store/messages/outbox-queue.ts'
import type { AuditRow } from '../src/store/operators/operator-tables.ts'
import type { TakenWebhook } from '../src/store/operators/webhook-queue.ts'
import type { Died } from '../src/store/operators/webhook-store.ts'
import type { IdempotentRequest } from '../src/store/tables/idempotency-store.ts'
import type { Connection } from '../src/transport/connection.ts'
import type { ShownRequest, TlsFiles } from '../src/transport/http-deps.ts'
import type { HttpAnswer, HttpRequest } from '../src/transport/route.ts'
import type { Unread } from './stomp-connection/unread.ts'

// Call room: one per live call.

export type CallRoomMessage =
  | CallCommandMessage
  | CallOperatorMessage
  /** The timer's time has come. */
  | { readonly kind: 'deadline' }
  /** Some callee may have been out of reach for long enough to say so. */
  | { readonly kind: 'unreached-due' }
  /** A push that rings at the user was taken. */
  | { readonly kind: 'ring-taken'; readonly userId: UserId }
  /** The user blocked the inviter, which declines the invitation. */
  | { readonly kind: 'inviter-blocked'; readonly userId: UserId; readonly inviterId: UserId }
  /** The user deleted the account, which declines every invitation of theirs. */
  | { readonly kind: 'account-ended'; readonly userId: UserId }
  /** The operator suspended the user, whose calls end for them. */
  | { readonly kind: 'account-suspended'; readonly userId: UserId }
  /** The call's room at the media gateway lets these devices in. */
  | {
      readonly kind: 'media-admitted'
      readonly roomId: number
      readonly gateway: string
      readonly devices: readonly CallDeviceRef[]
    }
  /** All that the device sends in that room, the newest first. */
  | {
      readonly kind: 'media-feeds'
      readonly roomId: number
      readonly gateway: string
      readonly device: CallDeviceRef
      readonly feedIds: readonly number[]
    }
  /** The gateway lost the room, which is made again. */
  | { readonly kind: 'media-lost' }
  /** Replies that wait for the gateway have waited long enough. */
  | { readonly kind: 'media-late' }
  /** The media room does not know who is in the call. */
  | { readonly kind: 'tell-media' }
  | CallSubscribeMessage
  | UnsubscribeMessage
  | TellMoreMessage

export interface CallCommandMessage {
  readonly kind: 'command'
  readonly command: CallRequest
  /** The key under which the store keeps the reply for a repeated request. */
  readonly idempotent?: IdempotentRequest | undefined
  /** Absent when the sender reports a fact: a device came, went or was removed. */
  readonly reply?: Reply<CallReply>
}

/** The operator ends the call, or takes a user out of it. */
export interface CallOperatorMessage {
  readonly kind: 'operator'
  readonly command: OperatorRequest
  /** Written with what the command changes. */
  readonly audit: AuditRow
  /** As of `command`. */
  readonly idempotent?: IdempotentRequest | undefined
  readonly reply: Reply<CallReply>
}

/** A device wants the call's live events. The room tells `subscriber` `topic-joined` with the tag, then replies. */
export interface CallSubscribeMessage {
  readonly kind: 'subscribe'
  readonly by: CallDeviceRef
  readonly subscriber: TopicSubscriber
  readonly tag: number
  readonly reply: Reply<undefined>
}

// Media room: one per live call, where there is a media gateway.

export type MediaRoomMessage =
  /** The devices that are in the call now; none once it has ended. */
  | {
      readonly kind: 'wanted'
      readonly roomId: number
      /** The one that had the room last. */
      readonly gateway: string | undefined
      readonly entries: readonly RoomEntry[]
      readonly isOver: boolean
    }
  /** The gateway did what it was asked for, or did not. */
  | { readonly kind: 'stepped'; readonly failure: GatewayFailure | undefined }
  /** The gateway had no such room when it was asked, or began anew. */
  | { readonly kind: 'missing'; readonly gateway: string; readonly askedAtMs: number }
  /** Another gateway may take the room of one that is lost. */
  | { readonly kind: 'homeless'; readonly gateway: string }
  /** Tokens of those in the room end soon. */
  | { readonly kind: 'renewal-due' }
  /** The devices had time to leave the room that the call had before. */
  | { readonly kind: 'room-before-due' }
  | { readonly kind: 'retry' }

// Live topics: what a call room or a topic of the development surface says to its subscribers.

/** A STOMP connection as its topics know it. */
export type TopicSubscriber = Ref<TopicMessage>

export type TopicMessage =
  /** Answers the subscription with this tag; every later broadcast is for it. */
  | { readonly kind: 'topic-joined'; readonly tag: number }
  | { readonly kind: 'topic-message'; readonly topic: string; readonly broadcast: Broadcast }
  | OverrunMessage

/** Takes back one subscription of the connection. */
export interface UnsubscribeMessage {
  readonly kind: 'unsubscribe'
  readonly connectionId: string
}

/** A topic to itself: subscribers remain who have not heard everything. */
export interface TellMoreMessage {
  readonly kind: 'tell-more'
}

// Topic of the development surface: one per name.

export type DevTopicMessage =
  | { readonly kind: 'subscribe'; readonly subscriber: TopicSubscriber; readonly tag: number }
  | UnsubscribeMessage
  /** Headers and body as they go on to the subscribers. */
  | { readonly kind: 'publish'; readonly headers: Headers; readonly body: Uint8Array }
  | TellMoreMessage

// STOMP connection: one per socket.

export type StompConnectionMessage =
  | { readonly kind: 'open'; readonly connection: Connection; readonly unread: Unread }
  /** `unread` has octets again. */
  | { readonly kind: 'bytes' }
  | { readonly kind: 'drained' | 'closed' }
  /** Presence passes on news and badges after this; the connection looks once for earlier ones. */
  | { readonly kind: 'attached' }
  /** The device's inbox has news. */
  | { readonly kind: 'news' }
  /** The user's badge may have changed. */
  | { readonly kind: 'badge' }
  | { readonly kind: 'dismissed'; readonly why: Dismissal }
  /** In a front that has too many: the client connects again, unless it follows a call here. */
  | { readonly kind: 'moved' }
  /** In a front: live topics tell nothing more, so a client that has subscribed to one has to come back. */
  | { readonly kind: 'writer-lost' }
  | { readonly kind: 'timer'; readonly timer: ConnectionTimer }
  | TopicMessage
  /** The call room refused the subscription with this tag. */
  | { readonly kind: 'topic-refused'; readonly tag: number; readonly error: unknown }

/** The connection's mailbox was full, so it missed a message. */
export interface OverrunMessage {
  readonly kind: 'overrun'
}

/** Why the server ends a connection that did nothing wrong. `replaced`: the device opened a newer one. */
export type Dismissal =
  | 'replaced'
  | 'too_many_connections'
  | 'session_revoked'
  | 'device_removed'
  | 'restriction_changed'
  | 'draining'
  | 'moved'

export type ConnectionTimer = 'connect' | 'life' | 'lag' | 'settle' | 'mark'

// Presence: one per user with a connection.

export type PresenceMessage =
  /** A device has signed in. All travel in the control lane. */
  | { readonly kind: 'attached'; readonly connection: LiveConnection }
  | { readonly kind: 'detached'; readonly connectionId: string }
  | { readonly kind: 'revoked'; readonly revoked: Revoked }

/** A session that has ended, a device that was removed together with its sessions, or one that may do more or less now. */
export type Revoked =
  | { readonly kind: 'session'; readonly sessionId: Uint8Array }
  | { readonly kind: 'device' | 'restriction'; readonly deviceId: DeviceId }

export interface LiveConnection {
  readonly deviceId: DeviceId
  /** The sign-in session's id in the form of `sessionName`. */
  readonly sessionName: string
  /** Whether its process let it in as one of a device that may do little. */
  readonly isRestricted: boolean
  /** Its id is the connection's. */
  readonly ref: Ref<StompConnectionMessage>
  /** Its process finds news in the changes that it follows, so the writer tells it of none. */
  readonly isFollower?: boolean
}

// Outbox: one per lane.

export type OutboxCommand =
  /** The lane has a new message, or one whose time has come. */
  | { readonly kind: 'wake' }
  | {
      readonly kind: 'outcome'
      readonly waiting: WaitingMessage
      readonly outcome: DeliveryOutcome | Skipped
    }
  | { readonly kind: 'written' }
  | { readonly kind: 'not-written'; readonly error: unknown }
  /** A write has failed, and is to be tried again. */
  | { readonly kind: 'write-again' }
  /** It is time for another try of things of calls. */
  | { readonly kind: 'again'; readonly slot: number }

// Webhooks: one actor for each endpoint.

export type WebhookCommand =
  /** An event is due, or the endpoint has changed. */
  | { readonly kind: 'wake' }
  | { readonly kind: 'outcome'; readonly taken: TakenWebhook; readonly outcome: WebhookOutcome }
  /** The first so many outcomes are durable; these events died by them. */
  | { readonly kind: 'written'; readonly count: number; readonly died: readonly Died[] }
  | { readonly kind: 'not-written'; readonly error: unknown }
  /** A write has failed, and is to be tried again. */
  | { readonly kind: 'write-again' }
  /** Some events of the deleted endpoint are removed. */
  | { readonly kind: 'purged'; readonly isEmpty: boolean }

// Front desk: at the writer, one for each front.

export type FrontDeskMessage =
  /** A request that only the writer answers; `route` has its method and canonical path. */
  | {
      readonly kind: 'request'
      readonly route: string
      readonly request: ForwardedRequest
      readonly reply: Reply<ForwardedAnswer>
    }
  /** A command to a call that the front has checked. */
  | {
      readonly kind: 'command'
      readonly callId: CallId
      readonly command: SentCommand
      readonly idempotent?: IdempotentRequest | undefined
      readonly reply: Reply<CallAnswer>
    }
  | StreamMessage
  /** From the writer itself: the front, or the link to it, is gone. */
  | { readonly kind: 'front-gone' }
  /** Devices are done with messages, or have sent some to themselves; see `InboxWrites`. */
  | {
      readonly kind: 'settle'
      readonly settled: readonly SettledOffsets[]
      readonly sent?: SentItems | undefined
      readonly reply: Reply<undefined>
    }
  /** A registration that came to another node. */
  | {
      readonly kind: 'register'
      readonly userId: bigint
      readonly deviceId: bigint
      readonly publicKey: string
      readonly reply: Reply<Registration>
    }
  | {
      readonly kind: 'mark-delivered'
      readonly userId: UserId
      readonly deviceId: DeviceId
      readonly delivered: Readonly<Record<string, number>>
      readonly reply: Reply<undefined>
    }
  /** Replies when the front shows every message given to and acknowledged by connections at all fronts so far. */
  | { readonly kind: 'catch-up'; readonly reply: Reply<undefined> }
  /** In development: the front has answered these. */
  | { readonly kind: 'served'; readonly requests: readonly ShownRequest[] }

/** A front's messages about an answer that is made part by part. */
export type StreamMessage =
  /** Replies with the next part; undefined when there is no more. */
  | { readonly kind: 'next-part'; readonly stream: string; readonly reply: Reply<Uint8Array | undefined> }
  /** No more parts are wanted. */
  | { readonly kind: 'stop-stream'; readonly stream: string }

/** A map of keys is JSON: each name of a member that is new costs both ends of a link some work and memory. */
export type SentCommand = AsSent<CallRequest>

type AsSent<Request> = Request extends { readonly encryptedAESKeys: SentKeyMap }
  ? Omit<Request, 'encryptedAESKeys'> & { readonly encryptedAESKeys: string }
  : Request

/** An `HttpRequest` as data. */
export type ForwardedRequest = Omit<HttpRequest, 'header'> & {
  /** Those that its route names and that were sent. */
  readonly headers: Readonly<Record<string, string>>
}

/** An `HttpAnswer` as data. Where it is made part by part its body is empty, and the front reads `stream`. */
export type ForwardedAnswer = HttpAnswer & { readonly body: string | Uint8Array; readonly stream?: string }

// Front: one in each front process.

export type FrontMessage =
  /** Replies with the process's figures in the text form of Prometheus. */
  | { readonly kind: 'metrics'; readonly reply: Reply<string> }
  /** Replies once new connections get the certificate of these files (PEM), which have been tried. */
  | { readonly kind: 'renew-certificate'; readonly files: TlsFiles; readonly reply: Reply<'renewed'> }
  /** Replies once tokens are made for these media gateways. */
  | { readonly kind: 'renew-media'; readonly settings: MediaSettings; readonly reply: Reply<'renewed'> }
  /** Lets go so many connections, so that their clients come to other fronts too. */
  | { readonly kind: 'shed'; readonly sockets: number }
  | { readonly kind: 'stop' }

// Log appender: exactly one.

export type LogAppenderMessage =
  | LogAppendMessage
  | { readonly kind: 'integrate' }
  /** Replies with the size of the published tree once the log agrees with its signed checkpoint. */
  | { readonly kind: 'open'; readonly reply: Reply<number> }
  /** The quorum of witnesses has cosigned this head, which is durable with its cosignatures. */
  | { readonly kind: 'cosigned'; readonly head: LogHead }
  /** The quorum has been missing for so long that callers are refused. */
  | { readonly kind: 'quorum-lost' }

/** One registration and its VRF hash. Replies with the leaf index. */
export interface LogAppendMessage {
  readonly kind: 'append'
  readonly userId: bigint
  readonly deviceId: bigint
  readonly vrfHash: Uint8Array
  readonly publicKey: string
  /** The one function in a message: a change can't be sent as data. */
  readonly alongside?: Alongside | undefined
  readonly reply: Reply<number>
}

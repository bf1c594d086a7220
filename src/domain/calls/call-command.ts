/** Commands to a call, the facts that decide them, and the decisions. */

import type { ErrorCode, FieldError, ProblemMembers } from '../../errors.ts'
import type { KeyAlgorithm } from '../devices/public-key.ts'
import type { CallId, DeviceId, UserId } from '../ids.ts'
import type { WebhookEvent } from '../operators/webhook-event.ts'
import type { Call, CallDeviceRef, KnownInviter } from './call.ts'
import type { HistoryEffect } from './call-history.ts'
import type { CallTopicEvent, DeviceEffect, SentKeysReason } from './call-notice.ts'
import type { CallRecord } from './call-view.ts'

/** A map of keys as it came: `<userId>_<deviceId>` to base64. */
export type SentKeyMap = Readonly<Record<string, string>>

/** Each has its time. A device's command carries `by`; the session vouches for it. */
export type CallCommand =
  | {
      readonly kind: 'start'
      readonly by: CallDeviceRef
      readonly nowMs: number
      readonly callId: CallId
      readonly roomId?: number | undefined
      readonly calleeIds: readonly UserId[]
      readonly encryptedAESKeys: SentKeyMap
      /** Base64 of the set that the key is sealed for; see `key-members.ts`. */
      readonly keyMembers?: string | undefined
      readonly isVideo: boolean
    }
  | {
      readonly kind: 'invite'
      readonly by: CallDeviceRef
      readonly nowMs: number
      readonly calleeIds: readonly UserId[]
      readonly encryptedAESKeys: SentKeyMap
      /** Makes the key a new epoch's, for all joined devices and the callees. */
      readonly keyMembers?: string | undefined
      readonly isVideo?: boolean | undefined
      readonly roomId?: number | undefined
      /** The epoch of the sealed key; undefined where the client does not say. */
      readonly epoch?: number | undefined
    }
  | { readonly kind: 'join' | 'rejoin'; readonly by: CallDeviceRef; readonly nowMs: number }
  | {
      readonly kind: 'request-rejoin'
      readonly by: CallDeviceRef
      readonly nowMs: number
      /** Base64, for the answers to name. */
      readonly nonce?: string | undefined
    }
  | { readonly kind: 'leave' | 'end'; readonly by: CallDeviceRef; readonly nowMs: number }
  | {
      readonly kind: 'ringing'
      readonly by: CallDeviceRef
      readonly nowMs: number
      /** Google lowered the priority of the push that rang. */
      readonly wasLowered?: boolean | undefined
    }
  | {
      readonly kind: 'decline'
      readonly by: CallDeviceRef
      readonly nowMs: number
      readonly reason?: DeclineReason | undefined
    }
  | { readonly kind: 'remove'; readonly by: CallDeviceRef; readonly nowMs: number; readonly userId: UserId }
  | {
      readonly kind: 'accept-rejoin'
      readonly by: CallDeviceRef
      readonly nowMs: number
      readonly requesterUserId: UserId
      readonly requesterDeviceId: DeviceId
      readonly encryptedAESKey: string
      /** As of `invite`. */
      readonly epoch?: number | undefined
    }
  | {
      readonly kind: 'keys'
      readonly by: CallDeviceRef
      readonly nowMs: number
      readonly epoch: number
      readonly reason: SentKeysReason
      readonly encryptedAESKeys: SentKeyMap
      /** As of `start`. */
      readonly keyMembers?: string | undefined
      /** Names of joined devices that get no key. */
      readonly without?: readonly string[] | undefined
    }
  /**
   * The device has a socket; has none any more; sent some other request; was signed out; is no device of the user's any
   * more.
   */
  | {
      readonly kind:
        | 'device-online'
        | 'device-offline'
        | 'device-seen'
        | 'device-signed-out'
        | 'device-removed'
      readonly by: CallDeviceRef
      readonly nowMs: number
    }
  | OperatorCommand
  | CallOccurrence

/** The operator's, for the whole call: no device and no user of it asks for them. */
export type OperatorCommand =
  | { readonly kind: 'operator-end'; readonly nowMs: number }
  | { readonly kind: 'operator-remove'; readonly nowMs: number; readonly userId: UserId }

export type StartCommand = Extract<CallCommand, { kind: 'start' }>

/** Events that no device asks for. */
export type CallOccurrence =
  /** Time has come to what `nextDeadlineMs` said; early or late ones do no harm. */
  | { readonly kind: 'deadline'; readonly nowMs: number }
  /** The user has blocked another user, perhaps the inviter whose invitation rings. */
  | {
      readonly kind: 'inviter-blocked'
      readonly nowMs: number
      readonly userId: UserId
      readonly inviterId: UserId
    }
  /** The gateway's room lets these in; `answered` are those that read it in a reply. */
  | {
      readonly kind: 'media-admitted'
      readonly nowMs: number
      readonly gateway: string
      readonly devices: readonly CallDeviceRef[]
      readonly answered: readonly CallDeviceRef[]
    }
  /** All that the device sends in the gateway's room, the newest first. */
  | {
      readonly kind: 'media-feeds'
      readonly nowMs: number
      readonly gateway: string
      readonly device: CallDeviceRef
      readonly feedIds: readonly number[]
    }
  /** The gateway has the call's room no more. */
  | { readonly kind: 'media-lost'; readonly nowMs: number }
  /** The user is deleting the account, and can't answer an invitation. */
  | { readonly kind: 'account-ended'; readonly nowMs: number; readonly userId: UserId }
  /** The operator suspended the user. */
  | { readonly kind: 'account-suspended'; readonly nowMs: number; readonly userId: UserId }

/** A device's command, or news of its presence. */
export type DeviceCommand = Exclude<CallCommand, CallOccurrence | OperatorCommand>

/** A command as it is asked for: the room that decides on it says when it is. */
export type CallRequest = Untimed<DeviceCommand>

export type OperatorRequest = Untimed<OperatorCommand>

type Untimed<Command> = Command extends CallCommand ? Omit<Command, 'nowMs'> : never

export interface CallActor extends CallDeviceRef {
  /** The log's hash of the device's key. */
  readonly publicKeyHash: string
  readonly keyAlgorithm: KeyAlgorithm
}

export type DeclineReason = 'declined' | 'busy' | 'timeout'

/** Facts outside the call. `start`, `invite`, `remove`, `join`, `request-rejoin` and `rejoin` need some; see `NO_FACTS`. */
export interface CallFacts {
  /** With `start`, `join`, `request-rejoin` and `rejoin`: the acting device; undefined after its removal, or once its user is suspended. */
  readonly actor: CallActor | undefined
  /** The acting user's name, with `start`. */
  readonly displayName: string
  /** One for each of `calleeIds` that is an account; a missing one may not be called. */
  readonly callees: readonly CalleeFacts[]
  /** The acting user's active devices. */
  readonly ownDevices: readonly DeviceId[]
  /** Another live call: with `start` any that the user has joined, with `join` and `rejoin` one that the device has. */
  readonly otherCallId: CallId | undefined
  /** With `start`: live calls that the user and a callee have a part in, as they were last decided. */
  readonly callsBetween: readonly Call[]
  /** Whether the room that was named belongs to another live call. */
  readonly isRoomInUse: boolean
  /** With `start`, `invite` and removals: a room that no call has. */
  readonly freeRoomId: number
}

export interface CalleeFacts {
  readonly userId: UserId
  readonly displayName: string
  /** How the callee knows the caller. */
  readonly caller: KnownInviter
  /** A contact, a member of a circle of the caller's, or a user who takes calls from strangers; never a user whom the caller has blocked. */
  readonly mayBeCalled: boolean
  /** The callee has blocked the caller, who must not find out. */
  readonly isWithheld: boolean
  /** No device of the callee rings, as if none could be reached. */
  readonly isSuspended?: boolean
  /** The devices that the caller has to seal the key for: the active ones; with a block those of when it began. */
  readonly deviceIds: readonly DeviceId[]
  /** The newest device list. `deviceIds` are then its devices that are still active; a key for another is not needed. */
  readonly deviceList?: { readonly seq: number; readonly deviceIds: readonly DeviceId[] } | undefined
}

export const NO_FACTS: CallFacts = {
  actor: undefined,
  displayName: '',
  callees: [],
  ownDevices: [],
  otherCallId: undefined,
  callsBetween: [],
  isRoomInUse: false,
  freeRoomId: 0,
}

export type CallDecision = CallAccepted | CallRefused

export interface CallAccepted extends ChangedCall {
  readonly kind: 'accepted'
  readonly reply: CallReply
  /** Another call, which ends in the same change. */
  readonly ended?: ChangedCall | undefined
}

export interface ChangedCall {
  /** The very call that was handed in when nothing changed. */
  readonly call: Call
  /** In the order in which they are to be kept; none when the command had been carried out before. */
  readonly effects: readonly CallEffect[]
}

export interface CallRefused {
  readonly kind: 'refused'
  readonly code: ErrorCode
  /** A sentence for developers. */
  readonly detail: string
  readonly members?: ProblemMembers
  readonly errors?: readonly FieldError[]
  /** A call that the refusal names: it is durable before a client hears of it. */
  readonly awaits?: CallId
}

/** A part of the rules has its say: the call as a command leaves it, before it is settled, and what devices are sent. */
export type CallOutcome = CallChange | CallRefused

export interface CallChange {
  readonly kind: 'changed'
  /** The very call that was handed in when nothing happens. */
  readonly call: Call
  readonly told?: readonly DeviceEffect[] | undefined
  /** Another call, which ends in the same change. */
  readonly ended?: ChangedCall | undefined
}

export type CallEffect =
  | DeviceEffect
  /** The device's waiting invitation to this call is taken out and nothing put in its place: it answered itself. */
  | { readonly kind: 'withdraw'; readonly userId: UserId; readonly deviceId: DeviceId }
  /** To the call's present subscribers. */
  | { readonly kind: 'topic'; readonly event: CallTopicEvent }
  | HistoryEffect
  /** To the operator's services. */
  | { readonly kind: 'webhook'; readonly event: WebhookEvent }

export type CallReply =
  | { readonly kind: 'done' }
  | { readonly kind: 'record'; readonly record: CallRecord }
  /** To request-rejoin: how many devices were asked, and for how many seconds their answers count. */
  | { readonly kind: 'asked'; readonly asked: number; readonly expiresInS: number }

/** The room's, or the text of a reply that is kept for a repeated request. */
export type CallAnswer = CallReply | { readonly kind: 'kept'; readonly text: string }

export function refused(
  code: ErrorCode,
  detail: string,
  more: { readonly members?: ProblemMembers; readonly errors?: readonly FieldError[] } = {},
): CallRefused {
  return { kind: 'refused', code, detail, ...more }
}

export function alreadyInCall(otherCallId: CallId): CallRefused {
  const members = { callId: String(otherCallId) }
  return refused('ALREADY_IN_CALL', `you are in call ${otherCallId}: leave it first`, { members })
}

/**
 * Messages to devices about a call (contract 7.3). Notices are kept for one device until delivered; topic events go
 * to the call's subscribers at that moment.
 */

import type { CallId, DeviceId, UserId } from '../ids.ts'
import type { CallEndReason, CallStatus, ParticipantState } from './call.ts'

/** A call's key encrypted for one device. */
export interface KeySlice {
  readonly userId: UserId
  readonly deviceId: DeviceId
  readonly encryptedAESKey: string
}

/** The person who invited, as the invited person is to see them. */
export interface ShownCaller {
  readonly callerId: UserId
  /** For screens: the alias, else the display name. */
  readonly callerName: string
  /** The caller's own. */
  readonly displayName: string
  /** The invited person's own name for the caller. */
  readonly alias: string | undefined
  /** A contact, or a member of a circle of theirs. False for a stranger, who may have any name. */
  readonly isContact: boolean
}

/** Notices that carry a key, without it. */
export type KeyedNotice =
  | (ShownCaller & {
      readonly kind: 'call_invitation'
      readonly callId: CallId
      readonly version: number
      readonly roomId: number
      readonly isVideo: boolean
      /** Whether it is an invitation into an active call. */
      readonly isOnGoing: boolean
      readonly expiresAtMs: number
      /** Those who are in the call or invited to it. */
      readonly participants: readonly PersonName[]
      readonly keyEpoch: number
      /** The device that sealed the key. */
      readonly keyFromUserId: UserId
      readonly keyFromDeviceId: DeviceId
    })
  | {
      readonly kind: 'participant_accept_rejoin'
      readonly callId: CallId
      readonly version: number
      readonly keyEpoch: number
      readonly fromUserId: UserId
      readonly fromDeviceId: DeviceId
    }
  | {
      readonly kind: 'key_update'
      readonly callId: CallId
      readonly version: number
      readonly epoch: number
      readonly reason: KeysReason
      readonly fromUserId: UserId
      readonly fromDeviceId: DeviceId
      /** Base64 of the hash of the epoch's set; undefined where the epoch has none. */
      readonly setHash?: string
      /** Base64 of the entries that the set of the epoch before lacks; only with a new epoch whose predecessor has a set. */
      readonly added?: string
      /** Names of devices that only the set of the epoch before has; likewise. */
      readonly removed?: readonly string[]
    }

/** An invitation ended, or the call moved to another device; the caller is the person who invited. */
export interface OverNotice<Kind> extends ShownCaller {
  readonly kind: Kind
  readonly callId: CallId
  readonly version: number
  readonly isVideo: boolean
  readonly atMs: number
}

/** How another device of the user answered. */
export type ElsewhereReason = 'answered' | 'declined' | 'busy'

export type PlainCallNotice =
  | MediaReadyNotice
  | OverNotice<'call_cancelled' | 'call_missed' | 'call_moved'>
  | (OverNotice<'call_answered_elsewhere'> & { readonly reason: ElsewhereReason })
  | {
      readonly kind: 'call_ended'
      readonly callId: CallId
      readonly version: number
      readonly status: CallStatus
      readonly endReason: CallEndReason
      /** Absent when no person ended it. */
      readonly endedBy?: UserId
      readonly endedAtMs: number
    }
  | {
      readonly kind: 'participant_request_rejoin'
      readonly callId: CallId
      readonly version: number
      readonly userId: UserId
      readonly deviceId: DeviceId
      readonly displayName: string
      readonly publicKeyHash: string
      readonly expiresAtMs: number
      readonly nonce?: string
    }
  /** The device has no part in the epoch's key. */
  | {
      readonly kind: 'key_missing'
      readonly callId: CallId
      readonly version: number
      readonly epoch: number
    }

/** The media gateway's room lets the device in; the body that is sent has the proofs, which the inbox has not. */
export interface MediaReadyNotice {
  readonly kind: 'media_ready'
  readonly callId: CallId
  readonly version: number
  readonly roomId: number
  readonly gateway: string | undefined
}

/** A notice of a call, without the members that only one device gets. */
export type CallNotice = KeyedNotice | PlainCallNotice

export type CallNoticeBody = (KeyedNotice & { readonly encryptedAESKey: string }) | PlainCallNotice

export interface PersonName {
  readonly userId: UserId
  readonly displayName: string
}

/** Why keys are sent: the period ended, a participant left, a device can't decrypt, or a participant invites more. */
export type KeysReason = SentKeysReason | 'invite'

/** Reasons that a device names. */
export type SentKeysReason = 'rotation' | 'leave' | 'emergency'

export type CallTopicEvent =
  | {
      readonly kind:
        | 'participant_invited'
        | 'participant_ringing'
        | 'participant_joined'
        | 'participant_left'
        | 'participant_declined'
        | 'media_changed'
      readonly callId: CallId
      readonly version: number
      readonly participant: ParticipantView
    }
  /** A hint: the call rings at them, and no device of theirs has a socket or has taken a push. */
  | {
      readonly kind: 'participant_unreachable'
      readonly callId: CallId
      readonly version: number
      readonly userId: UserId
      /** A device of theirs is connected that waits for its user's approval: no call rings there. */
      readonly hasUnapprovedDevice: boolean
    }
  | {
      readonly kind: 'host_changed'
      readonly callId: CallId
      readonly version: number
      readonly hostUserId: UserId
    }
  | {
      readonly kind: 'call_status'
      readonly callId: CallId
      readonly version: number
      readonly status: CallStatus
    }

/** A participant as shown to the rest (contract 4.1). */
export interface ParticipantView {
  readonly userId: UserId
  readonly displayName: string
  readonly state: ParticipantState
  readonly isHost: boolean
  readonly invitedBy: UserId
  readonly invitedAtMs: number
  readonly joinedAtMs: number | undefined
  readonly leftAtMs: number | undefined
  /** The device that is in the call, or was last, and the log's hash of its key. */
  readonly deviceId: DeviceId | undefined
  readonly publicKeyHash: string | undefined
  /** `<userId>:<displayName>`. */
  readonly mediaName: string
  /** The device's publishers at the media gateway, while it is in the call. */
  readonly feedIds: readonly number[] | undefined
}

/** A message to one device: kept, and delivered when it connects. */
export interface DeviceEffect {
  readonly kind: 'device'
  readonly userId: UserId
  readonly deviceId: DeviceId
  /** The same object for all devices that a change tells the same. */
  readonly notice: CallNotice
  /** The device's slice of the call's key; with a keyed notice alone. */
  readonly encryptedAESKey: string | undefined
  /** The end of the message's use; without one the inbox's own time applies. */
  readonly expiresAtMs: number | undefined
  /** The device's waiting invitation to this call is taken out in the same step. */
  readonly replaces: 'invitation' | undefined
  /** With `call_cancelled`: the user has missed the call, and gets the push of a missed call. */
  readonly isMissed?: true | undefined
}

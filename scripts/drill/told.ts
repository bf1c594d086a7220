/** Messages to a device over STOMP, as far as a fake user listens (docs/calls.md; `GET /asyncapi.json`). */

interface TellsOf<Type extends string> {
  readonly type: Type
  /** The same in every repetition. */
  readonly eventId: string
  readonly callId: string
}

export interface Participant {
  readonly userId: string
  readonly displayName: string
  readonly state: string
  readonly deviceId?: string
}

export interface Invitation extends TellsOf<'call_invitation'> {
  readonly callerId: string
  readonly callerName: string
  readonly encryptedAESKey: string
  readonly isVideo: boolean
  readonly keyEpoch: number
}

export interface RejoinRequest extends TellsOf<'participant_request_rejoin'> {
  readonly userId: string
  readonly deviceId: string
  readonly displayName: string
}

/** A key that another device has sealed for this one. */
export interface SealedKey {
  readonly encryptedAESKey: string
  readonly fromUserId: string
  readonly fromDeviceId: string
}

export type Told =
  | Invitation
  | RejoinRequest
  | TellsOf<'call_cancelled' | 'call_missed' | 'call_moved'>
  | (TellsOf<'call_answered_elsewhere'> & { readonly reason: string })
  | (TellsOf<'call_ended'> & { readonly status: string; readonly endReason: string })
  | (TellsOf<'participant_accept_rejoin'> & SealedKey & { readonly keyEpoch: number })
  | (TellsOf<'key_update'> & SealedKey & { readonly epoch: number; readonly reason: string })
  | (TellsOf<
      | 'participant_invited'
      | 'participant_ringing'
      | 'participant_joined'
      | 'participant_left'
      | 'participant_declined'
    > & { readonly participant: Participant })
  | (TellsOf<'host_changed'> & { readonly hostUserId: string })
  | (TellsOf<'call_status'> & { readonly status: string })
  | { readonly type: 'friend_request'; readonly eventId: string; readonly userId: string }
  | {
      readonly type: 'contact_added'
      readonly eventId: string
      readonly userId: string
      readonly displayName: string
    }

/** The record of a call. */
export interface CallRecord {
  readonly callId: string
  readonly status: string
  readonly isVideo: boolean
  readonly hostUserId: string
  readonly keyEpoch: number
  /** Seconds. */
  readonly keyRotationIn: number
  readonly participants: readonly Participant[]
  readonly encryptedAESKey?: string
}

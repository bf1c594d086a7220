/** Acts that the shell carries out for the calls of a device. */

import type { Failure } from '../callsign-error.ts'
import type { KeyBinding } from '../devices/call-key.ts'
import type { SetHints } from '../devices/key-members.ts'
import type { OperationName } from '../session/operations.ts'
import type { CallParticipant } from '../wire.ts'
import type { CallGateway, CallState, KeyAsk, Reach } from './call.ts'
import type { HeldKey, Kept, Sender } from './device.ts'

/** Carried out in this order. Those with a number answer by `done` or `failed`. */
export type Act =
  | {
      readonly do: 'request'
      readonly act: number
      readonly operation: OperationName
      readonly callId?: string
      readonly body?: unknown
      /** Goes with the body, as random octets that have this number. */
      readonly nonce?: number
    }
  | { readonly do: 'send'; readonly destination: string }
  | { readonly do: 'watch'; readonly act: number; readonly callId: string }
  | { readonly do: 'unwatch'; readonly callId: string }
  /** Tries the senders in turn, and says which it was. A nonce is the own one of this number. */
  | ({
      readonly do: 'open'
      readonly act: number
      readonly key: number
      readonly text: string
      readonly from: readonly Sender[]
      readonly nonce?: number
    } & Use &
      SetHints)
  | { readonly do: 'make'; readonly key: number }
  /** With the asking device's nonce, if it sent one. */
  | ({
      readonly do: 'seal'
      readonly act: number
      readonly key: number
      readonly to: Receivers
      readonly nonce?: string
    } & Use)
  /** Overwrites them. */
  | { readonly do: 'wipe'; readonly keys: readonly number[] }
  /** Answers the app, or the queue: all that it asked for is done, or failed. */
  | { readonly do: 'settle'; readonly command: number; readonly callId?: string; readonly error?: Failure }
  /** Notes for the next start which call this device is in. */
  | ({ readonly do: 'keep' } & Kept)
  | { readonly do: 'emit'; readonly callId: string; readonly name: 'ringing' | 'resumed' }
  | { readonly do: 'emit'; readonly callId: string; readonly name: 'state'; readonly value: CallState }
  | {
      readonly do: 'emit'
      readonly callId: string
      readonly name: 'key' | 'sending'
      readonly value: HeldKey
    }
  | {
      readonly do: 'emit'
      readonly callId: string
      readonly name: 'participant'
      readonly value: CallParticipant & Reach
    }
  | { readonly do: 'emit'; readonly callId: string; readonly name: 'media'; readonly value: CallGateway }
  | { readonly do: 'emit'; readonly callId: string; readonly name: 'key-asked'; readonly value: KeyAsk }
  | { readonly do: 'emit'; readonly callId: string; readonly name: 'error'; readonly value: Failure }

export type Use = Pick<KeyBinding, 'callId' | 'epoch'>

/** All devices of users; for a new key those in the call and all of those who may come; for a held one some of its set. */
export type Receivers =
  | { readonly userIds: readonly string[] }
  | { readonly participants: readonly CallParticipant[]; readonly userIds?: readonly string[] }
  | { readonly participants: readonly CallParticipant[]; readonly keyMembers: string }
  | (Pick<KeyAsk, 'userId' | 'deviceId' | 'publicKeyHash'> & { readonly keyMembers: string })

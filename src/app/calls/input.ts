/** Inputs to the calls of a device, by their origin. */

import type { Failure } from '../callsign-error.ts'
import type { CallTopicEvent, QueueEvent } from '../wire.ts'
import type { CallEnding, KeyAsk } from './call.ts'
import type { Clock, Kept, KeySet, Sender, Start } from './device.ts'
import type { Invitation } from './ringing.ts'

export type Input =
  /** The app. `settle` answers each command once. */
  | {
      readonly on: 'start'
      readonly command: number
      /** At random: no other call has it. */
      readonly callId: string
      readonly userIds: readonly string[]
      readonly options: Start['options']
    }
  | ({ readonly on: 'join' | 'end' | 'leave' | 'renew' | 'resend' } & Command)
  | ({ readonly on: 'answer'; readonly evenIfOld?: true } & Command)
  /** A device of the user's own, by its name. */
  | ({ readonly on: 'accept-device'; readonly name: string } & Command)
  /** All other devices in the call have the key of this epoch: it need not wait. */
  | ({ readonly on: 'use'; readonly epoch: number } & Command)
  /** A new key; frames of this member do not open, if one is named. */
  | ({ readonly on: 'ask'; readonly userId?: string } & Command)
  | ({ readonly on: 'decline'; readonly reason: 'declined' | 'busy' | 'timeout' } & Command)
  | ({ readonly on: 'invite'; readonly userIds: readonly string[] } & Command)
  | ({ readonly on: 'remove'; readonly userId: string } & Command)
  | ({ readonly on: 'grant'; readonly ask: KeyAsk } & Command)
  | { readonly on: 'close'; readonly reason: 'left' | 'moved' | 'suspended' }
  /** A push. */
  | { readonly on: 'invited'; readonly invitation: Invitation }
  | { readonly on: 'cancelled'; readonly callId: string; readonly reason: CallEnding }
  /** The queue: `settle` says that the message may be acknowledged. */
  | { readonly on: 'queue'; readonly command: number; readonly event: QueueEvent }
  | { readonly on: 'topic'; readonly callId: string; readonly event: CallTopicEvent }
  /** The outcome of the act with this number. */
  | ({ readonly on: 'done'; readonly act: number } & Outcome)
  | { readonly on: 'failed'; readonly act: number; readonly failure: Failure }
  /** The time of `nextDeadlineMs` has come. */
  | { readonly on: 'time' }
  /** First of all, where a call was kept before the app ended. */
  | { readonly on: 'restarted'; readonly kept: Kept }
  /** All subscriptions are there; once more after a failure. `kept` is what the last `keep` noted, also before a restart. */
  | { readonly on: 'connected'; readonly command: number; readonly connection: number; readonly kept: Kept }
  | { readonly on: 'disconnected' }
  | ({ readonly on: 'clock' } & Clock)

export interface Command {
  readonly command: number
  readonly callId: string
}

/** A request gives its body; `open` the key with its sender and set; `seal` the texts by device with the set, or the one text. */
export interface Outcome extends Partial<KeySet> {
  readonly body?: unknown
  readonly key?: number
  readonly from?: Sender
  readonly texts?: Readonly<Record<string, string>>
  readonly text?: string
  /** Names of devices in the call that it was not sealed for. */
  readonly without?: readonly string[]
  /** Names of the user's other devices that have the key and are on no list. */
  readonly unlisted?: readonly string[]
  /** How long ago the key was sealed, by this device's clock and its sender's. */
  readonly sealedAgoMs?: number
}

/** A command of the app for a call. */
export type CallCommand = WithoutCommand<
  Extract<Input, { readonly command: number; readonly callId: string }>
>
type WithoutCommand<Any> = Any extends unknown ? Omit<Any, 'command'> : never

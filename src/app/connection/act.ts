/** Acts that the shell carries out for the connection of a device. */

import type { Failure } from '../callsign-error.ts'
import type { QueueEvent } from '../wire.ts'
import type { ConnectionState } from './phase.ts'

/** Carried out in this order. Those with `act` answer by `done` or `failed`. */
export type Act =
  /** Asks for the lead of the device's tabs: takes it, or waits for it. `release` gives it back. */
  | { readonly do: 'lead'; readonly act: number; readonly isTaken: boolean }
  | { readonly do: 'release' }
  /** A token that is good for a while. Its outcome has it. */
  | { readonly do: 'token'; readonly act: number }
  /** Gets another token in the place of this one. */
  | { readonly do: 'renew'; readonly act: number; readonly token: string }
  /** Registers the device of this session. */
  | { readonly do: 'register'; readonly act: number }
  | { readonly do: 'end session'; readonly failure: Failure }
  /** The server has named its time. */
  | { readonly do: 'hear time'; readonly serverMs: number }
  /** Connects: `connected` or `closed` follow, about the socket with this number. */
  | { readonly do: 'open'; readonly socket: number; readonly token: string }
  /** Sends a frame that asks for a RECEIPT, whose `recovered` the outcome has. */
  | ({ readonly do: 'request'; readonly act: number; readonly body?: string } & Frame)
  /** Sends a frame that needs no answer. */
  | ({ readonly do: 'tell' } & Frame)
  /** Ends the socket when the server has carried out all that was sent. Its outcome comes at the end. */
  | { readonly do: 'disconnect'; readonly act: number; readonly socket: number }
  /** Ends the socket at once: `closed` follows. */
  | { readonly do: 'abandon'; readonly socket: number }
  /** Has the app handle an event: its outcome comes then. */
  | { readonly do: 'handle'; readonly act: number; readonly event: QueueEvent }
  /** Gives an event to a watch. */
  | { readonly do: 'topic'; readonly watch: string; readonly event: unknown }
  /** Answers the app. */
  | {
      readonly do: 'settle'
      readonly command: number
      readonly watch?: string
      readonly error?: Failure
    }
  | { readonly do: 'state'; readonly state: ConnectionState; readonly failures: number }
  /** All subscriptions are there. */
  | { readonly do: 'ready'; readonly mayHaveMissed: boolean }
  | { readonly do: 'trouble'; readonly failure: Failure }

export interface Frame {
  readonly socket: number
  readonly command: string
  readonly headers: Readonly<Record<string, string>>
}

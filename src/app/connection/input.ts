/** Inputs to the connection of a device, by their origin. */

import type { Failure } from '../callsign-error.ts'

export type Input =
  /** The app. `settle` answers each command once. */
  | { readonly on: 'connect'; readonly takeOver: boolean }
  | { readonly on: 'disconnect'; readonly command: number }
  | { readonly on: 'watch'; readonly command: number; readonly destination: string }
  | { readonly on: 'unwatch'; readonly watch: string }
  | { readonly on: 'send'; readonly command: number; readonly destination: string; readonly body: string }
  /** The platform says that there is a network. */
  | { readonly on: 'online' }
  /** The session has ended. */
  | { readonly on: 'over' }
  /** About the act `lead`: `behind` when another tab leads, `lost` when another tab has taken the lead. */
  | { readonly on: 'behind' | 'lost'; readonly lead: number }
  | Confirmed
  | Delivered
  | Closed
  /** The outcome of the act with this number. */
  | { readonly on: 'done'; readonly act: number; readonly token?: string; readonly recovered?: string }
  | { readonly on: 'failed'; readonly act: number; readonly failure: Failure }
  /** The time of `nextDeadlineMs` has come. */
  | { readonly on: 'time' }

/** CONNECTED. */
export interface Confirmed {
  readonly on: 'connected'
  readonly socket: number
  readonly device?: string
  /** The server's time; 0 where it names none. */
  readonly serverMs: number
}

/** A MESSAGE, with the JSON of its body. */
export interface Delivered {
  readonly on: 'message'
  readonly socket: number
  readonly subscription: string
  readonly ack?: string
  readonly event: unknown
}

/** How a socket has ended: codes and reasons are those of docs/protocol/socket.md ("Connect"). */
export interface Closed {
  readonly on: 'closed'
  readonly socket: number
  readonly code: number
  readonly reason: string
  readonly retryAfterMs: number
  readonly failure?: Failure
}

/**
 * Data of a device's connection: all of it is plain, so that each language runs the same stories
 * (test/vectors/device-connection.jsonl).
 */

import type { QueueEvent } from '../wire.ts'

/**
 * `waiting`: another tab of this device is connected, and this one will be when that one closes. `elsewhere`: another
 * connection of this device took over; it stays so until `connect`.
 */
export type ConnectionState = 'off' | 'waiting' | 'connecting' | 'connected' | 'elsewhere'

export interface DeviceConnection {
  readonly phase: Phase
  /** Attempts that failed in a row, those after a short connection too. */
  readonly failures: number
  readonly tabs: Tabs
  /** As the server knows it; undefined before the first connection. */
  readonly deviceId: string | undefined
  readonly queues: readonly Queue[]
  readonly watches: readonly Watch[]
  /** Ids of events, the oldest first. */
  readonly seen: readonly string[]
  /** By the pace of acknowledgements, when there were as many as were sent. */
  readonly acksUntilMs: number
  /** Acts without an outcome yet, also those of earlier phases. */
  readonly waiting: readonly Waiting[]
  /** Counts acts and sockets. */
  readonly count: number
}

export type Phase =
  | { readonly kind: 'off' | 'elsewhere' }
  /** The lead of the device's tabs is asked for. */
  | { readonly kind: 'leading'; readonly isTaken: boolean }
  /** Another tab leads. */
  | { readonly kind: 'waiting' }
  | { readonly kind: 'token'; readonly act: number }
  | { readonly kind: 'opening'; readonly socket: number; readonly token: string }
  | Subscribing
  | ({ readonly kind: 'connected' } & Connected)
  /** The next attempt waits for a new token, or for the device to be registered. */
  | { readonly kind: 'renewing' | 'registering'; readonly act: number; readonly retryAfterMs: number }
  | { readonly kind: 'pausing'; readonly untilMs: number }

export interface Connected {
  readonly socket: number
  readonly token: string
  readonly connectedAtMs: number
}

export interface Subscribing extends Connected {
  readonly kind: 'subscribing'
  /** Acts of the subscriptions without an answer so far. */
  readonly left: readonly number[]
  /** Whether each queue goes on behind `since`, as its RECEIPT says: `true`, `false`, or nothing. */
  readonly recovered: readonly (string | undefined)[]
}

/** `lead`: the number of the act that asked for the lead. */
export type Tabs =
  | { readonly kind: 'none' }
  | { readonly kind: 'free' }
  | { readonly kind: 'asked'; readonly lead: number }

export interface Queue {
  readonly name: string
  readonly waiting: readonly Message[]
  /** The last message whose acknowledgement the server has on disk. */
  readonly since: string | undefined
}

export interface Message {
  readonly event: QueueEvent
  /** The header `ack`. */
  readonly messageId: string
  readonly socket: number
}

export interface Watch {
  readonly id: string
  readonly destination: string
  /** The app's, until it is settled. */
  readonly command: number | undefined
  /** The socket that it is subscribed on. */
  readonly socket: number | undefined
}

/** An act whose outcome comes as an input with the same number, and what it is for. */
export type Waiting = { readonly act: number } & Purpose

export type Purpose =
  | { readonly for: 'queue'; readonly socket: number }
  | { readonly for: 'watch'; readonly socket: number; readonly id: string }
  | { readonly for: 'handle'; readonly queue: string; readonly message: Message }
  | { readonly for: 'ack'; readonly queue: string; readonly messageId: string; readonly socket: number }
  | { readonly for: 'send'; readonly command: number }
  /** Without a command where the app did not ask for it. */
  | { readonly for: 'disconnect'; readonly command?: number }

/** The state that an app sees. */
export function stateOf({ kind }: Phase): ConnectionState {
  switch (kind) {
    case 'off':
    case 'elsewhere':
    case 'waiting':
    case 'connected':
      return kind
    case 'subscribing':
      return 'connected'
    default:
      return 'connecting'
  }
}

/** The connection that the server has confirmed. */
export function connectedIn(phase: Phase): Connected | undefined {
  return phase.kind === 'subscribing' || phase.kind === 'connected' ? phase : undefined
}

/** The number of the socket that there is. */
export function socketIn(phase: Phase): number | undefined {
  return 'socket' in phase ? phase.socket : undefined
}

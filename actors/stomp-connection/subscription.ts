/**
 * A subscription (STOMP 1.2, "SUBSCRIBE"): what a frame asks for, what a destination means, and what a connection keeps
 * of one to a live topic. Those to the device's own queues are in `inbox-delivery.ts`.
 */

import { SignalError } from '../../src/errors.ts'
import { PREFETCH_MAX, UNACKNOWLEDGED_MAX } from '../../src/limits.ts'
import { type Destination, parseDestination } from '../../src/stomp/destination.ts'
import type { Frame, StompVersion } from '../../src/stomp/frame.ts'
import type { NamedHead } from '../../src/stomp/subscription-heads.ts'
import type { Desk } from './desk.ts'
import { protocolRefusal } from './refusal.ts'

export type AckMode = 'auto' | 'client' | 'client-individual'

export interface SubscribeRequest {
  /** Undefined only in 1.0. */
  readonly id: string | undefined
  readonly destination: string
  readonly mode: AckMode
  /** How many messages may be out unacknowledged. */
  readonly window: number
  /** Where the client left off, as it says. */
  readonly since: string | undefined
  readonly receipt: string | undefined
}

/** Reads a SUBSCRIBE. Throws a `ConnectionRefusal` when it is not well formed. */
export function readSubscribe(frame: Frame, version: StompVersion): SubscribeRequest {
  const id = frame.header('id')
  if (id === undefined && version !== '1.0') throw missingHeader('SUBSCRIBE', 'id')
  return {
    id,
    destination: requiredHeader(frame, 'destination'),
    mode: readAckMode(frame.header('ack'), version),
    window: readWindow(frame.header('prefetch-count')),
    since: frame.header('since'),
    receipt: frame.header('receipt'),
  }
}

/** A subscription to a live topic or to the connection's own errors. */
export class LiveSubscription {
  readonly named: NamedHead
  /** As messages of the topic name it. */
  readonly topic: string
  readonly mode: AckMode
  /** Unique among the connection's subscriptions, past ones included. */
  readonly tag: number
  /** Whether the topic has taken it in: what was published before is not for it. */
  isJoined = false
  /** The receipt to answer once it has. */
  receipt: string | undefined = undefined
  /** The last messages that may be acknowledged; an acknowledgement only names one of them. */
  #given: Set<string> | undefined = undefined

  constructor(named: NamedHead, topic: string, mode: AckMode, tag: number) {
    this.named = named
    this.topic = topic
    this.mode = mode
    this.tag = tag
  }

  noteGiven(messageId: string): void {
    if (this.mode === 'auto') return
    this.#given ??= new Set()
    this.#given.add(messageId)
    if (this.#given.size <= GIVEN_MAX) return
    for (const oldest of this.#given) {
      this.#given.delete(oldest)
      return
    }
  }

  wasGiven(messageId: string): boolean {
    return this.#given?.has(messageId) ?? false
  }
}

/** Parses a destination. Throws `NOT_FOUND` or `DESTINATION_FORBIDDEN`, from its name alone. */
export function destinationOf({ device, deps }: Desk, text: string): Destination {
  const { isDevelopment } = deps
  const destination = parseDestination(text, { userId: String(device.userId), isDevelopment })
  switch (destination) {
    case 'unknown':
      throw new SignalError('NOT_FOUND', 'there is no such destination: /asyncapi.json names them all')
    case 'foreign':
      throw forbidden("another user's destinations are theirs alone")
    case 'wildcard':
      throw forbidden('a destination is named in full, without wildcards')
    default:
      return destination
  }
}

export function forbidden(message: string): SignalError {
  return new SignalError('DESTINATION_FORBIDDEN', message)
}

/** The value of a header that the frame must have. */
export function requiredHeader(frame: Frame, name: string): string {
  const value = frame.header(name)
  if (value === undefined) throw missingHeader(frame.command, name)
  return value
}

export function missingHeader(command: string, name: string): Error {
  return protocolRefusal('header_missing', `${command} needs the header ${name}`)
}

function readAckMode(value: string | undefined, version: StompVersion): AckMode {
  switch (value) {
    case undefined:
    case 'auto':
      return 'auto'
    case 'client':
      return 'client'
    case 'client-individual':
      // Not `value`: each subscription would keep the text that its frame brought.
      if (version !== '1.0') return 'client-individual'
  }
  throw protocolRefusal('ack_mode_invalid', 'ack is auto, client or, from 1.1 on, client-individual')
}

/** Choice: what RabbitMQ's clients call `prefetch-count`, within our own bounds. */
function readWindow(value: string | undefined): number {
  if (value === undefined) return UNACKNOWLEDGED_MAX
  if (!/^[1-9][0-9]{0,8}$/.test(value)) {
    throw protocolRefusal('prefetch_count_invalid', 'prefetch-count is not a positive number')
  }
  return Math.min(Number(value), PREFETCH_MAX)
}

/** An app acknowledges what it was given last, or does not care. */
const GIVEN_MAX = 256

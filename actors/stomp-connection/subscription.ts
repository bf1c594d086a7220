/**
 * Subscriptions of one connection (STOMP 1.2, "SUBSCRIBE"): to a live topic, which remembers little, and to a queue of the
 * device's inbox, which knows what its client has open.
 */

import type { Badge } from '../../src/domain/messages/notice.ts'
import type { NamedHead } from '../../src/stomp/subscription-heads.ts'

/** STOMP 1.2, "SUBSCRIBE ack Header". */
export type AckMode = 'auto' | 'client' | 'client-individual'

/** A subscription to a live topic or to the connection's own errors. */
export class LiveSubscription {
  readonly named: NamedHead
  /** As messages of the topic name it. */
  readonly topic: string
  readonly mode: AckMode
  /** Unique among the connection's subscriptions, past ones included. */
  readonly tag: number
  /** Whether the topic has taken it in: earlier publications are not for it. */
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

  /** Takes the receipt to answer, so that it is answered once. */
  takeReceipt(): string | undefined {
    const { receipt } = this
    this.receipt = undefined
    return receipt
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

/** A subscription to one queue of the inbox. */
export class QueueSubscription {
  readonly named: NamedHead
  readonly queue: string
  readonly mode: AckMode
  readonly window: number
  /** It has been offered everything up to here. */
  cursor = 0
  /** Stands at its cursor, since so much is open as may be. */
  isFull = false
  /** Messages up to here were delivered on an earlier subscription. */
  givenBefore = 0
  /** Up to here its client has seen the queue on earlier connections. */
  seenBefore = 0
  /** The last offset it was given, and the last that the store knows to have been given. */
  given = 0
  marked = 0
  /** The badge as its client knows it; undefined before its first message (`badge.ts`). */
  badgeTold: Badge | undefined = undefined
  /** Offsets given and not done with, in order; undefined until there is one, as most are idle. */
  #open: number[] | undefined = undefined

  constructor(named: NamedHead, queue: string, mode: AckMode, window: number) {
    this.named = named
    this.queue = queue
    this.mode = mode
    this.window = window
  }

  get openCount(): number {
    return this.#open === undefined ? 0 : this.#open.length
  }

  hasOpen(offset: number): boolean {
    return this.#open?.includes(offset) ?? false
  }

  noteGiven(offset: number): void {
    this.#open ??= []
    this.#open.push(offset)
    this.given = offset
  }

  /** Takes out open offsets: all, or those that a frame about `offset` covers in this mode. */
  takeOpen(offset?: number): number[] {
    if (this.#open === undefined) return []
    if (offset === undefined) return this.#open.splice(0)
    const at = this.#open.indexOf(offset)
    if (at === -1) return []
    return this.mode === 'client-individual' ? this.#open.splice(at, 1) : this.#open.splice(0, at + 1)
  }
}

/** The name of a call's topic begins so. */
export const CALL_TOPIC = 'call.'
export const ERRORS_TOPIC = 'errors'

/** An app acknowledges one of its last messages, or none. */
const GIVEN_MAX = 256

/**
 * What subscriptions to queues of the inbox were given before they ended, on this connection: their messages may still be
 * acknowledged (contract 0.1, "7 ACK"). One record for each queue and mode, and no list of messages: those that wait are in
 * the inbox, in order.
 */

import type { AckMode, QueueSubscription } from './subscription.ts'

export interface FormerSubscription {
  /** The id of the one that ended last. */
  readonly id: string | undefined
  readonly queue: string
  readonly mode: AckMode
  /** It was given what waited behind this offset, and nothing behind `given`. */
  readonly seenBefore: number
  readonly given: number
  /** Those that were there at its end: a message that they got too is settled when they are done with it. */
  readonly beside: readonly QueueSubscription[]
}

export class FormerSubscriptions {
  /** The one that ended last is the last. */
  #all: readonly FormerSubscription[] = NONE

  add(subscription: QueueSubscription, beside: readonly QueueSubscription[]): void {
    const { named, queue, mode, seenBefore, given } = subscription
    if (given === 0) return
    const isAlike = (each: FormerSubscription) => each.queue === queue && each.mode === mode
    const before = this.#all.find(isAlike)
    const highest = Math.max(given, before?.given ?? 0)
    const former = { id: named.id, queue, mode, seenBefore, given: highest, beside }
    this.#all = [...this.#all.filter(each => !isAlike(each)), former]
  }

  /** The last offset of the queue that they were given; 0 for none. */
  givenOf(queue: string): number {
    let last = 0
    for (const each of this.#all) if (each.queue === queue) last = Math.max(last, each.given)
    return last
  }

  /** One that was given this message of its queue: the one of that id, else the one that ended last. */
  find(queue: string, offset: number, id: string | undefined): FormerSubscription | undefined {
    const given = this.#all.filter(each => each.queue === queue && offset <= each.given)
    return given.findLast(each => each.id === id) ?? given.at(-1)
  }
}

const NONE: readonly FormerSubscription[] = []

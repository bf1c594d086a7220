/**
 * A live topic: its subscribers, and telling them all. Not an actor: its owner (a call room, a topic of the development
 * surface) lends it turns.
 */

import { FAN_OUT_CHUNK } from '../src/limits.ts'
import type { Ref } from '../src/runtime/actor.ts'
import { RemoteRef } from '../src/runtime/remote-ref.ts'
import type { Broadcast } from '../src/stomp/broadcast.ts'
import type { TopicMessage, TopicSubscriber, UnsubscribeMessage } from './messages.ts'

interface Subscriber {
  readonly ref: TopicSubscriber
  /** How many broadcasts were published before it came: it gets none of those. */
  readonly since: number
  /** How many subscriptions its connection has here; it gets each event once and serves them all. */
  subscriptions: number
}

export class LiveTopic {
  readonly #name: string
  /** By connection id. */
  readonly #subscribers = new Map<string, Subscriber>()
  #publishedCount = 0
  /** Broadcasts that some subscribers lack, oldest first. */
  readonly #waiting: Broadcast[] = []
  /** Receivers of the oldest, and how many of them have it. */
  #receivers: readonly TopicSubscriber[] = []
  #toldCount = 0

  constructor(name: string) {
    this.#name = name
  }

  get subscriberCount(): number {
    return this.#subscribers.size
  }

  /** Whether every subscriber has every broadcast. */
  get isQuiet(): boolean {
    return this.#waiting.length === 0
  }

  has(connectionId: string): boolean {
    return this.#subscribers.has(connectionId)
  }

  /** Adds a subscription; answers with its tag. The subscriber gets each broadcast from here on. */
  subscribe(subscriber: TopicSubscriber, tag: number): void {
    const known = this.#subscribers.get(subscriber.id)
    if (known !== undefined) known.subscriptions += 1
    else {
      this.#subscribers.set(subscriber.id, { ref: subscriber, since: this.#publishedCount, subscriptions: 1 })
    }
    this.#tell(subscriber, { kind: 'topic-joined', tag })
  }

  /** Takes back one subscription of the connection; returns whether none is left. */
  unsubscribe(connectionId: string): boolean {
    const known = this.#subscribers.get(connectionId)
    if (known === undefined) return true
    known.subscriptions -= 1
    if (known.subscriptions > 0) return false
    this.#subscribers.delete(connectionId)
    return true
  }

  /** Takes back all subscriptions of the connection. */
  drop(connectionId: string): void {
    this.#subscribers.delete(connectionId)
  }

  /**
   * Tells all subscribers, or the first `FAN_OUT_CHUNK`: false when `tellMore` has to tell the rest. Each subscriber gets
   * broadcasts in the order of publishing.
   */
  publish(broadcast: Broadcast): boolean {
    this.#waiting.push(broadcast)
    this.#publishedCount += 1
    return this.#waiting.length > 1 ? false : this.tellMore()
  }

  /** Tells the next `FAN_OUT_CHUNK`; false while some are left. */
  tellMore(): boolean {
    for (let room = FAN_OUT_CHUNK; room > 0 && this.#waiting.length > 0; ) {
      if (this.#toldCount === 0) this.#receivers = this.#receiversOfOldest()
      const end = Math.min(this.#receivers.length, this.#toldCount + room)
      room -= Math.max(1, end - this.#toldCount)
      this.#tellRange(this.#waiting[0]!, end)
      if (end < this.#receivers.length) return false
      this.#waiting.shift()
      this.#toldCount = 0
    }
    if (this.isQuiet) this.#receivers = []
    return this.isQuiet
  }

  /** Drops subscribers of a lost process: they can't unsubscribe. */
  #receiversOfOldest(): TopicSubscriber[] {
    const publishedBefore = this.#publishedCount - this.#waiting.length
    const receivers: TopicSubscriber[] = []
    for (const { ref, since } of this.#subscribers.values()) {
      if (ref instanceof RemoteRef && ref.isLost) this.#subscribers.delete(ref.id)
      else if (since <= publishedBefore) receivers.push(ref)
    }
    return receivers
  }

  #tellRange(broadcast: Broadcast, end: number): void {
    // One message for all receivers: the loop allocates nothing.
    const message: TopicMessage = { kind: 'topic-message', topic: this.#name, broadcast }
    while (this.#toldCount < end) this.#tell(this.#receivers[this.#toldCount++]!, message)
  }

  /** A subscriber with a full mailbox misses the message, and must learn that it did. */
  #tell(subscriber: TopicSubscriber, message: TopicMessage): void {
    subscriber.tellOr(message, OVERRUN)
  }
}

/** Takes back one subscription of the connection, behind its earlier messages as long as there is room. */
export function leaveTopic(topic: Ref<UnsubscribeMessage>, connectionId: string): void {
  const message: UnsubscribeMessage = { kind: 'unsubscribe', connectionId }
  topic.tellOr(message, message)
}

const OVERRUN: TopicMessage = { kind: 'overrun' }

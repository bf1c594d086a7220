/**
 * A live topic: who is subscribed to it, and telling them all. Not an actor; the one that owns the topic (a call room,
 * a topic of the development surface) holds it and lends it its turns.
 */

import { FAN_OUT_CHUNK } from '../src/limits.ts'
import type { Ref } from '../src/runtime/actor.ts'
import type { Broadcast } from '../src/stomp/broadcast.ts'
import type { StompSessionMessage, TopicMessage } from './stomp-session/world.ts'

/** A session as its topics know it. */
export type TopicSession = Ref<TopicMessage>

interface Subscriber {
  readonly session: TopicSession
  /** How many broadcasts had been published when it came: those are not for it. */
  readonly since: number
  /** How many subscriptions its connection has here; it is told once and sees to the rest. */
  subscriptions: number
}

export class LiveTopic {
  readonly #name: string
  readonly #subscribers = new Map<string, Subscriber>()
  #publishedCount = 0
  /** Broadcasts not told to all yet, oldest first, and to how many the oldest was told. */
  readonly #waiting: Broadcast[] = []
  #receivers: readonly TopicSession[] = []
  #toldCount = 0

  constructor(name: string) {
    this.#name = name
  }

  get sessions(): number {
    return this.#subscribers.size
  }

  /** Whether everybody has been told of everything. */
  get isQuiet(): boolean {
    return this.#waiting.length === 0
  }

  /** From here on the session is told of what is published; it is told so with its tag. */
  subscribe(session: TopicSession, tag: number): void {
    const known = this.#subscribers.get(session.id)
    if (known !== undefined) known.subscriptions += 1
    else this.#subscribers.set(session.id, { session, since: this.#publishedCount, subscriptions: 1 })
    this.#tell(session, { kind: 'topic-joined', tag })
  }

  /** Takes back one subscription of the session; whether it has none left. */
  unsubscribe(sessionId: string): boolean {
    const known = this.#subscribers.get(sessionId)
    if (known === undefined) return true
    known.subscriptions -= 1
    if (known.subscriptions > 0) return false
    this.#subscribers.delete(sessionId)
    return true
  }

  /** Takes back all subscriptions of the session. */
  drop(sessionId: string): void {
    this.#subscribers.delete(sessionId)
  }

  /**
   * Tells everybody, or the first so many of them: false when some are left for `tellMore`. Broadcasts reach each
   * session in the order in which they were published.
   */
  publish(broadcast: Broadcast): boolean {
    this.#waiting.push(broadcast)
    this.#publishedCount += 1
    return this.#waiting.length > 1 ? false : this.tellMore()
  }

  /** Tells some more; false while some are left. */
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

  #receiversOfOldest(): TopicSession[] {
    const publishedBefore = this.#publishedCount - this.#waiting.length
    const receivers: TopicSession[] = []
    for (const { session, since } of this.#subscribers.values()) {
      if (since <= publishedBefore) receivers.push(session)
    }
    return receivers
  }

  #tellRange(broadcast: Broadcast, end: number): void {
    // One message for all: nothing is made per receiver.
    const message: TopicMessage = { kind: 'topic-message', topic: this.#name, broadcast }
    while (this.#toldCount < end) this.#tell(this.#receivers[this.#toldCount++]!, message)
  }

  /** A session that cannot be told has missed something, which it must not do without a word. */
  #tell(session: TopicSession, message: TopicMessage): void {
    if (session.tell(message) === 'overloaded') (session as Ref<StompSessionMessage>).tellControl(OVERRUN)
  }
}

const OVERRUN: StompSessionMessage = { kind: 'overrun' }

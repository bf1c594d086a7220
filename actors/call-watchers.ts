/**
 * Who watches a call live, and telling them. Not an actor; the call's room lends it its turns. It outlives a room that
 * is built anew, so that those who watch notice nothing of it.
 */

import { type Call, hasPart } from '../src/domain/call.ts'
import type { CallId, UserId } from '../src/domain/ids.ts'
import { eventBody, type TopicEvent } from '../src/schema/event.ts'
import { formatJson, type IdForm } from '../src/schema/json.ts'
import { Broadcast } from '../src/stomp/broadcast.ts'
import { LiveTopic, type TopicSession } from './live-topic.ts'

export class CallWatchers {
  readonly #topic: LiveTopic
  readonly #idsAs: IdForm
  /** By session. */
  readonly #userIds = new Map<string, UserId>()

  constructor(callId: CallId, idsAs: IdForm) {
    this.#topic = new LiveTopic(`call.${callId}`)
    this.#idsAs = idsAs
  }

  get isEmpty(): boolean {
    return this.#userIds.size === 0
  }

  /** From here on the session is told; whether its user may know is for the room to say. */
  subscribe(userId: UserId, session: TopicSession, tag: number): void {
    this.#userIds.set(session.id, userId)
    this.#topic.subscribe(session, tag)
  }

  /** Takes back one subscription of the session. */
  unsubscribe(sessionId: string): void {
    if (this.#topic.unsubscribe(sessionId)) this.#userIds.delete(sessionId)
  }

  /** Those without a part in the call are told no more of it: they may have had one when they subscribed. */
  dropOutsiders(call: Call): void {
    for (const [sessionId, userId] of this.#userIds) {
      if (hasPart(call, userId)) continue
      this.#userIds.delete(sessionId)
      this.#topic.drop(sessionId)
    }
  }

  /** Tells everybody, or the first so many of them: false when `tellMore` has to be called for the rest. */
  publish(event: TopicEvent): boolean {
    const { kind, eventId, sentAtMs } = event
    const headers = ['type', kind, 'timestamp', String(sentAtMs), 'content-type', 'application/json']
    const body = Buffer.from(formatJson(eventBody(event), this.#idsAs))
    const isUnderWay = !this.#topic.isQuiet
    return this.#topic.publish(new Broadcast(eventId, headers, body)) || isUnderWay
  }

  /** Tells some more; false while some are left. */
  tellMore(): boolean {
    return this.#topic.tellMore()
  }
}

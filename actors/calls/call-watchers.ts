/**
 * The connections that watch a call live, and telling them. Not an actor: the call's room lends it turns. It outlives a
 * room that is rebuilt, so its watchers notice nothing.
 */

import { type Call, hasPart } from '../../src/domain/calls/call.ts'
import type { CallEffect } from '../../src/domain/calls/call-command.ts'
import type { CallId, UserId } from '../../src/domain/ids.ts'
import type { Admit } from '../../src/schema/call.ts'
import { EVENTS } from '../../src/schema/event.ts'
import type { TopicEvent } from '../../src/schema/event-form.ts'
import { formatJson, type IdForm } from '../../src/schema/json.ts'
import { Broadcast } from '../../src/stomp/broadcast.ts'
import { LiveTopic } from '../live-topic.ts'
import type { TopicSubscriber } from '../messages.ts'

/** How events are written. */
export interface EventWriting {
  readonly idsAs: IdForm
  /** See `Admit`, for the participants in events. */
  readonly admit?: Admit | undefined
  /** 22 base64url characters, of no other event. */
  readonly newEventId: () => string
}

export class CallWatchers {
  readonly #topic: LiveTopic
  readonly #idsAs: IdForm
  readonly #admit: Admit | undefined
  readonly #newEventId: () => string
  /** By connection id. */
  readonly #userIds = new Map<string, UserId>()

  constructor(callId: CallId, { idsAs, admit, newEventId }: EventWriting) {
    this.#topic = new LiveTopic(`call.${callId}`)
    this.#idsAs = idsAs
    this.#admit = admit
    this.#newEventId = newEventId
  }

  /** The subscriber gets each event from here on. The room has checked that its user may. */
  subscribe(userId: UserId, subscriber: TopicSubscriber, tag: number): void {
    this.#userIds.set(subscriber.id, userId)
    this.#topic.subscribe(subscriber, tag)
  }

  /** Takes back one subscription of the connection. */
  unsubscribe(connectionId: string): void {
    if (this.#topic.unsubscribe(connectionId)) this.#userIds.delete(connectionId)
  }

  /**
   * Tells watchers, and those alone who may know, of what happened live: all of them, or the first `FAN_OUT_CHUNK`. False
   * when the room has to call `tellMore` for the rest.
   */
  tell(call: Call, effects: readonly CallEffect[], nowMs: number): boolean {
    this.#dropOutsiders(call)
    let areTold = true
    for (const effect of effects) {
      if (effect.kind !== 'topic' || this.#userIds.size === 0) continue
      // In this order: V8 takes ten times as long to add members after a spread.
      const event = { eventId: this.#newEventId(), sentAtMs: nowMs, ...effect.event }
      if (!this.#publish(event)) areTold = false
    }
    return areTold
  }

  /** Tells more watchers; false while some are left. */
  tellMore(): boolean {
    return this.#topic.tellMore()
  }

  /** Drops watchers of users who lost the part in the call that they had when they subscribed, and watchers of a lost process. */
  #dropOutsiders(call: Call): void {
    for (const [connectionId, userId] of this.#userIds) {
      if (hasPart(call, userId) && this.#topic.has(connectionId)) continue
      this.#userIds.delete(connectionId)
      this.#topic.drop(connectionId)
    }
  }

  #publish(event: TopicEvent): boolean {
    const { kind, eventId, sentAtMs } = event
    const headers = ['type', kind, 'timestamp', String(sentAtMs), 'content-type', 'application/json']
    const body = Buffer.from(formatJson(EVENTS[event.kind].body(event, { admit: this.#admit }), this.#idsAs))
    const isUnderWay = !this.#topic.isQuiet
    return this.#topic.publish(new Broadcast(eventId, headers, body)) || isUnderWay
  }
}

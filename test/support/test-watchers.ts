/** Connections that watch calls. */

import type { TopicMessage } from '../../actors/messages.ts'
import type { CallId } from '../../src/domain/ids.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import { SubscriptionHead } from '../../src/stomp/serializer.ts'
import { kindOf } from './actors.ts'
import type { Phone, TestRooms } from './test-rooms.ts'

/** Connections that write down their messages: `joined <tag>`, or the body of an event. */
export function watchers(rooms: TestRooms) {
  const seen = new Map<string, unknown[]>()
  const connectionOf = rooms.system.define(
    kindOf<TopicMessage>((message, _, id) => {
      if (message.kind === 'overrun') return
      const list = seen.get(id) ?? []
      seen.set(id, list)
      list.push(message.kind === 'topic-joined' ? `joined ${message.tag}` : bodyOf(message))
    }),
  )
  return {
    seenBy: (id: string) => seen.get(id) ?? [],
    async watch(callId: CallId, by: Phone, id: string, tag = 1): Promise<void> {
      const subscriber = connectionOf(id) as Ref<TopicMessage>
      const asked = rooms
        .room(callId)
        .ask<undefined>(reply => ({ kind: 'subscribe', by, subscriber, tag, reply }), 10_000)
      asked.catch(() => undefined)
      await rooms.rest()
      return asked
    },
  }
}

function bodyOf({ topic, broadcast }: Extract<TopicMessage, { kind: 'topic-message' }>) {
  const head = new SubscriptionHead('1.2', 's1', `/topic/${topic}`, false)
  const text = broadcast.encode(head).toString()
  const body = JSON.parse(text.slice(text.indexOf('\n\n') + 2, text.lastIndexOf('\0')))
  return { ...body, headers: text.slice(0, text.indexOf('\n\n')).split('\n') }
}

/** The types of events, and `joined <tag>`. */
export function kinds(seen: readonly unknown[]): unknown[] {
  return seen.map(each => (typeof each === 'string' ? each : (each as { type: string }).type))
}

/** A device's connection and its inbox, for tests of acknowledgements. */

import type { Test } from 'tap'
import type { MemoryClient } from './memory-client.ts'
import type { ClientFrame } from './naive-client.ts'
import { headerOf } from './naive-stomp.ts'
import {
  newPerson,
  openTestActors,
  type Person,
  type TestActors,
  type TestActorsOptions,
} from './test-actors.ts'

export const QUEUE = '/user/queue/dev.t'

export function subscribe(
  peer: MemoryClient,
  id: string,
  ack = 'auto',
  more = '',
  destination = QUEUE,
): void {
  peer.write(`SUBSCRIBE\nid:${id}\ndestination:${destination}\nack:${ack}\n${more}\n\0`)
}

export function bodies(frames: readonly ClientFrame[]): string[] {
  return frames.map(frame => frame.body.toString())
}

export function idsOf(frames: readonly ClientFrame[]): string[] {
  return frames.map(frame => headerOf(frame, 'message-id')!)
}

export function ack(peer: MemoryClient, messageId: string, more = ''): void {
  peer.write(`ACK\nid:${messageId}\n${more}\n\0`)
}

/** The device's remaining messages. */
export function waiting(actors: TestActors, { userId, deviceId }: Person): string[] {
  return actors.database
    .view(view =>
      actors.inbox.after(view, userId, deviceId, { offset: 0, limit: 1_000, nowMs: actors.world.nowMs() }),
    )
    .map(({ item }) => (item.kind === 'dev' ? Buffer.from(item.body).toString() : item.body.kind))
}

export async function begin(t: Test, queued: readonly string[] = [], options: TestActorsOptions = {}) {
  const actors = openTestActors(t, options)
  const person = newPerson()
  const peer = await actors.connect(person)
  if (queued.length > 0) await actors.keep(person, 'dev.t', ...queued)
  return { actors, person, peer }
}

/** Another connection of the device, after the first one broke. */
export async function reconnect(
  actors: TestActors,
  person: Person,
  peer: MemoryClient,
): Promise<MemoryClient> {
  peer.drop()
  await actors.settle()
  return actors.connect(person)
}

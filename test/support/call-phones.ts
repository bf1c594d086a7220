/** People whose devices hear of calls over a connection of their own, for calls by a media gateway. */

import { befriend, newCallKey, type Person } from './call-people.ts'
import type { SocketClient } from './socket-client.ts'
import { deviceOf, type WireServer } from './wire-server.ts'

/** A device with a connection that hears of calls. */
export interface Phone extends Person {
  readonly peer: SocketClient
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of any form
type Body = any

/** So many, each a contact of the first. */
export async function meet(server: WireServer, count: number): Promise<Phone[]> {
  const people = await Promise.all(Array.from({ length: count }, () => server.signIn()))
  for (const other of people.slice(1)) await befriend(people[0]!, other)
  return Promise.all(
    people.map(async person => {
      const peer = await server.connect('websocket', deviceOf(person))
      await peer.subscribe('/user/queue/calls', 'calls')
      return { ...person, peer }
    }),
  )
}

/** Asks the server to start a call; resolves with its answer. */
export async function start({ app }: Phone, callees: readonly Phone[], more: object = {}) {
  const names = callees.map(({ userId, deviceId }) => `${userId}_${deviceId}`)
  return app.send('POST /app/api/call/start', {
    calleeIds: callees.map(({ userId }) => userId),
    encryptedAESKeys: Object.fromEntries(names.map(name => [name, newCallKey()])),
    isVideo: false,
    ...more,
  })
}

/** The next event of this type that is meant: calls of before may have sent some late, on a busy machine. */
export async function heard(
  { peer }: Phone,
  type: string,
  isMeant: (event: Body) => boolean = () => true,
): Promise<Body> {
  const frame = await peer.frame(({ body }) => {
    const text = String(body)
    return text.includes(`"type":"${type}"`) && isMeant(JSON.parse(text))
  })
  return JSON.parse(String(frame.body))
}

/** A Janus as it is watched, with a server in its place that answers as the test says. */

import { createSecretKey, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import { GatewayHealth } from '../../../src/media/gateway-health.ts'
import { attachedEvent, joinedEvent } from '../../../src/media/janus-events.ts'
import { RoomTokens } from '../../../src/media/room-tokens.ts'
import { createLogger } from '../../../src/operations/log.ts'
import { Metrics } from '../../../src/operations/metrics.ts'
import { JanusHost } from '../../../src/server/writer/janus-host.ts'

type Answer = (request: { readonly request?: string; readonly room?: number }) => object | string

async function open(t: Test) {
  let answer: Answer = () => ({})
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = answer(JSON.parse(Buffer.concat(chunks).toString()).request ?? {})
    response.end(typeof text === 'string' ? text : JSON.stringify({ janus: 'success', response: text }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const turns: string[] = []
  const missing: CallId[] = []
  const health = new GatewayHealth(
    () => performance.now(),
    (isUp, reason) => void turns.push(isUp ? 'back' : reason),
  )
  const rooms = [{ callId: 7n as CallId, roomId: 7 }]
  const metrics = new Metrics()
  const host = new JanusHost(
    {
      ...{ name: 'one', weight: 1, isDraining: false },
      adminUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/admin`,
      ...{ adminSecret: 'a', adminKey: 'b', tokenSecret: 'c', clientUrl: 'ws://127.0.0.1' },
    },
    {
      ...{ health, onMissing: callId => void missing.push(callId), onFeeds: () => undefined },
      calls: { rooms: () => rooms, callInRoom: roomId => rooms.find(each => each.roomId === roomId)?.callId },
    },
    {
      secrets: { mediaRoom: createSecretKey(randomBytes(32)) },
      ...{ monotonicMs: () => performance.now(), metrics, logger: createLogger('silent') },
    },
    () => false,
  )
  return {
    ...{ host, health, turns, missing, metrics, rooms },
    answers(next: Answer) {
      answer = next
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

t.test('an answer of something else in its place counts as none', async t => {
  const { host, health, turns, metrics, answers, close } = await open(t)
  answers(() => ({ videoroom: 'success', exists: false }))
  await host.look()
  t.ok(health.isUp)
  answers(() => '<h1>502 Bad Gateway</h1>')
  await host.look()
  t.notOk(health.isUp)
  answers(() => ({ error_code: 426 }))
  await host.look()
  t.ok(health.isUp, 'it answered')
  close()
  await host.look()
  t.same(turns, ['malformed', 'back', 'network'])
  const text = await metrics.text()
  t.match(text, 'callsign_media_requests_total{gateway="one",outcome="ok"} 2')
  metrics.mediaRequests.inc({ gateway: 'one', outcome: 'refused' })
  metrics.forgetGateway('one')
  t.notMatch(await metrics.text(), 'gateway="one"')
})

t.test('one that refuses the list of its rooms takes no call until it gives it', async t => {
  const { host, health, turns, missing, answers } = await open(t)
  answers(({ request }) => (request === 'list' ? { error_code: 429 } : { videoroom: 'success' }))
  await host.sweep()
  await host.look()
  t.notOk(health.isUp)
  t.notOk(health.isLost)
  await host.sweep()
  t.ok(health.isLost, 'its calls have no room there')
  answers(() => ({ list: [] }))
  await host.sweep()
  t.ok(health.isUp)
  t.notOk(health.isLost)
  t.same([turns, missing], [['refused', 'back'], [7n]])
})

t.test('devices are present in rooms of its own calls alone', async t => {
  const { host } = await open(t)
  const tokens = new RoomTokens({ tokenSecret: 'c', clientUrl: 'ws://127.0.0.1' })
  const device = { userId: 42n as UserId, deviceId: 1n as DeviceId }
  const { pluginToken } = tokens.admit({ roomId: 7, device })
  const ids = { session_id: 5, handle_id: 6 }
  host.takeEvents([attachedEvent(ids, pluginToken), joinedEvent(ids, 8, 77)])
  t.same(host.present(), [], 'of a call that is elsewhere')
  host.takeEvents(joinedEvent(ids, 7, 77))
  t.same(host.present(), [device])
})

t.test('a sweep keeps a room when its call comes back meanwhile', async t => {
  const { host, rooms, answers } = await open(t)
  const closed: unknown[] = []
  answers(({ request, room }) => {
    if (request === 'list') return { list: [7, 8, 9].map(id => ({ room: id, description: String(id) })) }
    closed.push(room)
    rooms.push({ callId: 9n as CallId, roomId: 9 })
    return { videoroom: 'destroyed' }
  })
  await host.sweep()
  t.same(closed, [8])
})

t.test('that it began anew is news of its own calls', async t => {
  const { host, missing } = await open(t)
  host.takeEvents({ type: 256, subtype: 1, event: { status: 'started' } })
  t.same(missing, [7n])
})

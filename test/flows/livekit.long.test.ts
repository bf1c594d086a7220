/** Calls with rooms that the server makes at a real LiveKit: who gets in, who is put out, and failures of LiveKit. */

import { join } from 'node:path'
import { RoomServiceClient } from 'livekit-server-sdk'
import t, { type Test } from 'tap'
import { checkMedia } from '../../scripts/doctor/media.ts'
import { LiveKitTokens } from '../../src/media/livekit-tokens.ts'
import { readConfig } from '../../src/server/settings/config.ts'
import { heard, meet, type Phone, start } from '../support/call-phones.ts'
import { fastClock } from '../support/fast-clock.ts'
import { membersOf } from '../support/key-members.ts'
import { buildLiveKit, type LiveKit, startLiveKit } from '../support/livekit.ts'
import { LiveKitClient } from '../support/livekit-client.ts'
import { until } from '../support/nodes.ts'
import { WireServer } from '../support/wire-server.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any form
type Body = any

const build = await buildLiveKit()

function roomsAt({ apiUrl, apiKey, apiSecret }: LiveKit): RoomServiceClient {
  return new RoomServiceClient(apiUrl, apiKey, apiSecret)
}

async function namesAt(livekit: LiveKit): Promise<string[]> {
  return (await roomsAt(livekit).listRooms()).map(({ name }) => name)
}

async function enter(t: Test, { media }: Body): Promise<LiveKitClient> {
  const client = await LiveKitClient.enter(media)
  if (typeof client === 'number') throw new Error(`LiveKit answers ${client}`)
  t.teardown(() => client.close())
  return client
}

/** The claims of a token, unverified. */
function claimsOf({ media }: Body): Body {
  return JSON.parse(Buffer.from(media.token.split('.')[1], 'base64url').toString())
}

t.test('with LiveKit', { skip: build.skip }, async t => {
  const folder = t.testdir({ data: {}, livekit: {} })
  const livekit = await startLiveKit(t, build, join(folder, 'livekit'))
  for (const name of ['99', 'lobby']) await roomsAt(livekit).createRoom({ name })
  // Records come from fronts and from the writer, which make tokens alike.
  const environment = { ...livekit.environment, CALLSIGN_FRONTS: '2' }
  const server = await WireServer.start(t, { people: 3, dataFolder: join(folder, 'data'), environment })
  const [ann, bob, cid] = (await meet(server, 3)) as [Phone, Phone, Phone]

  await t.test(
    'rooms that no live call has are closed at the start; a room with another kind of name stays',
    async () => {
      await until(async () => String(await namesAt(livekit)) === 'lobby')
      await roomsAt(livekit).deleteRoom('lobby')
    },
  )

  await t.test('each device in the call enters its room, and nothing is left at the end', async t => {
    t.match(await ann.app.get(200, 'GET /app/api/meta'), { features: { media: 'livekit' } })
    const { status, body: call } = await start(ann, [bob, cid])
    t.equal(status, 201)
    const path = `/app/api/call/${call.callId}`
    await ann.peer.subscribe(`/topic/call.${call.callId}`, 'topic')
    t.match(call.media, { kind: 'livekit', state: 'ready', url: livekit.url, keySize: 256 })
    const [room] = await roomsAt(livekit).listRooms()
    t.match(room, { name: String(call.roomId), metadata: call.callId })
    const anns = await enter(t, call)
    await heard(bob, 'call_invitation')
    const { items } = await bob.app.get(200, 'GET /app/api/call/pending')
    t.same(items[0].media, { kind: 'livekit', state: 'ready', keySize: 256 }, 'not in the call, no token')
    const joined = await bob.app.get(200, `POST ${path}/join`)
    const bobs = await enter(t, joined)
    const read = await bob.app.get(200, `GET ${path}`)
    t.equal(read.media.token, joined.media.token, 'and when it is read')
    const identities = [claimsOf(call).sub, claimsOf(joined).sub, undefined]
    const { participants } = await cid.app.get(200, `GET ${path}/participants`)
    t.strictSame(
      [ann, bob, cid].map(each => partOf(each, read)),
      identities,
    )
    t.strictSame(
      [ann, bob, cid].map(each => partOf(each, { participants })),
      identities,
    )
    t.equal((await heard(ann, 'participant_joined')).participant.identity, identities[1])
    const there = await roomsAt(livekit).listParticipants(String(call.roomId))
    t.same(there.map(({ identity }) => identity).sort(), identities.slice(0, 2).sort())
    t.ok(
      there.every(({ name, metadata }) => name === '' && metadata === ''),
      'LiveKit learns no name',
    )
    await ann.app.get(200, `POST ${path}/end`)
    await Promise.all([anns.closed, bobs.closed])
    await until(async () => (await namesAt(livekit)).length === 0)
  })

  await t.test('a room takes no token of another room, of another secret, or of no room', async t => {
    const { body: call } = await start(ann, [bob])
    const { callId, roomId } = call
    const device = { userId: 1n, deviceId: 1n } as Body
    const settings = { url: livekit.url, apiKey: livekit.apiKey, apiSecret: 'of somebody else'.repeat(3) }
    const foreign = new LiveKitTokens(settings).admit({ callId: BigInt(callId) as Body, roomId, device })
    const hourAgo = new LiveKitTokens(
      { ...settings, apiSecret: livekit.apiSecret },
      () => Date.now() - 3_660_000,
    )
    const ended = hourAgo.admit({ callId: BigInt(callId) as Body, roomId, device })
    const [, claims = ''] = call.media.token.split('.')
    for (const token of [
      'nothing',
      foreign.token,
      ended.token,
      call.media.token.replace(claims, `${claims}A`),
    ])
      t.equal(await LiveKitClient.enter({ url: livekit.url, token }), 401)
    await ann.app.get(200, `POST /app/api/call/${callId}/end`)
    await until(async () => (await namesAt(livekit)).length === 0)
    t.equal(await LiveKitClient.enter(call.media), 404, 'a token makes no room')
  })

  await t.test('a removed device is put out of a room that stays, each time that it comes again', async t => {
    const { body: call } = await start(ann, [bob, cid], { roomId: 4_711 })
    const path = `/app/api/call/${call.callId}`
    const host = await enter(t, call)
    const joined = await bob.app.get(200, `POST ${path}/join`)
    const bobs = await enter(t, joined)
    await ann.app.get(204, `POST ${path}/remove`, { userId: bob.userId })
    await bobs.closed
    const stays: number[] = []
    for (const _ of ['once', 'twice']) {
      const again = await enter(t, joined)
      const cameAtMs = performance.now()
      await again.closed
      stays.push(Math.round(performance.now() - cameAtMs))
    }
    t.comment(`it was there for ${stays.join(' and ')} ms`)
    t.ok(host.isIn)
    await ann.app.get(200, `POST ${path}/end`)
    await until(async () => (await namesAt(livekit)).length === 0)
  })

  await t.test('after a removal the call has a room that gives the removed device nothing', async t => {
    const { body: call } = await start(ann, [bob, cid], { keyMembers: membersOf([ann, bob, cid]) })
    const path = `/app/api/call/${call.callId}`
    const cids = await cid.app.get(200, `POST ${path}/join`)
    const removed = await enter(t, cids)
    const before = await bob.app.get(200, `POST ${path}/join`)
    const bobs = await enter(t, before)
    await ann.app.get(204, `POST ${path}/remove`, { userId: cid.userId })
    const [annReady, bobReady] = [await heard(ann, 'media_ready'), await heard(bob, 'media_ready')]
    t.not(annReady.roomId, call.roomId)
    t.equal(claimsOf(bobReady).video.room, String(annReady.roomId))
    t.equal(claimsOf(bobReady).sub, claimsOf(before).sub, 'those who stay know each other')
    await removed.closed
    await enter(t, annReady)
    await bobs.closed
    await until(async () => String(await namesAt(livekit)) === String(annReady.roomId))
    t.equal(await LiveKitClient.enter(cids.media), 404, 'its room is no more')
    await ann.app.get(200, `POST ${path}/end`)
    await until(async () => (await namesAt(livekit)).length === 0)
  })

  await t.test('LiveKit dies in the middle and comes back: the same room is there again', async t => {
    const { body: call } = await start(ann, [bob])
    await bob.app.get(200, `POST /app/api/call/${call.callId}/join`)
    await livekit.restart()
    const restartedAtMs = performance.now()
    const ready = await heard(bob, 'media_ready')
    t.match(ready, { callId: call.callId, roomId: call.roomId, media: { state: 'ready' } })
    await enter(t, ready)
    t.ok(performance.now() - restartedAtMs < 10_000, 'not by the next sweep, which is a minute away')
    await ann.app.get(200, `POST /app/api/call/${call.callId}/end`)
    await until(async () => (await namesAt(livekit)).length === 0)
  })

  await t.test('LiveKit hangs at the start: it rings, and the media follows', async t => {
    livekit.stop()
    const starting = start(ann, [bob])
    let isAnswered = false
    void starting.finally(() => {
      isAnswered = true
    })
    await heard(bob, 'call_invitation')
    t.notOk(isAnswered, 'the answer waits for LiveKit, the invitation does not')
    const { status, body: call } = await starting
    t.equal(status, 201)
    const pending = { kind: 'livekit', state: 'pending', keySize: 256 }
    t.same(call.media, pending)
    const joined = await bob.app.get(200, `POST /app/api/call/${call.callId}/join`)
    t.same(joined.media, pending)
    livekit.continue()
    await enter(t, await heard(bob, 'media_ready'))
    await ann.app.get(200, `POST /app/api/call/${call.callId}/end`)
    await until(async () => (await namesAt(livekit)).length === 0)
  })

  await t.test('log and faults hold no secret', async t => {
    t.notOk((server.running.stderr() + livekit.log).includes(livekit.apiSecret))
    t.notMatch(server.running.stderr(), /eyJ/)
    t.same(server.faults(), [])
  })
})

function partOf({ userId }: Phone, { participants }: Body): string | undefined {
  return participants.find((one: Body) => one.userId === userId).identity
}

t.test('a device that LiveKit has is not lost without a socket', { skip: build.skip }, async t => {
  const folder = t.testdir({ data: {}, livekit: {} })
  const livekit = await startLiveKit(t, build, join(folder, 'livekit'))
  const environment = { ...livekit.environment, ...fastClock(8), CALLSIGN_LIVEKIT_ALLOW_AES128: '1' }
  const server = await WireServer.start(t, { people: 3, dataFolder: join(folder, 'data'), environment })
  const [ann, bob, cid] = (await meet(server, 3)) as [Phone, Phone, Phone]
  const { body: call } = await start(ann, [bob, cid])
  t.match(call.media, { state: 'ready', keySize: 128 })
  const path = `/app/api/call/${call.callId}`
  const stateOf = async ({ userId }: Phone) => {
    const { participants } = await ann.app.get(200, `GET ${path}`)
    return participants.find((one: Body) => one.userId === userId).state
  }
  const bobs = await enter(t, await bob.app.get(200, `POST ${path}/join`))
  await cid.app.get(200, `POST ${path}/join`)
  for (const { peer } of [bob, cid]) peer.socket.destroy()
  await until(async () => (await stateOf(cid)) === 'lost')
  t.equal(await stateOf(bob), 'joined')
  bobs.close()
  await until(async () => (await stateOf(bob)) === 'lost')
})

t.test('the doctor tries key, secret and a client’s way', { skip: build.skip }, async t => {
  const folder = t.testdir({ data: {}, livekit: {}, open: {} })
  const livekit = await startLiveKit(t, build, join(folder, 'livekit'))
  const look = async (changed: Readonly<Record<string, string>> = {}): Promise<Body> => {
    const environment = { CALLSIGN_DATA_DIR: join(folder, 'data'), ...livekit.environment, ...changed }
    const findings = await checkMedia({ config: readConfig(environment, { dev: true }), skews: [] })
    t.notOk(JSON.stringify(findings).includes(livekit.apiSecret))
    return Object.fromEntries(findings.map(({ check, ...others }) => [check, others]))
  }
  t.match(await look(), {
    'media api': { state: 'ok', detail: /takes key and secret, and has 0 rooms/ },
    'media client': { state: 'ok', detail: /makes no room/ },
  })
  const wrong = await look({ CALLSIGN_LIVEKIT_API_SECRET: 'wrong'.repeat(10) })
  for (const check of ['media api', 'media client'])
    t.match(wrong[check], { state: 'fails', detail: /compare CALLSIGN_LIVEKIT_API_KEY/ })
  t.same(await namesAt(livekit), [])
  const open = await startLiveKit(t, build, join(folder, 'open'), { makesRooms: true })
  t.match(await look(open.environment), {
    'media client': { state: 'ok' },
    'media rooms': { state: 'fails', detail: /auto_create: false/ },
  })
  t.same(await namesAt(open), [])
  await livekit.kill()
  const dead = await look()
  t.match(dead['media api'], { state: 'fails', detail: /can't be reached \(network\)/ })
  t.match(dead['media client'], { state: 'fails', detail: /can't be reached \(ECONNREFUSED\)/ })
})

/** Calls with rooms that the server makes at a real Janus: who gets in, who is put out, and failures of Janus. */

import { createSecretKey } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { checkMedia } from '../../scripts/doctor/media.ts'
import { JanusAdmin } from '../../src/media/janus-admin.ts'
import { JanusEvents, sessionIdsOf } from '../../src/media/janus-events.ts'
import { JanusGateway } from '../../src/media/janus-gateway.ts'
import { RoomTokens } from '../../src/media/room-tokens.ts'
import { readConfig } from '../../src/server/settings/config.ts'
import { heard, meet, type Phone, start } from '../support/call-phones.ts'
import { fastClock } from '../support/fast-clock.ts'
import { type Janus, skipWithoutJanus, startJanus } from '../support/janus.ts'
import { enter, JanusClient } from '../support/janus-client.ts'
import { membersOf } from '../support/key-members.ts'
import { until } from '../support/nodes.ts'
import { runProgram, startedProgram } from '../support/programs.ts'
import { startServer } from '../support/server.ts'
import { long } from '../support/size.ts'
import { WireServer } from '../support/wire-server.ts'

interface House {
  readonly janus: Janus
  readonly server: WireServer
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of any form
type Body = any

async function open(t: Test, environment: Readonly<Record<string, string>> = {}): Promise<House> {
  const folder = t.testdir({ data: {} })
  const janus = await startJanus(t, join(folder, 'janus'))
  const options = {
    people: 9,
    dataFolder: join(folder, 'data'),
    environment: { ...janus.environment, ...environment },
  }
  // What is loaded before a program needs one.
  const isChanged = environment.NODE_OPTIONS !== undefined
  const server = await (isChanged ? WireServer.start(t, options) : WireServer.open(t, options))
  return { janus, server }
}

async function metaOf(http: string): Promise<Body> {
  return (await fetch(`${http}/app/api/meta`)).json()
}

const NO_SUCH_SESSION = 458

async function roomsOf({ janus }: Pick<House, 'janus'>): Promise<number[]> {
  const { list } = await janus.videoRoom({ request: 'list', admin_key: janus.secrets.adminKey })
  return (list as { room: number }[]).map(({ room }) => room)
}

t.test('with Janus', { skip: skipWithoutJanus }, async t => {
  const house = await open(t)
  const { janus, server } = house
  const [ann, bob, cid] = (await meet(server, 3)) as [Phone, Phone, Phone]

  await t.test('each device in the call enters its room, and nothing is left at the end', async t => {
    t.match(await ann.app.get(200, 'GET /app/api/meta'), { features: { media: 'janus' } })
    const { status, body: call } = await start(ann, [bob, cid])
    t.equal(status, 201)
    t.match(call, { media: { kind: 'janus', state: 'ready', url: janus.url } })
    t.ok(call.roomId >= 2 ** 32, 'a number that nobody guesses')
    await enter(t, call)
    await heard(bob, 'call_invitation')
    const { items } = await bob.app.get(200, 'GET /app/api/call/pending')
    t.same(items[0].media, { kind: 'janus', state: 'ready' }, 'not in the call, no token')
    const joined = await bob.app.get(200, `POST /app/api/call/${call.callId}/join`)
    await enter(t, joined)
    const read = await bob.app.get(200, `GET /app/api/call/${call.callId}`)
    t.match(
      read.media,
      { state: 'ready', url: janus.url, roomToken: /,room=/ },
      'and each time when it is read',
    )
    t.not(joined.media.roomToken, call.media.roomToken)
    await ann.app.get(200, `POST /app/api/call/${call.callId}/end`)
    await until(async () => (await roomsOf(house)).length === 0)
  })

  await t.test('a room takes no token of another room, of another device, or without the list', async t => {
    const { body: call } = await start(ann, [bob])
    const { media, roomId, callId } = call
    const settings = { tokenSecret: janus.secrets.tokenSecret, clientUrl: janus.url }
    const [userId, deviceId] = [BigInt(bob.userId), BigInt(bob.deviceId)] as Body
    const device = { userId, deviceId }
    const tokens = new RoomTokens(settings)
    const ofAnHourAgo = new RoomTokens(settings, () => Date.now() - 3_600_000)
    const { roomToken, pluginToken } = ofAnHourAgo.admit({
      roomId,
      device: { userId: BigInt(ann.userId), deviceId: BigInt(ann.deviceId) } as Body,
    })
    for (const token of [
      tokens.admit({ roomId: roomId + 1, device }).roomToken,
      tokens.admit({ roomId, device }).roomToken,
      roomToken,
      'nothing',
    ]) {
      const client = await JanusClient.open(media)
      t.match(await client.join(roomId, token), { error_code: 433 })
      client.close()
    }
    const client = await JanusClient.open({ url: janus.url, roomToken, pluginToken })
    t.match(await client.join(roomId, media.roomToken), { error_code: 403 })
    client.close()
    await ann.app.get(200, `POST /app/api/call/${callId}/end`)
  })

  await t.test('tokens last an hour at most, and a living session goes on with newer ones', async t => {
    const { body: call } = await start(ann, [bob])
    const { media, roomId, callId } = call
    for (const token of [media.roomToken, media.pluginToken]) {
      const endsInMs = Number(/^\d+/.exec(token)![0]) * 1000 - Date.now()
      t.ok(endsInMs > 0 && endsInMs <= 3_600_000)
    }
    const client = await enter(t, call)
    const settings = { tokenSecret: janus.secrets.tokenSecret, clientUrl: janus.url }
    const device = { userId: BigInt(ann.userId), deviceId: BigInt(ann.deviceId) } as Body
    client.pluginToken = new RoomTokens(settings, () => Date.now() - 3_600_000).admit({
      roomId,
      device,
    }).pluginToken
    t.match(await client.request({ janus: 'keepalive' }), { error: { code: 403 } }, 'ended')
    client.pluginToken = new RoomTokens(settings, () => Date.now() + 1_800_000).admit({
      roomId,
      device,
    }).pluginToken
    t.match(await client.request({ janus: 'keepalive' }), { janus: 'ack' })
    await ann.app.get(200, `POST /app/api/call/${callId}/end`)
  })

  await t.test('a device that is removed is put out, and its tokens are worth nothing', async t => {
    const { body: call } = await start(ann, [bob, cid])
    const { callId, roomId } = call
    const host = await enter(t, call)
    const joined = await bob.app.get(200, `POST /app/api/call/${callId}/join`)
    const client = await enter(t, joined)
    await ann.app.get(204, `POST /app/api/call/${callId}/remove`, { userId: bob.userId })
    const isFarewell = ({ plugindata }: Body) => plugindata?.data?.kicked ?? plugindata?.data?.leaving
    await host.next(isFarewell)
    await until(async () => (await client.request({ janus: 'keepalive' })).error?.code === NO_SUCH_SESSION)
    const again = await JanusClient.open(joined.media)
    t.match(await again.join(roomId, joined.media.roomToken), { error_code: 433 })
    again.close()
    await ann.app.get(200, `POST /app/api/call/${callId}/end`)
  })

  await t.test('after a removal the call has a room that gives the removed device nothing', async t => {
    const { body: call } = await start(ann, [bob, cid], { keyMembers: membersOf([ann, bob, cid]) })
    const path = `/app/api/call/${call.callId}`
    const cids = await cid.app.get(200, `POST ${path}/join`)
    const [removed, kept] = [await JanusClient.open(cids.media), await JanusClient.open(cids.media)]
    for (const client of [removed, kept]) t.teardown(() => client.close())
    const { private_id } = await removed.join(call.roomId, cids.media.roomToken)
    t.match(await kept.join(call.roomId, 'nothing'), { error_code: 433 }, 'a session outside of each room')
    const bobs = await bob.app.get(200, `POST ${path}/join`)
    const before = await enter(t, bobs)
    await ann.app.get(204, `POST ${path}/remove`, { userId: cid.userId })
    const isNext = ({ callId, roomId }: Body) => callId === call.callId && roomId !== call.roomId
    const annReady = await heard(ann, 'media_ready', isNext)
    const bobReady = await heard(bob, 'media_ready', isNext)
    const { roomId } = annReady
    t.not(roomId, call.roomId)
    t.equal(bobReady.roomId, roomId)
    t.match(await bob.app.get(200, `GET ${path}`), { roomId, media: { state: 'ready' } })
    await cid.app.get(404, `GET ${path}`)

    const host = await enter(t, annReady)
    t.same((await host.message({ request: 'listparticipants', room: roomId })).participants.length, 1)
    const { id } = await (await JanusClient.open(bobReady.media)).join(roomId, bobReady.media.roomToken)
    await until(async () => (await removed.request({ janus: 'keepalive' })).error?.code === NO_SUCH_SESSION)
    t.match(await kept.request({ janus: 'keepalive' }), { janus: 'ack' }, 'it goes on')
    const [join, room, token] = ['join', roomId, cids.media.roomToken]
    t.match(await kept.message({ request: join, ptype: 'publisher', room, token }), { error_code: 433 })
    const subscribing = { request: join, ptype: 'subscriber', room, token, streams: [{ feed: id }] }
    for (const guessed of [private_id, private_id + 1])
      t.ok((await kept.message({ ...subscribing, private_id: guessed })).error_code)
    await before.next(({ plugindata }: Body) => plugindata?.data?.videoroom === 'destroyed')
    await until(async () => String(await roomsOf(house)) === String(roomId))
    await ann.app.get(200, `POST ${path}/end`)
    await until(async () => (await roomsOf(house)).length === 0)
  })

  await t.test('the server says whose each feed is, whatever name a device takes at the gateway', async t => {
    const { body: call } = await start(ann, [bob])
    const path = `/app/api/call/${call.callId}`
    const { media, roomId } = await bob.app.get(200, `POST ${path}/join`)
    await ann.peer.subscribe(`/topic/call.${call.callId}`, 'topic')
    const client = await JanusClient.open(media)
    t.teardown(() => client.close())
    const { id } = await client.join(roomId, media.roomToken, { display: `${ann.userId}:Ann` })
    const changed = await heard(ann, 'media_changed')
    t.match(changed.participant, { userId: bob.userId, deviceId: bob.deviceId, feedIds: [id] })
    const feeds = async () => {
      const { participants } = await ann.app.get(200, `GET ${path}`)
      return Object.fromEntries(participants.map(({ userId, feedIds }: Body) => [userId, feedIds]))
    }
    t.same(await feeds(), { [ann.userId]: undefined, [bob.userId]: [id] })
    await client.request({ janus: 'destroy' })
    t.match((await heard(ann, 'media_changed')).participant, { userId: bob.userId, feedIds: [] })
    await ann.app.get(200, `POST ${path}/end`)
  })

  await t.test('a room that a live call has is in use, also by the number', async t => {
    const { body: call } = await start(ann, [bob], { roomId: 4_711 })
    t.equal(call.roomId, 4_711)
    t.match(await start(cid, [ann], { roomId: 4_711 }), { status: 409, body: { code: 'ROOM_IN_USE' } })
    await ann.app.get(200, `POST /app/api/call/${call.callId}/end`)
  })

  await t.test('Janus dies in the middle and comes back: the same room is there again', async t => {
    const { body: call } = await start(ann, [bob])
    await bob.app.get(200, `POST /app/api/call/${call.callId}/join`)
    await janus.restart()
    const restartedAtMs = performance.now()
    const ready = await heard(bob, 'media_ready', ({ callId }) => callId === call.callId)
    t.match(ready, { callId: call.callId, roomId: call.roomId, media: { state: 'ready' } })
    await enter(t, ready)
    t.ok(performance.now() - restartedAtMs < 10_000, 'not by the next sweep, which is a minute away')
    await ann.app.get(200, `POST /app/api/call/${call.callId}/end`)
  })

  await t.test('Janus hangs at the start: it rings, and the media follows', async t => {
    janus.stop()
    const starting = start(ann, [bob])
    let isAnswered = false
    void starting.finally(() => {
      isAnswered = true
    })
    await heard(bob, 'call_invitation')
    t.notOk(isAnswered, 'the answer waits for Janus, the invitation does not')
    const { status, body: call } = await starting
    t.equal(status, 201)
    t.same(call.media, { kind: 'janus', state: 'pending' })
    const joined = await bob.app.get(200, `POST /app/api/call/${call.callId}/join`)
    t.same(joined.media, { kind: 'janus', state: 'pending' })
    janus.continue()
    const ready = await heard(bob, 'media_ready', ({ callId }) => callId === call.callId)
    await enter(t, ready)
    await ann.app.get(200, `POST /app/api/call/${call.callId}/end`)
    await until(async () => (await roomsOf(house)).length === 0)
  })

  await t.test('log and faults hold no secret', async t => {
    const text = server.running.stderr() + janus.log
    for (const secret of Object.values(janus.secrets)) t.notOk(text.includes(secret))
    t.notMatch(text, /janus\.plugin\.videoroom,/)
    t.same(server.faults(), [])
  })
})

t.test(
  'a device that the gateway hears is not lost without a socket',
  long({ skip: skipWithoutJanus }),
  async t => {
    // No faster: two fronts have thirty of these seconds to start.
    const { server } = await open(t, fastClock(4))
    const [ann, bob, cid] = (await meet(server, 3)) as [Phone, Phone, Phone]
    const { body: call } = await start(ann, [bob, cid])
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
    await bobs.request({ janus: 'destroy' })
    await until(async () => (await stateOf(bob)) === 'lost')
  },
)

t.test('rooms that no live call has are closed at the start', { skip: skipWithoutJanus }, async t => {
  const folder = t.testdir()
  const janus = await startJanus(t, join(folder, 'janus'))
  const create = { request: 'create', admin_key: janus.secrets.adminKey, is_private: true }
  await janus.videoRoom({ ...create, room: 99 })
  await janus.videoRoom({ ...create, room: 100, secret: 'of somebody else' })
  const dataFolder = join(folder, 'data')
  const server = await WireServer.open(t, { people: 1, dataFolder, environment: janus.environment })
  await until(async () => !(await roomsOf({ janus })).includes(99))
  t.same(await roomsOf({ janus }), [100], 'a room with a secret of its own stays')
  // It is counted once the gateway has answered.
  const strangers = 'callsign_media_strangers_total{gateway="janus"}'
  t.equal(await server.figureWhen(strangers, count => count > 0), 1)
})

t.test(
  'the room before a removal is closed after a crash, too',
  long({ skip: skipWithoutJanus }),
  async t => {
    const folder = t.testdir({ data: {} })
    const janus = await startJanus(t, join(folder, 'janus'))
    const options = { people: 3, dataFolder: join(folder, 'data'), environment: janus.environment }
    const server = await WireServer.start(t, options)
    const [ann, bob, cid] = (await meet(server, 3)) as [Phone, Phone, Phone]
    const { body: call } = await start(ann, [bob, cid], { keyMembers: membersOf([ann, bob, cid]) })
    const path = `/app/api/call/${call.callId}`
    for (const { app } of [bob, cid]) await app.get(200, `POST ${path}/join`)
    await ann.app.get(204, `POST ${path}/remove`, { userId: cid.userId })
    const { roomId } = await ann.app.get(200, `GET ${path}`)
    await server.running.end('SIGKILL')
    await WireServer.start(t, options)
    await until(async () => String(await roomsOf({ janus })) === String(roomId))
    t.not(roomId, call.roomId)
  },
)

t.test('feeds with lost events are found in the sessions', { skip: skipWithoutJanus }, async t => {
  const janus = await startJanus(t, join(t.testdir(), 'janus'), { sendsEvents: false })
  const { adminKey, adminSecret, tokenSecret } = janus.secrets
  const admin = new JanusAdmin({ adminUrl: janus.adminUrl, adminSecret })
  const tokens = new RoomTokens({ tokenSecret, clientUrl: janus.url })
  const told: unknown[] = []
  const events = new JanusEvents({
    tokens,
    monotonicMs: () => 0,
    onRestarted: () => undefined,
    onFeeds: ({ userId }, roomId, feedIds) => told.push([String(userId), roomId, feedIds]),
  })
  const gateway = new JanusGateway({
    ...{ admin, adminKey, tokens, sessionsOf: events.sessionsOf },
    roomKey: createSecretKey(Buffer.alloc(32)),
  })
  const device = { userId: 42n, deviceId: 1n } as Body
  const room = { callId: 9n as Body, roomId: 77 }
  await gateway.open(room, [{ ...room, gateway: 'janus', device }])
  const media = tokens.admit({ roomId: 77, device })
  const client = await JanusClient.open(media)
  t.teardown(() => client.close())
  const { id } = await client.join(77, media.roomToken)
  for (const sessionId of sessionIdsOf(await admin.request({ janus: 'list_sessions' }))) {
    t.equal(events.isKnown(sessionId), false)
    events.take(await gateway.eventsOf(sessionId))
    t.equal(events.isKnown(sessionId), true)
  }
  t.same(told, [['42', 77, [id]]])
})

t.test('a taken port of the events costs hints, and no call', { skip: skipWithoutJanus }, async t => {
  const folder = t.testdir()
  const janus = await startJanus(t, join(folder, 'janus'))
  const squatter = createServer().listen(janus.eventsPort, '127.0.0.1')
  t.teardown(() => squatter.close())
  await once(squatter, 'listening')
  const dataFolder = join(folder, 'data')
  const server = await WireServer.open(t, { people: 2, dataFolder, environment: janus.environment })
  await until(async () => server.running.stderr().includes('"event":"media-events-not-taken"'))
  const [ann, bob] = (await meet(server, 2)) as [Phone, Phone]
  t.match((await start(ann, [bob])).body.media, { state: 'ready' })
})

t.test('a development server starts a Janus and ends it', { skip: skipWithoutJanus }, async t => {
  const folder = t.testdir()
  const server = await startServer({ dataFolder: join(folder, 'with'), args: ['--janus'] })
  t.teardown(() => server.end('SIGKILL'))
  t.match(await metaOf(server.http), { features: { media: 'janus' } })
  // The banner follows the line that says that it is ready.
  const named = / media +(ws:\S+) +Janus/
  await until(async () => named.test(server.stderr()))
  const [, url = ''] = named.exec(server.stderr())!
  const isThere = async () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.on('error', () => undefined).destroy()
    return isOpen
  }
  t.ok(await isThere())
  const page = await fetch(`${server.http}/dev/client`)
  t.match(page.headers.get('content-security-policy'), `connect-src 'self' ${url}`)
  t.equal(await server.end('SIGKILL'), 'SIGKILL')
  await until(async () => !(await isThere()))

  const environment = { CALLSIGN_DEV_JANUS: 'off' }
  const without = await startServer({ dataFolder: join(folder, 'off'), args: ['--janus'], environment })
  t.teardown(() => without.end('SIGKILL'))
  t.match(await metaOf(without.http), { features: { media: 'client' } })
  await until(async () => /group media .*apt: janus/.test(without.stderr()))
})

t.test('the doctor tries secrets, key and a client’s way', { skip: skipWithoutJanus }, async t => {
  const folder = t.testdir()
  const janus = await startJanus(t, join(folder, 'janus'))
  const consult = async (changed: Readonly<Record<string, string>> = {}) => {
    const environment = { CALLSIGN_DATA_DIR: join(folder, 'data'), ...janus.environment, ...changed }
    const flags = [startedProgram('scripts/doctor'), '--dev', '--json']
    const { stdout } = await runProgram(process.execPath, flags, { environment })
    for (const secret of Object.values(janus.secrets)) t.notOk(stdout.includes(secret))
    const lines = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Body)
    return Object.fromEntries(lines.map(({ check, ...others }) => [check, others]))
  }
  /** The one check, in the test's process. */
  const look = async (changed: Readonly<Record<string, string>> = {}): Promise<Body> => {
    const environment = { CALLSIGN_DATA_DIR: join(folder, 'data'), ...janus.environment, ...changed }
    const findings = await checkMedia({ config: readConfig(environment, { dev: true }), skews: [] })
    for (const secret of Object.values(janus.secrets)) t.notOk(JSON.stringify(findings).includes(secret))
    const lines = findings.map(({ check, state, detail }) => [check, { ok: state === 'ok', detail }])
    return Object.fromEntries(lines)
  }
  t.match(await consult(), {
    'media admin': { ok: true },
    'media client': { ok: true },
    'media events': { ok: true },
  })
  for (const [name, check, advice] of [
    ['CALLSIGN_JANUS_ADMIN_SECRET', 'media admin', /CALLSIGN_JANUS_ADMIN_SECRET with its admin_secret/],
    ['CALLSIGN_JANUS_ADMIN_KEY', 'media admin', /CALLSIGN_JANUS_ADMIN_KEY with admin_key/],
    ['CALLSIGN_JANUS_TOKEN_SECRET', 'media client', /CALLSIGN_JANUS_TOKEN_SECRET/],
  ] as const) {
    t.match((await look({ [name]: 'wrong' }))[check], { ok: false, detail: advice })
  }
  t.match(
    (await look({ CALLSIGN_JANUS_EVENTS_PORT: '', CALLSIGN_JANUS_EVENTS_PASSWORD: '' }))['media events'],
    {
      ok: false,
      detail: /CALLSIGN_JANUS_EVENTS_PORT/,
    },
  )
  const silent = await startJanus(t, join(folder, 'silent'), { sendsEvents: false })
  t.match((await look(silent.environment))['media events'], { ok: false, detail: /event handler/ })
  await janus.kill()
  const found = await look()
  t.match(found['media admin'], { ok: false, detail: /can't be reached \(network\)/ })
  t.match(found['media client'], { ok: false, detail: /can't be reached \(ECONNREFUSED\)/ })
})

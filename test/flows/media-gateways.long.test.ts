/** Two Janus: a call goes on at the other when its own is killed, hangs, or is gone from the list; and one of them drains. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { checkMedia } from '../../scripts/doctor/media.ts'
import { readConfig } from '../../src/server/settings/config.ts'
import { befriend, type Person, settingsFor, signInPerson, startCall } from '../support/call-people.ts'
import { heard, type Phone } from '../support/call-phones.ts'
import { freePort } from '../support/free-port.ts'
import { type Janus, skipWithoutJanus, startJanus } from '../support/janus.ts'
import { enter } from '../support/janus-client.ts'
import { Cluster, eventually, until } from '../support/nodes.ts'
import { productionEnvironment } from '../support/outside-world.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { type RunningServer, startServer } from '../support/server.ts'
import { SocketClient } from '../support/socket-client.ts'
import { deviceOf } from '../support/wire-server.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any form
type Body = any

interface Gateways {
  readonly one: Janus
  readonly two: Janus
  readonly environment: Readonly<Record<string, string>>
  /** Writes the list, by name. */
  list(gateways: Readonly<Record<string, { readonly janus: Janus; readonly more?: object }>>): void
  /** The one with this address. */
  at(url: string): Gateway
}

interface Gateway {
  readonly name: 'one' | 'two'
  readonly janus: Janus
}

async function openGateways(t: Test, folder: string): Promise<Gateways> {
  const port = await freePort()
  const eventsUrl = `http://127.0.0.1:${port}/events`
  const open = (name: string) => startJanus(t, join(folder, name), { eventsUrl, eventsUser: name })
  const [one, two] = [await open('one'), await open('two')]
  const file = join(folder, 'gateways.json')
  const list: Gateways['list'] = gateways => {
    const listed = Object.entries(gateways).map(([name, { janus, more }]) => janus.listed(name, more))
    writeFileSync(file, JSON.stringify({ gateways: listed }), { mode: 0o600 })
  }
  list({ one: { janus: one }, two: { janus: two } })
  return {
    ...{ one, two, list },
    environment: { CALLSIGN_JANUS_FILE: file, CALLSIGN_JANUS_EVENTS_PORT: String(port) },
    at: url => (url === one.url ? { name: 'one', janus: one } : { name: 'two', janus: two }),
  }
}

async function connect(server: Pick<RunningServer, 'http'>, person: Person): Promise<Phone> {
  const peer = await SocketClient.connect('websocket', server.http, deviceOf(person).token)
  await peer.subscribe('/user/queue/calls', 'calls')
  return { ...person, peer }
}

async function roomsOf(janus: Janus): Promise<number[]> {
  const { list } = await janus.videoRoom({ request: 'list', admin_key: janus.secrets.adminKey })
  return (list as { room: number }[]).map(({ room }) => room)
}

/** Each hears of the other gateway, and gets into the room there. */
async function goOn(t: Test, phones: readonly Phone[], { janus }: Gateway): Promise<void> {
  for (const phone of phones) {
    const ready = await heard(phone, 'media_ready')
    t.match(ready.media, { kind: 'janus', state: 'ready', url: janus.url })
    await enter(t, ready)
  }
}

/** The writer's figure for this gateway, of the first outcome; NaN without one. */
async function figureOf(
  { admin }: Pick<RunningServer, 'admin'>,
  name: string,
  gateway: string,
): Promise<number> {
  const lines = (await (await fetch(`${admin}/metrics`)).text()).split('\n')
  const line = lines.find(each => each.startsWith(`${name}{`) && each.includes(`gateway="${gateway}"`))
  return Number(line?.split(' ').at(-1))
}

const SERVED_BY = { CALLSIGN_FRONTS: '2' }

t.test('two Janus and two fronts', { skip: skipWithoutJanus }, async t => {
  const folder = t.testdir()
  const gateways = await openGateways(t, folder)
  const { one, two, list, at } = gateways
  const environment = {
    ...{ ...productionEnvironment(), ...settingsFor(4), ...SERVED_BY },
    ...gateways.environment,
  }
  const server = await startServer({ dataFolder: join(folder, 'data'), dev: false, environment })
  t.teardown(() => server.end('SIGKILL'))
  const people = await Promise.all([0, 1, 2, 3].map(number => signInPerson(server.http, number)))
  const [ann, bob, cid, dan] = (await Promise.all(people.map(each => connect(server, each)))) as [
    Phone,
    Phone,
    Phone,
    Phone,
  ]
  await befriend(ann, bob)
  await befriend(cid, dan)
  const otherOf = ({ name }: Gateway) => at(name === 'one' ? two.url : one.url)
  const figure = (name: string, gateway: string) => figureOf(server, name, gateway)
  /** Sends SIGHUP and resolves when the log says what came of it. */
  const renew = async (outcome: 'renewed' | 'not-renewed') => {
    const before = server.stderr().length
    server.process.kill('SIGHUP')
    await until(async () => server.stderr().slice(before).includes(`"event":"media-gateways-${outcome}"`))
  }

  const { body: call } = await startCall(ann, [bob])
  const path = `/app/api/call/${call.callId}`
  const bobs = await bob.app.get(200, `POST ${path}/join`)
  const first = at(call.media.url)
  const second = otherOf(first)

  await t.test('its gateway is killed: the call goes on at the other', async t => {
    t.equal(bobs.media.url, first.janus.url)
    await enter(t, call)
    await enter(t, bobs)
    await first.janus.kill()
    const killedAtMs = performance.now()
    await goOn(t, [ann, bob], second)
    t.comment(`after ${Math.round(performance.now() - killedAtMs)} ms`)
    t.match(await ann.app.get(200, `GET ${path}`), { roomId: call.roomId, media: { url: second.janus.url } })
    t.same(await roomsOf(second.janus), [call.roomId])
    t.equal(await figure('callsign_media_gateway_up', first.name), 0)
    t.equal(await figure('callsign_media_calls', second.name), 1)
    t.equal(await figure('callsign_media_calls', first.name), 0)
  })

  await t.test('that one hangs: the call goes back, and its old room ends once it goes on', async t => {
    await first.janus.start()
    await until(async () => (await figure('callsign_media_gateway_up', first.name)) === 1)
    second.janus.stop()
    const stoppedAtMs = performance.now()
    await goOn(t, [ann, bob], first)
    t.comment(`after ${Math.round(performance.now() - stoppedAtMs)} ms`)
    second.janus.continue()
    await until(async () => (await roomsOf(second.janus)).length === 0)
    t.same(await roomsOf(first.janus), [call.roomId])
    t.match(await bob.app.get(200, `GET ${path}`), { media: { state: 'ready', url: first.janus.url } })
  })

  await t.test('feeds are those of the gateway that has the call', async t => {
    const client = await enter(t, await bob.app.get(200, `GET ${path}`))
    const { id } = await client
      .message({ request: 'listparticipants', room: call.roomId })
      .then(({ participants }: Body) => participants.at(-1))
    await until(async () => {
      const { participants } = await ann.app.get(200, `GET ${path}`)
      return participants.some((each: Body) => each.feedIds?.includes(id))
    })
    t.pass('by its own login')
  })

  await t.test('it drains: the call stays, and the next one is elsewhere', async t => {
    list({
      [first.name]: { janus: first.janus, more: { drain: true } },
      [second.name]: { janus: second.janus },
    })
    await renew('renewed')
    const { status, body: next } = await startCall(cid, [dan])
    t.equal(status, 201)
    t.equal(next.media.url, second.janus.url)
    await enter(t, next)
    t.match(await ann.app.get(200, `GET ${path}`), { media: { state: 'ready', url: first.janus.url } })
    t.equal(await figure('callsign_media_gateway_draining', first.name), 1)
    await cid.app.get(200, `POST /app/api/call/${next.callId}/end`)
  })

  await t.test('a list that can not be used is named, and the one before stays', async t => {
    list({ one: { janus: one, more: { weight: 1_000 } }, two: { janus: two } })
    await renew('not-renewed')
    t.match(server.stderr(), /"one\\": weight is a whole number from 1 to 100/)
    t.match(await ann.app.get(200, `GET ${path}`), { media: { state: 'ready', url: first.janus.url } })
    t.equal(await figure('callsign_media_gateway_draining', first.name), 1)
  })

  await t.test('it is gone from the list: its calls go to the other at once', async t => {
    list({ [second.name]: { janus: second.janus } })
    await renew('renewed')
    await goOn(t, [ann, bob], second)
    t.ok(Number.isNaN(await figure('callsign_media_gateway_up', first.name)), 'and it has no figures')
  })

  await t.test(
    'a gateway that is new in the list: fronts make tokens for it before the call is there',
    async t => {
      list({ three: { janus: first.janus } })
      await renew('renewed')
      await goOn(t, [ann, bob], first)
      t.equal(await figure('callsign_media_calls', 'three'), 1)
      t.match(await ann.app.get(200, `GET ${path}`), { media: { state: 'ready', url: first.janus.url } })
    },
  )

  await t.test('the doctor tries each, by its name where there are several', async t => {
    const look = async () => {
      const config = readConfig(gateways.environment, { dev: true })
      return (await checkMedia({ config, skews: [] })).map(({ check, state }) => `${check} ${state}`)
    }
    t.same(await look(), ['media admin ok', 'media client ok', 'media events ok'])
    const drain = { drain: true }
    list({ one: { janus: one, more: drain }, two: { janus: two, more: { ...drain, adminKey: 'wrong' } } })
    t.same(await look(), [
      'media admin of one ok',
      'media client of one ok',
      'media events of one ok',
      'media admin of two fails',
      'media client of two ok',
      'media events of two ok',
      'media gateways fails',
    ])
  })

  await t.test('the log names gateways and no secret', async t => {
    await ann.app.get(200, `POST ${path}/end`)
    await until(async () => (await roomsOf(first.janus)).length === 0)
    const text = server.stderr()
    t.match(text, new RegExp(`"event":"media-gateway-lost","gateway":"${first.name}"`))
    t.match(text, new RegExp(`"event":"media-gateway-given-up","gateway":"${first.name}","calls":1`))
    for (const janus of [one, two])
      for (const secret of Object.values(janus.secrets)) t.notOk(text.includes(secret))
    t.notMatch(text, /"event":"(?:fault|actor-failed|fatal)"/)
  })
})

t.test(
  'another node takes over: calls keep their gateway, and a call at a lost one goes on at the other',
  { skip: skipWithoutJanus || skipWithoutPostgres },
  async t => {
    const folder = t.testdir()
    const gateways = await openGateways(t, folder)
    const { at, one, two } = gateways
    const { environment } = gateways
    const cluster = await Cluster.start(t, { environment, folder: join(folder, 'nodes') })
    const { server } = cluster.two
    const people = await Promise.all([0, 1].map(number => signInPerson(server.http, number)))
    const [ann, bob] = (await Promise.all(people.map(each => connect(server, each)))) as [Phone, Phone]
    await befriend(ann, bob)
    const { body: call } = await startCall(ann, [bob])
    const path = `/app/api/call/${call.callId}`
    await bob.app.get(200, `POST ${path}/join`)
    const first = at(call.media.url)
    const second = at(first.name === 'one' ? two.url : one.url)
    await enter(t, call)

    await cluster.one.end('SIGKILL')
    await until(async () => (await cluster.writer()) === cluster.two)
    // It has looked at both more than once, and swept them.
    for (const { name } of [first, second])
      await until(async () => (await figureOf(server, 'callsign_media_requests_total', name)) >= 4)
    const read = await eventually(() => ann.app.get(200, `GET ${path}`))
    const [annAgain, bobAgain] = [await connect(server, ann), await connect(server, bob)]
    t.match(read, { media: { state: 'ready', url: first.janus.url } })
    t.same([await roomsOf(first.janus), await roomsOf(second.janus)], [[call.roomId], []])
    await first.janus.kill()
    await goOn(t, [annAgain, bobAgain], second)
    await ann.app.get(200, `POST ${path}/end`)
    await until(async () => (await roomsOf(second.janus)).length === 0)
  },
)

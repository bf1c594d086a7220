/**
 * The server side of the development console: it shows a call as it goes, to this machine alone, and never delays a
 * stop.
 */

import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type {
  ConsoleEvent,
  ConsoleState,
  FeedAnswer,
  RequestRow,
} from '../../src/operations/console/events.ts'
import { meetPeople, newCallKey, type Person, settingsFor } from '../support/call-people.ts'
import { openServer } from '../support/open-server.ts'
import { productionEnvironment } from '../support/outside-world.ts'
import type { OpenServer } from '../support/server.ts'
import { SocketClient } from '../support/socket-client.ts'

function start(t: Test, environment: Record<string, string> = {}): Promise<OpenServer> {
  return openServer({ dataFolder: join(t.testdir(), 'data'), environment })
}

/** Shared by the tests that only ask. */
const HOUSE = await start(t)
t.teardown(() => HOUSE.end())

/** Reads the feed from the start, waiting for it, until an event is there. */
async function readUntil(http: string, isSo: (event: ConsoleEvent) => boolean): Promise<ConsoleEvent[]> {
  const events: ConsoleEvent[] = []
  for (let after = 0; !events.some(isSo); ) {
    const answer = (await (await fetch(`${http}/dev/feed?after=${after}`)).json()) as FeedAnswer
    events.push(...answer.events)
    after = answer.next
  }
  return events
}

async function stateOf(http: string): Promise<ConsoleState> {
  return (await (await fetch(`${http}/dev/state`)).json()) as ConsoleState
}

interface Asked {
  readonly method?: 'GET' | 'POST' | 'OPTIONS'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends what `fetch` would not, such as another host. */
async function ask(http: string, path: string, { method = 'GET', headers = {}, body = '' }: Asked) {
  const sent = request(`${http}${path}`, { method, headers, agent: false })
  sent.end(body)
  const [answer] = await once(sent, 'response')
  let text = ''
  for await (const part of answer.setEncoding('utf8')) text += part
  const code: string | undefined = text.startsWith('{') ? JSON.parse(text).code : undefined
  return { status: answer.statusCode as number, code, headers: answer.headers, text }
}

async function startCall({ app }: Person, callee: Person, key: string): Promise<string> {
  const { callId } = await app.get(201, 'POST /app/api/call/start', {
    calleeIds: [callee.userId],
    encryptedAESKeys: { [`${callee.userId}_${callee.deviceId}`]: key },
    isVideo: false,
  })
  return callId
}

t.test('a call is seen as it goes, with who was told what, and without its keys', async t => {
  const server = await start(t, { ...settingsFor(2), CALLSIGN_STOMP_TCP_PORT: '0' })
  t.teardown(() => server.end())
  const [ann, bob] = (await meetPeople(server.http, 2)) as [Person, Person]
  const socket = await SocketClient.connect('tcp', server.stompTcp!, bob.app.accessToken!)
  await readUntil(server.http, ({ type }) => type === 'connection')
  const online = await stateOf(server.http)
  t.match(online.devices, [{ ...idsOf(bob), displayName: 'Person 1' }])
  // The new contact; and the request, if he was told of it before he accepted it.
  t.ok([1, 2].includes(online.devices[0]!.waiting))
  t.equal(online.log.vkey, server.vkey)
  t.equal(online.log.treeSize, 2)
  t.match(online.log.index, { vkey: /^localhost\/callsign-dev\/index\+/, isHeld: false })

  const key = newCallKey()
  const callId = await startCall(ann, bob, key)
  t.match((await stateOf(server.http)).calls, [{ callId, status: 'ringing' }])
  await bob.app.get(200, `POST /app/api/call/${callId}/join`)
  await ann.app.get(200, 'POST /app/api/call/end', { callId })
  socket.destroy()
  const isGone = (event: ConsoleEvent): boolean => event.type === 'connection' && !event.isOnline
  const events = await readUntil(server.http, isGone)

  const calls = events.filter(event => event.type === 'call')
  t.match(
    calls.map(({ command, status, told }) => [command, status, told.map(({ type }) => type)]),
    [
      ['start', 'ringing', ['call_invitation']],
      ['join', 'active', []],
      ['end', 'ended', ['call_ended']],
    ],
  )
  t.match(calls[0], { ...idsOf(ann), callId, told: [{ ...idsOf(bob), type: 'call_invitation' }] })
  t.match(calls[1]?.participants, [
    { userId: ann.userId, displayName: 'Person 0', status: 'joined' },
    { userId: bob.userId, displayName: 'Person 1', status: 'joined' },
  ])
  const presence = events.filter(isPresence)
  t.match(presence, [
    { ...idsOf(bob), isOnline: true },
    { ...idsOf(bob), isOnline: false },
  ])
  const sizes = events.flatMap(event => (event.type === 'checkpoint' ? event.treeSize : []))
  t.equal(sizes.at(-1), 2)
  t.notMatch(JSON.stringify(events), key, 'no key of the call')
  t.notMatch(JSON.stringify(events), ann.app.accessToken!, 'no token')
  t.same(
    events.map(({ sequence }) => sequence),
    events.map((_, at) => at + 1),
    'in order, none left out',
  )
  t.match(await stateOf(server.http), { devices: [], calls: [], sequence: events.length })
})

function idsOf({ userId, deviceId }: Person): { userId: string; deviceId: string } {
  return { userId, deviceId }
}

t.test('requests are seen with what became of them, and without a token, a code or a key', async t => {
  const server = await start(t, settingsFor(2))
  t.teardown(() => server.end())
  const [ann, bob] = (await meetPeople(server.http, 2)) as [Person, Person]
  const key = newCallKey()
  await startCall(ann, bob, key)
  await ann.app.get(422, 'POST /app/api/call/start', { calleeIds: [bob.userId], isVido: true })
  await ask(server.http, '/app/api/login', {
    method: 'OPTIONS',
    headers: { origin: 'https://app.example', 'access-control-request-method': 'POST' },
  })
  // With fronts, rows come from several processes: later than their answers, in any order.
  const isRefusal = ({ status }: RequestRow) => status === 422
  const isPreflight = ({ method }: RequestRow) => method === 'OPTIONS'
  let rows: readonly RequestRow[] = []
  let answer: FeedAnswer
  do {
    answer = await ann.app.get(200, 'GET /dev/feed?requestsAfter=0')
    rows = answer.requests ?? []
  } while (!(rows.some(isRefusal) && rows.some(isPreflight)))
  t.match(rows.filter(isRefusal), [
    {
      method: 'POST',
      path: '/app/api/call/start',
      code: 'VALIDATION_FAILED',
      pointer: '/encryptedAESKeys',
      unknownFields: ['/isVido'],
      ...idsOf(ann),
    },
  ])
  t.match(rows.filter(isPreflight), [{ path: '/app/api/login', status: 204, code: 'ORIGIN_NOT_ALLOWED' }])
  const details = await Promise.all(
    rows.map(({ sequence }) => ann.app.get(200, `GET /dev/requests/${sequence}`)),
  )
  const text = JSON.stringify([answer, details])
  t.match(text, '/app/api/verify-login')
  const tokens = [...ann.app.secrets, ...bob.app.secrets].filter(secret => /^k[ar]t_/.test(secret))
  t.ok(tokens.length >= 4)
  for (const secret of [key, ...tokens]) t.notMatch(text, secret)
  const letters = await ann.app.get(200, 'GET /dev/inbox')
  for (const { otp } of letters.items) t.notMatch(JSON.stringify(details), `"${otp}"`)
  const phone = await ask(server.http, '/dev/requests/1', { headers: { 'sec-fetch-site': 'cross-site' } })
  t.match(phone, { status: 403, code: 'ORIGIN_NOT_ALLOWED' })
})

t.test('letters and pushes are in the feed, as in the inbox and the list of pushes', async t => {
  const server = await start(t, settingsFor(2))
  t.teardown(() => server.end())
  const [ann, bob] = (await meetPeople(server.http, 2)) as [Person, Person]
  const token = { fcmToken: 'x'.repeat(100) }
  await bob.app.get(204, 'PUT /app/api/devices/current/push', token)
  const key = newCallKey()
  await startCall(ann, bob, key)
  const push = (await readUntil(server.http, isPush)).find(isPush)
  const { items } = await bob.app.get(200, `GET /dev/pushes?userId=${bob.userId}`)
  const { at: _, channel: __, payload, ...listed } = items[0]
  t.match(push, { type: 'push', ...listed, bytesMax: 4_096 })
  const encryptedAESKey = `(${key.length} characters)`
  t.match(push, { payload: { ...payload, data: { ...payload.data, encryptedAESKey } } }, 'all but the key')

  await ann.app.get(200, 'POST /app/api/login', { email: 'carol@example.org' })
  const letter = (await readUntil(server.http, isLetter)).find(isLetter)
  const inbox = await ann.app.get(200, 'GET /dev/inbox?to=carol@example.org')
  const { at: ___, ...shown } = inbox.items[0]
  t.match(letter, { type: 'letter', ...shown })
  t.match(shown.otp, /^\d{6}$/)
})

const isPresence = ({ type }: ConsoleEvent): boolean => type === 'connection'
const isPush = ({ type }: ConsoleEvent): boolean => type === 'push'
const isLetter = ({ type }: ConsoleEvent): boolean => type === 'letter'

const SURFACE = [
  '/dev',
  '/dev/client',
  '/dev/state',
  '/dev/feed',
  '/dev/inbox',
  '/dev/pushes',
  '/dev/pages/base.css',
  '/docs',
  '/docs/',
  '/docs/events',
  '/docs/api/swagger-ui.css',
]

t.test('the development surface is for requests that name this machine', async t => {
  const { port } = new URL(HOUSE.http)
  for (const path of SURFACE) {
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`]) {
      t.equal((await ask(HOUSE.http, path, { headers: { host } })).status, 200, `${path} at ${host}`)
    }
    const rebound = await ask(HOUSE.http, path, { headers: { host: `evil.example:${port}` } })
    t.match(rebound, { status: 403, code: 'HOST_NOT_ALLOWED' }, path)
  }
})

t.test('a page from elsewhere reads nothing and starts no simulator', async t => {
  const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  const command = '{"kind":"people","behaviours":["answer"]}'
  const simple = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']
  for (const type of [...simple, 'application/json']) {
    const headers = { ...foreign, 'content-type': type }
    const answer = await ask(HOUSE.http, '/dev/simulator', { method: 'POST', headers, body: command })
    t.match(answer, { status: 403, code: 'ORIGIN_NOT_ALLOWED' }, type)
  }
  const headers = { 'content-type': 'text/plain' }
  const untold = await ask(HOUSE.http, '/dev/simulator', { method: 'POST', headers, body: command })
  t.match(untold, { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' }, 'a browser that does not say where from')
  const preflight = { ...foreign, 'access-control-request-method': 'POST' }
  const asked = await ask(HOUSE.http, '/dev/simulator', { method: 'OPTIONS', headers: preflight })
  t.notOk(asked.headers['access-control-allow-origin'], 'nor may it ask')
  for (const path of ['/dev/state', '/dev/feed', '/dev/inbox', '/dev/pushes']) {
    const answer = await ask(HOUSE.http, path, { headers: { 'sec-fetch-site': 'cross-site' } })
    t.match(answer, { status: 403, code: 'ORIGIN_NOT_ALLOWED' }, path)
    t.notOk(answer.headers['access-control-allow-origin'], path)
  }
  t.notOk((await stateOf(HOUSE.http)).simulator)
})

t.test('a link from elsewhere opens a page', async t => {
  const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
  t.equal((await ask(HOUSE.http, '/dev', { headers })).status, 200)
})

t.test('the address of the server leads people to the console, and tells programs where it is', async t => {
  const html = { accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' }
  t.match(await ask(HOUSE.http, '/', { headers: html }), { status: 302, headers: { location: '/dev' } })
  for (const headers of [{}, { accept: 'application/json' }, { accept: '*/*' }])
    t.match(await ask(HOUSE.http, '/', { headers }), { status: 404, code: 'NOT_FOUND' })
})

t.test('a stop answers waiting requests for the feed, at once', async t => {
  const server = await start(t)
  const { sequence } = await stateOf(server.http)
  const { hostname, port } = new URL(server.http)
  const polls = Array.from({ length: 3 }, async () => {
    const socket = connect(Number(port), hostname).setEncoding('utf8')
    await new Promise<void>(resolve => {
      socket.write(`GET /dev/feed?after=${sequence} HTTP/1.1\r\nHost: localhost\r\n\r\n`, () => resolve())
    })
    return socket
  })
  const sockets = await Promise.all(polls)
  // Answered after them: the server has read what came before on other connections.
  await stateOf(server.http)
  const heard = sockets.map(async socket => {
    let text = ''
    for await (const part of socket) text += part
    return text
  })
  await server.end()
  for (const text of await Promise.all(heard)) {
    t.match(text, /^HTTP\/1\.1 200 OK\r\n/)
    t.match(text, `{"events":[],"next":${sequence},`)
  }
})

t.test('the simulator is started from the console, and its people come and go', async t => {
  const server = await start(t)
  const command = { kind: 'people', behaviours: ['answer'] }
  const headers = { 'content-type': 'application/json', origin: server.http, 'sec-fetch-site': 'same-origin' }
  const body = JSON.stringify(command)
  const answer = await ask(server.http, '/dev/simulator', { method: 'POST', headers, body })
  t.equal(answer.status, 202)
  t.match(JSON.parse(answer.text), { people: [], calls: { started: 0 } })
  await readUntil(server.http, isPresence)
  const state = await stateOf(server.http)
  t.ok(state.simulator, 'it is there')
  t.equal(state.simulatorTrouble, undefined)
  t.equal(state.devices.length, 1)
  await t.resolves(server.end(), 'and holds up no stop')
})

t.test('production has none of it', async t => {
  const dataFolder = join(t.testdir(), 'data')
  const server = await openServer({ dataFolder, dev: false, environment: productionEnvironment() })
  t.teardown(() => server.end())
  for (const path of [...SURFACE, '/']) {
    const answer = await ask(server.http, path, { headers: { accept: 'text/html' } })
    t.match(answer, { status: 404, code: 'NOT_FOUND' }, path)
  }
  const headers = { 'content-type': 'application/json' }
  const answer = await ask(server.http, '/dev/simulator', {
    method: 'POST',
    headers,
    body: '{"kind":"stop"}',
  })
  t.equal(answer.status, 404)
})

/**
 * Nodes on bad machines and beside bad neighbours: killed while the copy is filled, with a full disk, as the writer too, with
 * a clock a minute ahead, and with a neighbour that sends garbage.
 */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { FrontDeskMessage } from '../../actors/messages.ts'
import { Link } from '../../src/fronts/link/link.ts'
import { linkKeyOf } from '../../src/fronts/link/link-proof.ts'
import { connectToNode, type NodeTls } from '../../src/fronts/link/node-sockets.ts'
import type { Registration } from '../../src/keyserver/registration.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import { befriend, signInPerson, startCall } from '../support/call-people.ts'
import { DroppingProxy } from '../support/dropping-proxy.ts'
import { Cluster, eventually, finds, register, until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { freshPublicKey } from '../support/server.ts'
import { shiftedClock } from '../support/shifted-clock.ts'
import { SocketClient } from '../support/socket-client.ts'
import { tlsFile, tlsPath } from '../support/tls.ts'

t.test('a node is killed while its copy is filled', { skip: skipWithoutPostgres }, async t => {
  let proxy: DroppingProxy | undefined
  const cluster = await Cluster.start(t, {
    running: 1,
    async databasePort({ port }, node) {
      if (node === 'one') return port
      proxy = await DroppingProxy.open(t, port)
      return proxy.port
    },
  })
  const { one, two } = cluster
  const keys = await Promise.all(Array.from({ length: 100 }, () => register(one)))
  // A copy of a part can't be made whole by the changes alone.
  await until(async () => {
    const [row] = await cluster.sql<{ isSettled: boolean }>(
      'select number = (select max(number) from callsign.changes) as "isSettled" from callsign.applied',
    )
    return row!.isSettled
  })
  await cluster.sql('delete from callsign.changes where number < (select number from callsign.applied)')
  // `t.testdir()` would remove the folders of the nodes.
  const pidFile = join(two.dataFolder, '..', 'pid')
  const cut = proxy!.cutAt('fetch', 2)
  const started = two.start({ wrapper: ['bash', '-c', `echo $$ > ${pidFile}; exec "$@"`, '-'] })
  const refused = t.rejects(started, 'it does not come to serve')
  await cut
  process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL')
  await refused
  proxy!.mend()
  await two.start()
  await finds(two, keys)
  keys.push(await register(two))
  await finds(one, keys)
})

/** A node whose files can't grow beyond a bound. */
const ON_FULL_DISK = {
  wrapper: ['bash', '-c', 'ulimit -f 2500; exec "$@"', '-'],
  environment: { CALLSIGN_LOG_LEVEL: 'fatal' },
}

t.test('the disk of a node is full', { skip: skipWithoutPostgres }, async t => {
  const cluster = await Cluster.start(t, { running: 1 })
  const { one, two } = cluster
  await two.start(ON_FULL_DISK)
  const keys = [await register(two)]
  let hasEnded = false
  const ended = once(two.server.process, 'close').then(([code]) => {
    hasEnded = true
    return code
  })
  while (!hasEnded) keys.push(...(await Promise.all(Array.from({ length: 16 }, () => register(one, LONG)))))
  t.equal(await ended, 1, 'it ends')
  await finds(one, keys)
  await two.start()
  await finds(two, keys)
  t.pass('with room it goes on')
})

t.test('the disk of the writer is full', { skip: skipWithoutPostgres }, async t => {
  const cluster = await Cluster.start(t, { running: 0 })
  const { one, two } = cluster
  await one.start(ON_FULL_DISK)
  await two.start()
  const keys = [await register(one)]
  const ended = once(one.server.process, 'close')
  let isOver = false
  const registering = Array.from({ length: 16 }, async () => {
    while (!isOver) keys.push(await register(two, LONG))
  })
  t.same(await ended, [1, null], 'it ends')
  await two.said('writer')
  isOver = true
  await Promise.all(registering)
  keys.push(await register(two))
  await finds(two, keys)
  await one.start()
  await finds(one, keys)
  t.pass('with room it follows')
})

t.test('the clock of a node is a minute ahead', { skip: skipWithoutPostgres }, async t => {
  const { one, two } = await Cluster.start(t, { running: 1 })
  await two.start({ environment: shiftedClock(60_000) })
  const [ann, bob] = [await signInPerson(one.server.http, 0), await signInPerson(two.server.http, 1)]
  for (const { app } of [ann, bob]) {
    app.http = two.server.http
    await app.get(200, 'GET /app/api/user')
    app.http = one.server.http
    await app.get(200, 'GET /app/api/user')
  }
  await befriend(ann, bob)
  const { body: call } = await startCall(ann, [bob])
  one.kill('SIGKILL')
  const phone = await eventually(() =>
    SocketClient.connect('websocket', two.server.http, bob.app.accessToken!),
  )
  await phone.subscribe('/user/queue/calls', 'calls')
  const types: string[] = []
  // The ring is nearly over by this clock.
  while (!types.includes('call_missed')) {
    const event = JSON.parse(String((await phone.message()).body))
    t.equal(event.callId ?? call.callId, call.callId)
    types.push(event.type)
  }
  t.same(
    types.filter(type => type === 'call_missed'),
    ['call_missed'],
  )
  phone.destroy()
  await one.start()
  const keys = [await register(one), await register(two)]
  for (const node of [one, two]) await finds(node, keys)
})

const pem = (name: string) => Buffer.from(tlsFile(name))
const NODE_TLS: NodeTls = {
  certificate: pem('client.crt'),
  key: pem('client.key'),
  authority: pem('ca.crt'),
}

/** As the frames of a link begin: a length, and so many octets. */
const OCTETS: readonly Buffer[] = [
  Buffer.from('GET / HTTP/1.1\r\n\r\n'),
  Buffer.from([0xff, 0xff, 0xff, 0xff]),
  Buffer.from([0, 0, 0, 4, 0xc1, 0xc1, 0xc1, 0xc1]),
  Buffer.from([0, 0, 0, 5, 0xdd, 0xff, 0xff, 0xff, 0xff]),
]

/** Messages of kinds that fronts send, with nonsense in them: to which actor, and what. */
const MESSAGES: readonly (readonly [kind: string, id: string, message: object])[] = [
  ['log-appender', '', { kind: 'append' }],
  ['presence', 'nobody', { kind: 'detached', connectionId: 'none' }],
  ['presence', '-1', { kind: 'detached', connectionId: 'none' }],
  ['call-room', 'no call', { kind: 'unsubscribe', connectionId: 'none' }],
  [
    'call-room',
    'no call',
    { kind: 'command', command: { kind: 'nonsense', by: { userId: 1n, deviceId: 1n } } },
  ],
  ['dev-topic', 'any', { kind: 'publish', headers: [1, 2, 3], body: new Uint8Array() }],
  ['dev-topic', 'any', { kind: 'publish', headers: [['a']], body: new Uint8Array() }],
]

/** Words of fronts to the writer as a process. */
const SAID = [
  { kind: 'nonsense' },
  { kind: 'acknowledged', count: 'many' },
  { kind: 'seen', userId: 'x', deviceId: {} },
  { kind: 'seen', userId: -1n, deviceId: 2n ** 63n },
  { kind: 'pair-used', sessionId: 'x', generation: {} },
  { kind: 'pair-used', sessionId: new Uint8Array(3), generation: -1 },
]

/** Questions to the front desk. */
const QUESTIONS: readonly object[] = [
  { kind: 'request', route: 'GET /nothing', request: { headers: {}, body: new Uint8Array() } },
  { kind: 'request', route: 'POST /app/api/login', request: { headers: {}, body: new Uint8Array([0xff]) } },
  {
    kind: 'request',
    route: 'PUT /app/api/user',
    request: { headers: { authorization: 1 }, body: new Uint8Array() },
  },
  { kind: 'settle', settled: [{ userId: -1n, deviceId: 2n ** 63n, offsets: ['x'] }], sent: [] },
  { kind: 'settle', settled: [{ userId: 1n, deviceId: 1n, offsets: [-1, 1.5, 1e300] }] },
  { kind: 'mark-delivered', userId: 1n, deviceId: 1n, delivered: { offset: 'x' } },
  { kind: 'live-calls', userId: -1n },
  { kind: 'register', userId: -1n, deviceId: 2n ** 64n, publicKey: '' },
]

t.test('a neighbour sends garbage', { skip: skipWithoutPostgres }, async t => {
  const { one } = await Cluster.start(t, {
    nodes: 1,
    environment: {
      CALLSIGN_NODE_TLS_CERT: tlsPath('server.crt'),
      CALLSIGN_NODE_TLS_KEY: tlsPath('server.key'),
      CALLSIGN_NODE_TLS_CA: tlsPath('ca.crt'),
    },
  })
  const place = { host: '127.0.0.1', port: one.port }
  const keys = [await register(one)]
  const key = linkKeyOf(Buffer.from(one.environment.CALLSIGN_SECRET!, 'base64'))
  const proof = { name: 'garbage', key }
  for (const octets of OCTETS) {
    const { socket, macs } = await connectToNode(place, NODE_TLS, proof)
    const [head, frame] = [octets.subarray(0, 4), octets.subarray(4)]
    socket.resume()
    socket.write(Buffer.concat([head, macs.sent.next([frame]), frame]))
    await once(socket, 'close')
  }
  t.notMatch(one.server.stderr(), 'far-front-joined', 'octets of no form end their connection')

  const world = realWorld()
  t.teardown(() => world.stop())
  const system = new ActorSystem({ world, fatal: error => t.fail(String(error)), onFailure: () => undefined })
  const openLink = async (tls = NODE_TLS) =>
    new Link({
      ...(await connectToNode(place, tls, proof)),
      self: { name: 'garbage', version: '0' },
      system,
      serves: new Map(),
      world,
      onMessage: () => undefined,
    })
  const ask = (link: Link, question: object) =>
    system
      .remoteRef<object>(link, 'front-desk', 'garbage')
      .ask<unknown>(reply => ({ ...question, reply }), 10_000)
      .then(
        () => 'answered',
        error => error.code,
      )
  for (const name of ['client', 'stranger']) {
    const tls = { ...NODE_TLS, certificate: pem(`${name}.crt`), key: pem(`${name}.key`) }
    const answered = await openLink(tls).then(
      link => ask(link, QUESTIONS[0]!),
      error => error.code,
    )
    t.equal(answered === 'NOT_FOUND', name === 'client', `${name}: let in by a certificate of the authority`)
  }
  for (const [kind, id, message] of MESSAGES) {
    const link = await openLink()
    link.tellControl(kind, id, message)
    t.match(await ask(link, QUESTIONS[0]!), /NOT_FOUND|OUTCOME_UNKNOWN/, `${kind} ${id}`)
    link.close()
  }
  for (const question of QUESTIONS) {
    const link = await openLink()
    t.type(await ask(link, question), 'string', 'it is answered or refused')
    link.close()
  }
  for (const said of SAID) {
    const link = await openLink()
    link.send(said)
    t.match(await ask(link, QUESTIONS[0]!), /NOT_FOUND|OUTCOME_UNKNOWN/, said.kind)
    link.close()
  }

  t.equal(one.server.process.exitCode, null, 'the writer goes on')
  t.equal(await one.isReady(), true)
  keys.push(await register(one))
  await finds(one, keys)
})

t.test('a process of the machine that knows no secret', { skip: skipWithoutPostgres }, async t => {
  const { one } = await Cluster.start(t, { nodes: 1 })
  const keys = [await register(one)]
  const world = realWorld()
  t.teardown(() => world.stop())
  const system = new ActorSystem({ world, fatal: error => t.fail(String(error)), onFailure: () => undefined })
  const socket = connect(one.port, '127.0.0.1')
  socket.on('error', () => undefined)
  const stranger = new Link({
    socket,
    self: { name: 'x', version: '0' },
    system,
    serves: new Map(),
    world,
    onMessage: () => undefined,
  })
  const desk = system.remoteRef<FrontDeskMessage>(stranger, 'front-desk', 'x')
  const publicKey = freshPublicKey()
  const asked = desk.ask<Registration>(
    reply => ({ kind: 'register', userId: 7n, deviceId: 7n, publicKey, reply }),
    10_000,
  )
  await t.rejects(asked, { code: 'OUTCOME_UNKNOWN' }, 'it registers no key')
  t.notMatch(one.server.stderr(), 'far-front-joined', 'nobody waits for it')
  await one.said('link-refused')
  keys.push(await register(one))
  await finds(one, keys)
})

t.test('a node with another secret', { skip: skipWithoutPostgres }, async t => {
  const { one, two } = await Cluster.start(t, { running: 1 })
  await two.start({ environment: { CALLSIGN_SECRET: randomBytes(32).toString('base64') } })
  await one.said('link-refused')
  t.match(one.server.stderr(), /"event":"link-refused","reason":"other secret".*same CALLSIGN_SECRET/)
  await two.said('writer-not-reached')
  t.match(two.server.stderr(), /"event":"writer-not-reached".*the nodes have different CALLSIGN_SECRET/)
  t.notMatch(one.server.stderr(), 'far-front-joined', 'nobody waits for its fronts')
  await finds(one, [await register(one)])
})

const LONG = 'A'.repeat(980)

/**
 * D1: on a disk with slow syncs nothing is acknowledged before it is durable: no 2xx of a write, no answer to
 * Register, no RECEIPT of a durable SEND; and no phone rings for a call that could still be lost. Read off the order
 * of the server's own system calls, not off elapsed time.
 */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { befriend, type Person, settingsFor, signInPerson, startCall } from '../support/call-people.ts'
import { cannotTrace } from '../support/disk-trace.ts'
import type { LmdbFault } from '../support/forced-lmdb.ts'
import { freshPublicKey } from '../support/server.ts'
import { type Acknowledgement, type SlowServer, startSlowServer } from '../support/slow-sync.ts'
import { SocketClient } from '../support/socket-client.ts'

const SYNC_DELAY_MS = 40
const QUEUE = '/user/queue/dev.durable'

/** One request after the other, then many at once; resolves with what the server acknowledged. */
async function acknowledgedOn(t: Test, fault?: LmdbFault): Promise<Acknowledgement[]> {
  const answers = new Map<string, string>()
  const server = await startSlowServer({
    folder: join(t.testdir(), 'server'),
    syncDelayMs: SYNC_DELAY_MS,
    environment: { CALLSIGN_STOMP_TCP_PORT: '0', CALLSIGN_LOG_LEVEL: 'error', ...settingsFor(2) },
    answers: () => answers,
    ...(fault && { fault }),
  })
  t.teardown(() => server.end('SIGKILL'))
  const [ann, bob] = [await signInPerson(server.http, 0), await signInPerson(server.http, 1)]
  await befriend(ann, bob)
  await callOnce(ann, bob)
  await registerTwice(server, answers)
  await sendOverWebSocket(server, ann)
  const client = await SocketClient.connect('tcp', server.stompTcp!, bob.app.accessToken!)
  await client.send(QUEUE, 'alone', 'tcp-alone')
  await client.subscribe('/user/queue/calls', 'calls')
  await callOnce(ann, bob)
  const many = Array.from({ length: 20 }, (_, at) => client.send(QUEUE, 'many', `tcp-many-${at}`))
  await Promise.all([...many, callOnce(ann, bob)])
  client.destroy()
  return server.acknowledgements()
}

async function callOnce(ann: Person, bob: Person): Promise<void> {
  const { body, status } = await startCall(ann, [bob])
  if (status !== 201) throw new Error(`call/start answers ${status}`)
  await bob.app.get(200, `POST /app/api/call/${body.callId}/join`, {})
  await ann.app.get(200, 'POST /app/api/call/end', { callId: body.callId })
}

async function registerTwice({ grpc }: SlowServer, answers: Map<string, string>): Promise<void> {
  const client = new RegisterClient(grpc)
  // The first call shakes hands on the connection as well.
  await client.register(1n, 1n, freshPublicKey())
  const { vrfHash } = await client.register(2n, 1n, freshPublicKey())
  answers.set(vrfHash, 'Register')
  client.close()
}

async function sendOverWebSocket({ http }: SlowServer, { app }: Person): Promise<void> {
  const client = await SocketClient.connect('websocket', http, app.accessToken!)
  await client.send(QUEUE, 'alone', 'ws-alone')
  client.destroy()
}

const EXPECTED = [
  'login',
  'verify-login',
  'register_device',
  'friend-request/by-id',
  'friend-request/accept',
  'call/start',
  'call/end',
].map(path => `POST /app/api/${path}`)

function isExpected(what: string): boolean {
  return EXPECTED.includes(what) || what === 'Register' || /-alone$|\/join$/.test(what)
}

const skip = cannotTrace()

t.test('nothing is acknowledged before it is durable', { skip }, async t => {
  const all = await acknowledgedOn(t)
  t.same(
    all.filter(({ isFounded }) => !isFounded),
    [],
    `${all.length} acknowledgements`,
  )
  t.ok(Math.min(...all.map(({ waitedMs }) => waitedMs)) >= SYNC_DELAY_MS, 'the disk was slow')
  const whats = new Set(all.map(({ what }) => what.replace(/\d{5,}/, '{callId}')))
  t.same(
    [
      ...EXPECTED,
      'POST /app/api/call/{callId}/join',
      'RECEIPT ws-alone',
      'RECEIPT tcp-alone',
      'Register',
      'invitation',
    ].filter(what => !whats.has(what)),
    [],
    'each kind was seen',
  )
  t.equal(all.filter(({ what }) => what.startsWith('RECEIPT tcp-many')).length, 20)
})

t.test(
  'positive control: without syncs, the same look finds every acknowledgement early',
  { skip },
  async t => {
    const all = await acknowledgedOn(t, { noSync: true })
    t.same(
      all.filter(({ isFounded }) => isFounded),
      [],
    )
    t.ok(all.filter(({ what }) => isExpected(what)).length >= EXPECTED.length + 4)
  },
)

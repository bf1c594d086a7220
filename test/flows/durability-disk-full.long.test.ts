/**
 * D5: a disk without room, for calls and messages: both are refused in words, a refused call is never announced,
 * acknowledged writes stay, and all goes on as soon as there is room. The limit is the shell's `ulimit -f`, lifted
 * while the server runs.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { meetPeople, settingsFor, signInPerson, startCall } from '../support/call-people.ts'
import { forcedLmdb } from '../support/forced-lmdb.ts'
import { isHeapOverrun } from '../support/heap-overrun.ts'
import { type ClientFrame, sendFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { runProgram } from '../support/programs.ts'
import { startServer } from '../support/server.ts'
import { SocketClient } from '../support/socket-client.ts'
import { auditStore } from '../support/store-audit.ts'

const QUEUE = '/user/queue/dev.durable'
const PRLIMIT = '/usr/bin/prlimit'
const FULL_DISK = ['bash', '-c', 'ulimit -S -f 1500; exec "$@"', '-']
const ENVIRONMENT = { CALLSIGN_STOMP_TCP_PORT: '0', CALLSIGN_LOG_LEVEL: 'fatal', ...settingsFor(4) }

/** Sends until the server refuses; resolves with the acknowledged ones, in order, and the refusal. */
async function fill(client: SocketClient): Promise<{ acknowledged: string[]; refusal: ClientFrame }> {
  const acknowledged: string[] = []
  let answer: ClientFrame
  let sent = 0
  await client.subscribe('/user/queue/errors', 'errors')
  // Smaller and smaller ones, until not even those of a few bytes fit.
  for (const bytes of [200_000, 8_000, 1]) {
    do {
      const receipt = `sent-${++sent}`
      const body = receipt.padEnd(bytes, '.')
      client.write(sendFrame(QUEUE, body, `receipt:${receipt}\n`))
      answer = await client.frame(() => true)
      if (headerOf(answer, 'receipt-id') === receipt) acknowledged.push(body)
    } while (answer.command === 'RECEIPT')
  }
  return { acknowledged, refusal: answer! }
}

async function readAll(stompTcp: string, accessToken: string): Promise<string[]> {
  const client = await SocketClient.connect('tcp', stompTcp, accessToken)
  await client.subscribe(QUEUE, 'all')
  await client.send(QUEUE, 'end')
  await client.until(() => String(client.frames.at(-1)?.body) === 'end')
  client.destroy()
  return client.take().map(({ body }) => String(body))
}

t.test('a full disk refuses calls and messages in words, loses none, and passes', async t => {
  const dataFolder = join(t.testdir(), 'data')
  const server = await startServer({ dataFolder, wrapper: FULL_DISK, environment: ENVIRONMENT })
  t.teardown(() => server.end())
  const [ann, bob, eve] = await meetPeople(server.http, 3)
  const { body: ringing } = await startCall(ann!, [bob!])
  const connect = (token: string) => SocketClient.connect('tcp', server.stompTcp!, token)
  const filler = await connect(ann!.app.accessToken!)
  const { acknowledged, refusal } = await fill(filler)
  const problem = JSON.parse(String(refusal.body))
  t.match(problem, { type: 'error', destination: QUEUE, receiptId: /^sent-\d+$/ })
  t.notOk(acknowledged.some(body => body.replace(/\.*$/, '') === problem.receiptId))
  t.match(problem.problem, { status: 503, code: 'STORE_UNAVAILABLE' })
  t.notOk(filler.isClosed, 'told on the errors, it goes on')

  const plain = await connect(eve!.app.accessToken!)
  // A small one may fit, since a first message has no row of its own.
  await t.rejects(plain.send(QUEUE, 'x'.repeat(200_000), 'refused'), {
    message: /^closed with 1005: ERROR\n/,
  })
  t.same(
    ['code', 'reason', 'retry', 'receipt-id'].map(name => headerOf(plain.frames[0], name)),
    ['503', 'store_unavailable', 'after', 'refused'],
  )
  const refused = await startCall(eve!, [ann!])
  t.match(refused.body, { status: 503, code: 'STORE_UNAVAILABLE' })
  t.ok(Number(refused.headers.get('retry-after')) > 0)
  t.equal((await fetch(`${server.admin}/readyz`)).status, 503)

  t.match(await bob!.app.get(200, 'GET /app/api/call/pending'), { items: [{ callId: ringing.callId }] })
  t.same(
    await ann!.app.get(200, 'GET /app/api/call/pending'),
    { items: [] },
    'of a refused call nobody has heard',
  )
  t.same(await eve!.app.get(200, 'GET /app/api/call/history'), { items: [] })
  t.same((await auditStore(dataFolder)).faults, [])

  const goOn = async () => {
    await runProgram(PRLIMIT, [`--pid=${server.process.pid}`, '--fsize=unlimited'])
    await filler.send(QUEUE, 'with room')
    acknowledged.push('with room')
    // Not before: what a join writes is so little that it may fit where nothing else does.
    const join = `POST /app/api/call/${ringing.callId}/join`
    t.match(await bob!.app.get(200, join, {}), { status: 'active', encryptedAESKey: /./ })
    t.match(await ann!.app.get(200, 'POST /app/api/call/end', { callId: ringing.callId }), {
      status: 'ended',
    })
    // Not by Eve: the room of her refused call forgets it a moment later.
    t.equal((await startCall(bob!, [ann!])).status, 201)
  }
  if (existsSync(PRLIMIT)) {
    await goOn().catch(async error => {
      if (!isHeapOverrun(await server.end(), server.stderr())) throw error
    })
  }
  filler.destroy()
  const end = await server.end()
  if (isHeapOverrun(end, server.stderr())) t.comment('the heap of lmdb 3.5.6 ended it')
  else t.equal(end, 0, `stops cleanly\n${server.stderr().slice(-500)}`)

  const roomy = await startServer({ dataFolder, environment: ENVIRONMENT })
  t.teardown(() => roomy.end())
  const there = await readAll(roomy.stompTcp!, ann!.app.accessToken!)
  t.ok(acknowledged.length > 10)
  t.strictSame(
    there.map(text => text.slice(0, 20)),
    [...acknowledged, 'end'].map(text => text.slice(0, 20)),
    `${acknowledged.length} messages`,
  )
})

t.test(
  'positive control: what is acknowledged before it is written, and does not fit, is missed',
  async t => {
    const dataFolder = join(t.testdir(), 'data')
    const first = await startServer({ dataFolder, environment: ENVIRONMENT })
    const { app } = await signInPerson(first.http, 0)
    await first.end()
    const environment = { ...ENVIRONMENT, ...forcedLmdb({ isEarly: true }) }
    const early = await startServer({ dataFolder, wrapper: FULL_DISK, environment })
    const client = await SocketClient.connect('tcp', early.stompTcp!, app.accessToken!)
    const sent = Array.from({ length: 10 }, (_, at) => `${at}`.padEnd(200_000, '.'))
    for (const body of sent) await client.send(QUEUE, body)
    client.destroy()
    await early.end()

    const roomy = await startServer({ dataFolder, environment: ENVIRONMENT })
    t.teardown(() => roomy.end())
    const there = await readAll(roomy.stompTcp!, app.accessToken!)
    t.ok(there.length - 1 < sent.length, `${there.length - 1} of ${sent.length} are there`)
  },
)

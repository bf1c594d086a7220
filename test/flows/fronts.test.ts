/** Several processes that serve one port: the same server to its clients, also when one of the processes is killed. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, copyFileSync, rmSync } from 'node:fs'
import { Agent, get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { binariesToLoad } from '../../src/operations/native-binaries.ts'
import { endStory, friends, startCall } from '../support/call-story.ts'
import { DevPerson } from '../support/dev-person.ts'
import { frontsOf } from '../support/fronts-of.ts'
import { registerKey } from '../support/live-log.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { Rehearsal } from '../support/rehearsal.ts'
import { freshPublicKey, startServer } from '../support/server.ts'
import { bySize, long, sized } from '../support/size.ts'
import { WireServer } from '../support/wire-server.ts'

/** Of the tests that leave the server as it was. */
const shared = await WireServer.start(t, {
  people: 1,
  dataFolder: t.testdir(),
  environment: { CALLSIGN_FRONTS: '2' },
})

t.test('a call goes on while one front after another is killed', async t => {
  const environment = { CALLSIGN_FRONTS: '2' }
  const story = await Rehearsal.start(t, { dataFolder: join(t.testdir(), 'data'), environment })
  const [ann, bob] = await friends(story)
  await ann.connect()
  await bob.connect()
  const { callId, callKey } = await startCall(ann, bob)
  await bob.next('call_invitation')
  await ann.watch(callId)
  const joined = await bob.get(200, `POST /app/api/call/${callId}/join`)
  t.same(await bob.open(joined.encryptedAESKey, ann.userId, ann.deviceId), callKey)
  t.ok(await ann.next('participant_joined'))
  const fronts = frontsOf(story.server.process.pid!)
  t.equal(fronts.length, 2)
  for (const pid of fronts) process.kill(pid, 'SIGKILL')
  for (const phone of [ann, bob]) await phone.closed()
  // Until a front is back, connecting fails.
  for (const phone of [ann, bob]) {
    for (;;) {
      try {
        await fetch(`${story.server.http}/app/api/meta`)
        await phone.connect()
        break
      } catch {
        await setTimeout(PAUSE_MS)
      }
    }
  }
  t.match(await ann.get(200, `GET /app/api/call/${callId}`), { status: 'active' })
  await ann.get(200, 'POST /app/api/call/end', { callId })
  t.match((await bob.next('call_ended')).body, { callId, status: 'ended' })
  await endStory(t, story, ann, bob)
})

t.test('a front serves the operators’ page, and the log beside it', async t => {
  const { serverApi } = shared.running
  for (const path of ['/operator', '/operator/pages/operator/main.js', '/checkpoint'])
    t.equal((await fetch(serverApi + path)).status, 200, path)
  t.equal((await fetch(`${shared.running.http}/operator`)).status, 404, 'not on the public port')
})

t.test(
  'a key that was registered is found by the next lookup, whichever front takes it',
  sized(),
  async t => {
    const server = await startServer({ dataFolder: t.testdir(), environment: { CALLSIGN_FRONTS: '2' } })
    t.teardown(() => server.end('SIGKILL'))
    const { http, grpc, admin } = server
    const client = new RegisterClient(grpc)
    t.teardown(() => client.close())
    for (let deviceId = 1n; deviceId <= bySize({ short: 12, long: 40 }); deviceId++) {
      const { vrfHash: publicKeyHash } = await client.register(5n, deviceId, freshPublicKey())
      const answer = await fetch(`${http}/api/get-public-keys`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', connection: 'close' },
        body: JSON.stringify({ targets: [{ publicKeyHash }] }),
      })
      t.equal(answer.status, 200, await answer.text())
    }
    const metrics = await (await fetch(`${admin}/metrics`)).text()
    t.match(metrics, /^callsign_fronts\{process="writer"\} 2$/m)
    for (const front of ['front-1', 'front-2'])
      t.match(metrics, new RegExp(`^callsign_connections\\{process="${front}"\\} 0$`, 'm'))
    const processesWith = (name: string) =>
      [...metrics.matchAll(/^(\w+)\{process="([^"]+)"/gm)]
        .filter(each => each[1] === name)
        .map(each => each[2])
    for (const name of [
      'callsign_ready',
      'callsign_log_head_file_set',
      'callsign_log_tree_size',
      'callsign_info',
    ])
      t.same(processesWith(name), ['writer'], `${name} is of the whole server`)
    t.same(processesWith('callsign_heap_limit_bytes').toSorted(), ['front-1', 'front-2', 'writer'])
    t.equal(await server.end(), 0)
    const ends = server
      .stderr()
      .match(/^.*"event":"front-ended".*$/gm)
      ?.map(line => JSON.parse(line))
    t.match(ends, [
      { code: 0, signal: null },
      { code: 0, signal: null },
    ])
  },
)

t.test('a front shows a new checkpoint when every other one knows of it', sized(), async t => {
  const server = shared.running
  const client = new RegisterClient(server.grpc)
  t.teardown(() => client.close())
  const [stopped] = frontsOf(server.process.pid!)
  for (let userId = 1; userId <= bySize({ short: 1, long: 3 }); userId++) {
    process.kill(stopped!, 'SIGSTOP')
    const front = await connectToRunning(server.http)
    const before = await front.treeSize()
    const registered = registerKey(client, BigInt(userId), 1n)
    const seen: number[] = []
    let isOver = false
    const looking = (async () => {
      while (!isOver) seen.push(await front.treeSize())
    })()
    await setTimeout(LOOKING_MS)
    const newer = seen.filter(size => size > before)
    t.same(newer, [], 'the other front would still show an older one')
    process.kill(stopped!, 'SIGCONT')
    await registered
    t.equal(await front.treeSize(), before + 1)
    isOver = true
    await looking
    front.close()
  }
})

t.test('a message that was given at one front comes again at another, and says so', sized(), async t => {
  const server = shared
  const [device] = await server.devices(1)
  const queue = '/user/queue/dev.again'
  for (let round = 1; round <= bySize({ short: 6, long: 20 }); round++) {
    const first = await server.connect('websocket', device!)
    await first.send(queue, `${round}`)
    await first.subscribe(queue, 's', 'ack:client-individual\n')
    const given = await first.message()
    first.destroy()
    const second = await server.connect('websocket', device!)
    await second.subscribe(queue, 's', 'ack:client-individual\n')
    const again = await second.message()
    t.same(
      [headerOf(again, 'message-id'), headerOf(again, 'redelivered')],
      [headerOf(given, 'message-id'), 'true'],
    )
    second.write(`ACK\nid:${headerOf(again, 'ack')}\nreceipt:done\n\n\0`)
    await second.receipt('done')
    await second.disconnect()
  }
})

t.test('a read with a rate of its own is counted in one place', async t => {
  const environment = {
    CALLSIGN_FRONTS: '2',
    CALLSIGN_RATE_LIMITS: '',
    CALLSIGN_RATES: '{"credentials":3}',
  }
  const server = await startServer({ dataFolder: t.testdir(), environment })
  t.teardown(() => server.end('SIGKILL'))
  const { app } = await DevPerson.signIn(server.http, 'Ann')
  const statuses: number[] = []
  for (let at = 0; at < 12; at++)
    statuses.push((await app.send('GET /credentials', undefined, { connection: 'close' })).status)
  t.same(statuses, [200, 200, 200, ...Array(9).fill(429)])
})

t.test('a call that is started with one key at two fronts at once is one, and is counted once', async t => {
  const environment = {
    CALLSIGN_FRONTS: '2',
    CALLSIGN_RATE_LIMITS: '',
    CALLSIGN_RATES: '{"call-start":2}',
  }
  const story = await Rehearsal.start(t, { dataFolder: join(t.testdir(), 'data'), environment })
  const [ann, bob] = await friends(story)
  await bob.connect()
  const { userId: calleeId } = bob
  const encryptedAESKeys = await ann.sealed(randomBytes(32), await ann.devicesOf(calleeId))
  const start = (key: string, body: object) => {
    const headers = { connection: 'close', 'idempotency-key': key }
    return ann.app.send('POST /app/api/call/start', body, headers)
  }
  const body = { calleeIds: [calleeId], encryptedAESKeys, isVideo: false }
  const answers = await Promise.all(Array.from({ length: 8 }, () => start('one', body)))
  t.same(new Set(answers.map(({ status }) => status)), new Set([201]))
  const [callId, ...others] = new Set(answers.map(answer => answer.body.callId))
  t.same(others, [])
  t.match((await bob.next('call_invitation')).body, { callId })
  t.match(await start('one', { ...body, isVideo: true }), { status: 422 })
  await ann.get(200, `POST /app/api/call/${callId}/end`)
  t.equal((await start('two', body)).status, 201)
  for (const key of ['three', 'four', 'five', 'six']) t.match(await start(key, body), { status: 429 })
  const again = await start('one', body)
  t.match(again, { status: 201, body: { callId } })
})

t.test('a front that has loaded a foreign native binary does not serve', long(), async t => {
  const folder = t.testdir()
  const { path } = binariesToLoad().find(({ from }) => from?.startsWith('@msgpackr-extract/'))!
  const binary = join(folder, 'changed.node')
  const preload = `import { existsSync } from 'node:fs'
    if (process.argv[1]?.endsWith('front.js') && existsSync(${JSON.stringify(binary)}))
      process.dlopen({ exports: {} }, ${JSON.stringify(binary)})`
  const environment = {
    CALLSIGN_FRONTS: '1',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}`,
  }
  const story = await Rehearsal.start(t, { dataFolder: join(folder, 'data'), environment })
  const { server } = story
  const ready = async () => (await fetch(`${server.admin}/readyz`)).status
  copyFileSync(path, binary)
  appendFileSync(binary, '\0')
  for (const pid of frontsOf(server.process.pid!)) process.kill(pid, 'SIGKILL')
  while (!/changed\.node has SHA-256 [0-9a-f]{64}/.test(server.stderr())) await setTimeout(PAUSE_MS)
  t.equal(await ready(), 503)
  rmSync(binary)
  while ((await ready()) !== 200) await setTimeout(PAUSE_MS)
  t.equal((await fetch(`${server.http}/app/api/meta`)).status, 200)
})

/** A connection to a front that is not stopped. */
async function connectToRunning(http: string) {
  for (;;) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const treeSize = async (signal?: AbortSignal) => {
      const request = get(`${http}/checkpoint`, { agent, ...(signal && { signal }) })
      const [answer] = (await once(request, 'response')) as [IncomingMessage]
      return Number((await text(answer)).split('\n')[1])
    }
    try {
      await treeSize(AbortSignal.timeout(ANSWER_MS))
      return { treeSize: () => treeSize(), close: () => agent.destroy() }
    } catch {
      agent.destroy()
    }
  }
}

/** A front takes half a second to start, and asking all the while as much again. */
const PAUSE_MS = 25
/** Shorter than the writer waits for a front. */
const LOOKING_MS = 500
/** A stopped front answers nothing within it, and no other one later by chance alone. */
const ANSWER_MS = 1_000

/** `LogClient` against servers and networks that do not answer as they should, or answer late. */

import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { type Fetch, LogClient, MemoryStore } from '../../src/client/client.ts'
import { LyingLog } from '../support/lying-log.ts'

const log = new LyingLog()
log.grow(3)
log.register(1n, 1n)
log.grow(40)
const alice = { userId: '1', deviceId: '1', vrfHash: log.leaf(3).vrfHash }
const url = 'https://log.example'

function clientOf(fetch: unknown, options: { timeoutMs?: number; store?: MemoryStore } = {}): LogClient {
  return new LogClient({ ...log.published, url, fetch: fetch as Fetch, store: new MemoryStore(), ...options })
}

/** Runs a server for the time of the test; returns its address. */
async function serve(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test(
  'requests go to the prefix, whatever slashes it ends in, and fetch is called as a plain function',
  async t => {
    const asked: string[] = []
    const honest = log.fetch()
    function fetch(this: unknown, address: string, init: { body?: string }) {
      asked.push(`${this === undefined} ${address}`)
      return honest(address, init)
    }
    await new LogClient({ ...log.published, url: `${url}//`, fetch: fetch as unknown as Fetch }).lookUp(alice)
    t.same(asked, ['true https://log.example/api/get-public-keys'])
  },
)

t.test(
  'what comes instead of an answer is `unanswered`, with status and code where there are any',
  async t => {
    const problem = JSON.stringify({ type: 'urn:problem:overloaded', code: 'OVERLOADED' })
    const answers: [() => unknown, object][] = [
      [() => Promise.reject(new TypeError('fetch failed')), { detail: /fetch failed/ }],
      [() => new Response(problem, { status: 503 }), { status: 503, code: 'OVERLOADED' }],
      [() => new Response('', { status: 429 }), { status: 429, code: undefined }],
      [() => new Response('{"code":7}', { status: 500 }), { status: 500, code: undefined }],
      [() => new Response('null', { status: 502 }), { status: 502 }],
      [() => new Response('<html>please log in</html>'), { status: 200 }],
      [() => new Response(null, { status: 204 }), { status: 204 }],
    ]
    for (const [answer, expected] of answers) {
      const app = clientOf(async () => answer())
      const unanswered = { kind: 'unanswered', ...expected }
      t.match(await app.lookUp(alice), unanswered)
      t.match(await app.checkOwnKeys({ ...alice, publicKeys: [] }), unanswered)
    }
    t.match(await clientOf(async () => new Response('', { status: 500 })).refreshCheckpoint(), {
      status: 500,
    })
  },
)

t.test('a server that never ends its answer, or never begins one, is given up in time', async t => {
  const silent = await serve(t, () => {})
  const endless = await serve(t, (_, response) => void response.writeHead(200).write('{"results":['))
  for (const url of [silent, endless]) {
    const app = new LogClient({ ...log.published, url, timeoutMs: 100 })
    t.match(await app.lookUp(alice), { kind: 'unanswered', detail: /not answered in 100 ms/ })
  }
})

t.test('an answer without end is cut off at its bound, with and without a stream', async t => {
  let written = 0
  const flood = await serve(t, (_, response) => {
    const piece = Buffer.alloc(65_536, 0x20)
    const pour = () => {
      while (response.write(piece)) written += piece.length
    }
    response
      .writeHead(200)
      .on('drain', pour)
      .on('error', () => {})
    pour()
  })
  const streamed = new LogClient({ ...log.published, url: flood, timeoutMs: 10_000 })
  t.match(await streamed.lookUp(alice), { kind: 'unanswered', detail: /more than 4194304 bytes/ })
  t.match(await streamed.refreshCheckpoint(), { kind: 'unanswered', detail: /more than 1000000 bytes/ })
  t.ok(written < 64 * 1024 * 1024, `${written} bytes were taken`)
  const whole = clientOf(async () => ({ status: 200, arrayBuffer: async () => new ArrayBuffer(5_000_000) }))
  t.match(await whole.lookUp(alice), { kind: 'unanswered', detail: /more than 4194304 bytes/ })
})

t.test('a request that was answered leaves no timer behind to keep a process awake', async t => {
  const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = timers()
  await clientOf(log.fetch()).checkOwnKeys({ ...alice, publicKeys: [] })
  await clientOf(async () => Promise.reject(new Error('offline'))).refreshCheckpoint()
  t.equal(timers(), before)
})

t.test('redirects are not followed', async t => {
  const elsewhere = await serve(t, (_, response) => response.end(log.note()))
  const server = await serve(t, (_, response) => response.writeHead(302, { location: elsewhere }).end())
  const app = new LogClient({ ...log.published, url: server })
  t.match(await app.refreshCheckpoint(), { kind: 'unanswered' })
})

t.test('many devices are asked for in requests of 64, and answered in their order', async t => {
  const many = new LyingLog()
  for (let user = 0; user < 130; user++) many.register(BigInt(user), 1n)
  const fetch = many.fetch()
  const devices = Array.from({ length: 130 }, (_, user) => {
    return { userId: `${user}`, deviceId: '1', vrfHash: many.leaf(user).vrfHash }
  })
  const outcomes = await clientOf(fetch).lookUpAll(devices)
  t.same(
    outcomes.map(outcome => (outcome.kind === 'verified' ? outcome.index : outcome)),
    devices.map((_, user) => user),
  )
  t.equal(fetch.requests.length, 3)
  t.same(await clientOf(fetch).lookUpAll([]), [])
})

t.test('an answer overtaken by a later one is believed, one from before the question is not', async t => {
  const growing = log.fork()
  let release = () => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  const early = growing.result(3)
  const app = clientOf(
    growing.fetch(async path => {
      if (path !== 'api/get-public-keys') return undefined
      await held
      return { results: [early] }
    }),
  )
  const late = app.lookUp(alice)
  growing.grow(300)
  t.match(await app.refreshCheckpoint(), { kind: 'verified', checkpoint: { treeSize: 300 } })
  release()
  t.match(await late, { kind: 'verified', checkpoint: { treeSize: 40 } })
  t.match(await app.lookUp(alice), { kind: 'unanswered', check: 'stale' })
  t.equal((await app.highestCheckpoint())?.treeSize, 300)
})

t.test(
  'growth that cannot be checked for want of tiles leaves the lookup unanswered and the pin in place',
  async t => {
    const store = new MemoryStore()
    await clientOf(log.fetch(), { store }).refreshCheckpoint()
    const grown = log.fork()
    grown.grow(300)
    const fetch = grown.fetch(path =>
      path.startsWith('tile/') ? new Response('', { status: 503 }) : undefined,
    )
    t.match(await clientOf(fetch, { store }).lookUp(alice), { kind: 'unanswered', check: 'tiles' })
    t.equal(store.get(log.signer.name)?.treeSize, 40)
  },
)

t.test('a client without a store says so, unless the app chose one that forgets', async t => {
  const warnings: unknown[] = []
  t.intercept(console, 'warn', { value: (text: unknown) => warnings.push(text) })
  const options = { ...log.published, url, fetch: log.fetch() }
  new LogClient({ ...options, store: new MemoryStore() })
  t.same(warnings, [])
  new LogClient(options)
  t.match(warnings, [/no store/])
})

t.test('what the app does wrong rejects: an id, a store, a key', async t => {
  const app = clientOf(log.fetch())
  await t.rejects(app.lookUp({ ...alice, userId: '-1' }), RangeError)
  await t.rejects(app.checkOwnKeys({ ...alice, deviceId: '', publicKeys: [] }), RangeError)
  const full = Object.assign(new MemoryStore(), {
    put() {
      throw new Error('the disk is full')
    },
  })
  await t.rejects(clientOf(log.fetch(), { store: full }).refreshCheckpoint(), { message: 'the disk is full' })
  t.throws(() => new LogClient({ url, vkey: 'no key', vrfPublicKey: '' }), { code: 'KEY_INVALID' })
})

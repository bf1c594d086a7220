/** `CallsignServer` with a running server, and with servers that answer as they should not. */

import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { CallsignServer } from '../../src/backend/server.ts'
import { SCOPES } from '../../src/domain/operators/server-key.ts'
import { until } from '../support/nodes.ts'
import { openServer } from '../support/open-server.ts'
import { newServerKey, serverKeyCommand } from '../support/server-keys.ts'

const SOME_KEY = `csk_${'0'.repeat(12)}_${'0'.repeat(64)}`

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

t.test('a backend makes, finds, imports, joins and erases its users', async t => {
  const dataFolder = t.testdir()
  const server = await openServer({ dataFolder })
  t.teardown(() => server.end())
  const key = await newServerKey(
    dataFolder,
    server,
    SCOPES.filter(scope => scope !== 'console'),
  )
  const callsign = new CallsignServer({ url: server.serverApi, key })
  const strange = { ext: 'a/b?c=d&e #%2F:ü' }
  const { userId } = await callsign.users.put(strange, { displayName: 'Ann', email: 'ann@example.org' })
  t.match(await callsign.users.get(strange), { userId, displayName: 'Ann', externalId: strange.ext })
  t.match(await callsign.users.get({ id: userId }), { userId })

  const users = Array.from({ length: 230 }, (_, at) => ({
    ref: { ext: `u${at}` },
    displayName: `User ${at}`,
  }))
  const faulty = [...users.slice(0, 100), { ref: { ext: '' }, displayName: 'X' }, ...users.slice(100)]
  const lines = await all(callsign.users.import(faulty))
  t.equal(lines.length, 231)
  t.same([lines[0]?.status, lines[230]?.status], ['created', 'created'])
  t.match(lines[100], { line: 101, status: 'refused', code: 'VALIDATION_FAILED' })
  t.ok((await all(callsign.users.import(users))).every(({ status }) => status === 'unchanged'))
  t.equal((await all(callsign.users.list({ limit: 50 }))).length, 231, 'all pages')
  t.match(await all(callsign.users.list({ email: 'ann@example.org' })), [{ userId }])

  await callsign.contacts.put({ ext: 'u1' }, { ext: 'u2' })
  await callsign.contacts.delete({ ext: 'u1' }, { ext: 'u2' })
  await callsign.circles.addMember('team 1', { ext: 'u1' })
  await callsign.circles.addMember('team 1', { ext: 'u2' })
  t.equal((await all(callsign.circles.members('team 1'))).length, 2)
  await callsign.circles.removeMember('team 1', { ext: 'u1' })
  await callsign.circles.delete('team 1')
  await callsign.users.suspend({ ext: 'u3' }, { reason: 'abuse' })
  await callsign.users.unsuspend({ ext: 'u3' })
  const exported = await new Response(await callsign.users.export(strange)).json()
  t.match(JSON.stringify(exported), /ann@example\.org/)
  t.ok((await callsign.users.changes()).items.length > 0)
  await callsign.users.delete(strange, { now: true })
  // The next sweep erases them, within a second.
  const isGone = async () =>
    (await callsign.users.get(strange).catch(({ code }) => code)) === 'USER_NOT_FOUND'
  await until(isGone)
  const operations = (await all(callsign.audit())).map(({ operation }) => operation)
  t.ok(operations.includes('suspendUser') && operations.includes('exportUserByRef'), 'all of it is on record')

  await serverKeyCommand(dataFolder, server, 'revoke', '--id', key.split('_')[1]!)
  await t.rejects(callsign.users.get({ ext: 'u1' }), { code: 'SERVER_KEY_REVOKED', status: 401 })
})

t.test('a refusal has the server’s code and sentence', async t => {
  const dataFolder = t.testdir()
  const server = await openServer({ dataFolder })
  t.teardown(() => server.end())
  const key = await newServerKey(dataFolder, server, ['calls'])
  const callsign = new CallsignServer({ url: server.serverApi, key })
  await t.rejects(callsign.users.get({ ext: '1' }), {
    name: 'CallsignServerError',
    code: 'SCOPE_MISSING',
    message: /scope users/,
    members: { requestId: String },
  })
  const stranger = new CallsignServer({ url: server.serverApi, key: SOME_KEY })
  await t.rejects(stranger.users.get({ ext: '1' }), { code: 'SERVER_KEY_INVALID' })
})

t.test('an address or a key that is none is refused at once', async t => {
  t.throws(() => new CallsignServer({ url: 'nowhere', key: SOME_KEY }), TypeError)
  for (const key of ['', 'csk_1', `${SOME_KEY} `])
    t.throws(() => new CallsignServer({ url: 'http://127.0.0.1:1', key }), TypeError)
})

t.test('a user without an id is refused at once, and no user is made', async t => {
  const callsign = new CallsignServer({ url: 'http://127.0.0.1:1', key: SOME_KEY })
  const unset = undefined as unknown as string
  for (const ref of [{ ext: unset }, { id: unset }, {} as { id: string }])
    t.throws(() => callsign.users.get(ref), TypeError)
  await t.rejects(all(callsign.users.import([{ ref: { ext: unset } }])), TypeError)
})

t.test('an import of any length goes in as many requests as it takes, by one count', async t => {
  const counts: number[] = []
  const callsign = await answering(t, async (request, answer) => {
    let text = ''
    for await (const part of request) text += part
    const lines = text.trimEnd().split('\n')
    counts.push(lines.length)
    answer.end(lines.map((_, at) => `${JSON.stringify({ line: at + 1, status: 'unchanged' })}\n`).join(''))
  })
  async function* people(count: number, displayName = 'X') {
    for (let at = 0; at < count; at++) yield { ref: { ext: `${at}` }, displayName }
  }
  const lines = await all(callsign.users.import(people(10_001)))
  t.same([lines.length, lines.at(-1)?.line], [10_001, 10_001])
  await all(callsign.users.import(people(5, 'X'.repeat(2 * 1024 * 1024))))
  t.same(counts, [10_000, 1, 3, 2])
  t.same(await all(callsign.users.import([])), [], 'nobody')
})

async function answering(t: Test, answer: RequestListener): Promise<CallsignServer> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return new CallsignServer({ url: `http://127.0.0.1:${port}`, key: SOME_KEY, timeoutMs: 2_000 })
}

t.test('a request is repeated while the server is busy or breaks off, four times in all', async t => {
  const problem = JSON.stringify({ code: 'OVERLOADED', detail: 'busy' })
  const asked: string[] = []
  const callsign = await answering(t, (request, answer) => {
    asked.push(request.method!)
    if (asked.length === 1) return void answer.writeHead(503).end(problem)
    if (asked.length === 2) return void request.socket.destroy()
    answer.writeHead(200).end('{"userId":"1"}')
  })
  t.same(await callsign.users.get({ id: '1' }), { userId: '1' })
  t.same(asked, ['GET', 'GET', 'GET'])
  let refused = 0
  const busy = await answering(t, (_, answer) => {
    refused++
    answer.writeHead(503).end(problem)
  })
  await t.rejects(busy.users.signOut({ id: '1' }), { code: 'OVERLOADED', status: 503 })
  t.equal(refused, 4)
})

t.test('an answer of another form, or cut off, is no answer', async t => {
  const strange = await answering(t, (_, answer) => void answer.writeHead(200).end('<html>'))
  await t.rejects(strange.users.get({ id: '1' }), { code: 'ANSWER_INVALID' })
  const proxy = await answering(t, (_, answer) => void answer.writeHead(502).end('<html>'))
  await t.rejects(proxy.users.get({ id: '1' }), { code: 'ANSWER_INVALID', status: 502 })
  const moved = await answering(
    t,
    (_, answer) => void answer.writeHead(302, { location: 'http://127.0.0.1:1' }).end(),
  )
  await t.rejects(
    moved.users.signOut({ id: '1' }),
    { code: 'NO_ANSWER' },
    'a redirect is not followed with a key',
  )
  const cut = await answering(t, (_, answer) => {
    answer.writeHead(200)
    answer.write('{"line":1,"status":"created","userId":"1"}\n{"line":2,"sta', () => answer.destroy())
  })
  const seen: unknown[] = []
  await t.rejects(
    async () => {
      for await (const line of cut.users.import([{ ref: { ext: '1' } }])) seen.push(line)
    },
    { code: 'NO_ANSWER' },
  )
  t.equal(seen.length, 1, 'what came whole is there')
})

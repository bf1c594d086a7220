/** Imports of users: lines that are right, each kind of line that is not, files at fault, imports that come again or break off. */

import t, { type Test } from 'tap'
import { isStream } from '../../../src/transport/answer-body.ts'
import type { HttpRequest } from '../../../src/transport/route.ts'
import { openServerApi } from '../../support/server-api.ts'
import { storedTable } from '../../support/stored-table.ts'
import { openTestApi } from '../../support/test-api.ts'

const PATH = '/server/api/v1/user-imports'
const NDJSON = { 'content-type': 'application/x-ndjson' }

async function open(t: Test) {
  const whole = await openTestApi(t)
  const { send, newKey } = await openServerApi(whole)
  const { world, application } = whole
  const userCount = () => world.database.view(view => view.count(storedTable('users')))
  const run = async (file: string | Uint8Array) => {
    const body = typeof file === 'string' ? Buffer.from(file) : file
    const answer = await send(`POST ${PATH}`, { body, headers: NDJSON })
    t.equal(answer.status, 200)
    return linesIn(answer.text)
  }
  /** The answer part by part. */
  const begin = async (file: string, key?: string) => {
    const token = key ?? (await newKey(['users']))
    const route = application.serverRoutes.find(({ path }) => path === PATH)!
    const request: HttpRequest = {
      method: 'POST',
      path: PATH,
      params: [],
      query: '',
      requestId: 'test-request',
      contentType: NDJSON['content-type'],
      header: name => (name === 'authorization' ? `Bearer ${token}` : ''),
      network: '127.0.0.1',
      body: Buffer.from(file),
    }
    const { body } = await route.handle(request)
    if (!isStream(body)) throw new Error('the answer is no stream')
    return body[Symbol.asyncIterator]()
  }
  const audited = () =>
    world.database
      .view(view => world.auditLog.read(view, { sinceMs: 0, limit: 1_000 }))
      .filter(({ operation }) => operation === 'importUsers')
      .map(({ target }) => target)
      .sort()
  return { ...whole, server: send, newKey, run, begin, userCount, audited }
}

// biome-ignore lint/suspicious/noExplicitAny: answers of any form
function linesIn(text: string): any[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line))
}

function fileOf(...lines: object[]): string {
  return lines.map(line => `${JSON.stringify(line)}\n`).join('')
}

function manyLines(count: number, from = 0): string {
  return fileOf(...Array.from({ length: count }, (_, at) => ({ ref: `ext:${from + at}` })))
}

t.test('each line is a user, answered in order; the file again changes nothing', async t => {
  const { run, userCount, audited, world } = await open(t)
  const file = fileOf(
    { ref: 'ext:a/b %41', displayName: 'Ann', email: 'ann@example.org', reachable: 'all' },
    { ref: 'ext:bob', phone: '0912345678', country: 'VN' },
  )
  const first = await run(file)
  t.match(first, [
    { line: 1, status: 'created', userId: /^\d+$/ },
    { line: 2, status: 'created', userId: /^\d+$/ },
  ])
  t.same(
    await run(file),
    first.map(answer => ({ ...answer, status: 'unchanged' })),
  )
  t.match(await run(fileOf({ ref: `id:${first[0].userId}`, displayName: 'Ann Lee' })), [
    { line: 1, status: 'changed', userId: first[0].userId },
  ])
  t.equal(userCount(), 2)
  t.same(audited(), ['users:1', 'users:2'])
  const user = world.database.view(view => world.accounts.read(view, BigInt(first[0].userId) as never))
  t.match(user, { externalId: 'a/b %41', displayName: 'Ann Lee', isMadeByServer: true })
})

t.test('a line at fault, wherever it is, stops no other', async t => {
  const { run, codeLogin, userCount } = await open(t)
  await codeLogin('taken@example.org')
  const bad: readonly (readonly [name: string, line: string | Uint8Array, code: string, detail: RegExp])[] = [
    ['not JSON', 'hello', 'MALFORMED_JSON', /^the line is not JSON/],
    ['cut off', '{"ref":"ext:cut"', 'MALFORMED_JSON', /^the line/],
    ['no object', '[]', 'VALIDATION_FAILED', /^the line/],
    ['no UTF-8', Buffer.from('7b22726566223a226578743aff227d', 'hex'), 'MALFORMED_JSON', /not UTF-8/],
    ['half a character', '{"ref":"ext:\\ud800"}', 'MALFORMED_JSON', /surrogate/],
    ['a byte order mark', '\ufeff{"ref":"ext:bom"}', 'MALFORMED_JSON', /^the line/],
    ['a member twice', '{"ref":"ext:x","ref":"ext:y"}', 'MALFORMED_JSON', /twice/],
    ['too deep', '['.repeat(100), 'MALFORMED_JSON', /deeper/],
    ['no reference', '{"displayName":"Ann"}', 'VALIDATION_FAILED', /^\/ref is missing/],
    ['another reference', '{"ref":"ann"}', 'VALIDATION_FAILED', /^\/ref is id:/],
    ['a number', '{"ref":7}', 'VALIDATION_FAILED', /^\/ref/],
    ['an id that nobody has', '{"ref":"id:4294967297"}', 'USER_NOT_FOUND', /ext:/],
    ['a long external id', `{"ref":"ext:${'x'.repeat(257)}"}`, 'VALIDATION_FAILED', /256 octets/],
    ['a bad name', '{"ref":"ext:x","displayName":"\\n"}', 'VALIDATION_FAILED', /^\/displayName/],
    ['a bad address', '{"ref":"ext:x","email":"x"}', 'VALIDATION_FAILED', /^\/email/],
    ['a country that is not served', '{"ref":"ext:x","phone":"+8501921234567"}', 'BLOCKED_COUNTRY', /./],
    ['a taken address', '{"ref":"ext:x","email":"Taken@example.org"}', 'METHOD_IN_USE', /email address/],
    ['the user of the first line', '{"ref":"ext:first"}', 'VALIDATION_FAILED', /is of the user of line 1$/],
    ['a long line', `{"ref":"ext:x","displayName":"${'x'.repeat(17_000)}"}`, 'BODY_TOO_LARGE', /16384 bytes/],
    ['a line of nothing but length', 'x'.repeat(1_000_000), 'BODY_TOO_LARGE', /16384 bytes/],
  ]
  const before = userCount()
  const parts = bad.flatMap(([, line], at) => [Buffer.from(line), Buffer.from(`\n{"ref":"ext:good${at}"}\n`)])
  const answers = await run(Buffer.concat([Buffer.from('{"ref":"ext:first"}\n'), ...parts]))
  t.equal(answers.length, 1 + 2 * bad.length)
  for (const [at, [name, , code, detail]] of bad.entries()) {
    t.match(answers[1 + 2 * at], { line: 2 + 2 * at, status: 'refused', code, detail }, name)
    t.same(Object.keys(answers[1 + 2 * at]).sort(), ['code', 'detail', 'line', 'status'], name)
    t.match(answers[2 + 2 * at], { line: 3 + 2 * at, status: 'created' }, `after ${name}`)
  }
  t.equal(userCount(), before + 1 + bad.length)
})

t.test('a user twice in one file is refused the second time, also across portions', async t => {
  const { run, world, userCount } = await open(t)
  const file = `${fileOf({ ref: 'ext:ann', displayName: 'Ann' })}${manyLines(150)}${fileOf({ ref: 'ext:ann', displayName: 'Eve' })}`
  const answers = await run(file)
  t.match(answers.at(-1), { line: 152, status: 'refused', code: 'VALIDATION_FAILED', detail: /line 1$/ })
  const again = await run(fileOf({ ref: `id:${answers[0].userId}`, displayName: 'A' }, { ref: 'ext:ann' }))
  t.match(again, [{ status: 'changed' }, { status: 'refused', detail: /line 1$/ }], 'by whichever id')
  t.equal(userCount(), 151)
  t.ok(world)
})

t.test('empty lines have numbers and no answers; the last line needs no end', async t => {
  const { run } = await open(t)
  const answers = await run('\n{"ref":"ext:a"}\r\n \t\r\n\n{"ref":"ext:b"}')
  t.match(answers, [
    { line: 2, status: 'created' },
    { line: 5, status: 'created' },
  ])
  t.equal(answers.length, 2)
  t.same(await run(''), [])
  t.match(await run('{"ref":"ext:c"}\n{"ref":"ext:d'), [
    { status: 'created' },
    { line: 2, code: 'MALFORMED_JSON' },
  ])
})

t.test('a file of more lines than it may have is refused whole, as is another type', async t => {
  const { server, userCount, run } = await open(t)
  const ask = (body: string, headers: Record<string, string> = NDJSON) =>
    server(`POST ${PATH}`, { body: Buffer.from(body), headers })
  const many = await ask('{}\n'.repeat(10_001))
  t.match(many, { status: 422, body: { code: 'VALIDATION_FAILED', detail: /10000 lines/ } })
  t.equal((await run('\n'.repeat(10_000))).length, 0)
  t.equal((await ask(fileOf({ ref: 'ext:a' }), {})).status, 415)
  t.equal(userCount(), 0)
})

t.test('the file’s bytes have a bound, which the transport keeps', async t => {
  const { application } = await open(t)
  t.equal(application.serverRoutes.find(({ path }) => path === PATH)!.bodyBytesMax, 8 * 1024 * 1024)
})

t.test('two imports at once make each user once', async t => {
  const { run, userCount, audited } = await open(t)
  const [one, other] = await Promise.all([run(manyLines(250)), run(manyLines(250))])
  t.equal(userCount(), 250)
  const made = [...one, ...other].filter(({ status }) => status === 'created')
  t.equal(made.length, 250)
  t.same(
    one.map(({ userId }) => userId),
    other.map(({ userId }) => userId),
  )
  const audits = audited().map(target => Number(target.slice('users:'.length)))
  t.equal(
    audits.reduce((sum, count) => sum + count, 0),
    250,
  )
})

t.test('an import that breaks off has done what it answered, and can come again', async t => {
  const { begin, run, userCount } = await open(t)
  const parts = await begin(manyLines(350))
  const answered = []
  for (let count = 0; count < 2; count++)
    answered.push(...linesIn(Buffer.from((await parts.next()).value!).toString()))
  t.equal(answered.length, 200)
  await parts.return?.()
  t.equal(userCount(), 200, 'and nothing more, since nobody reads on')
  const again = await run(manyLines(350))
  t.same(
    again.slice(0, 200),
    answered.map(answer => ({ ...answer, status: 'unchanged' })),
  )
  t.equal(again.filter(({ status }) => status === 'created').length, 150)
  t.equal(userCount(), 350)
})

t.test('where the store fails in the middle, all answered lines are there', async t => {
  const { begin, run, userCount, world } = await open(t)
  const parts = await begin(manyLines(250))
  await parts.next()
  const { change } = world.database
  world.database.change = () => Promise.reject(new Error('ordered by a test'))
  await t.rejects(Promise.resolve(parts.next()), /ordered by a test/)
  world.database.change = change
  t.equal(userCount(), 100)
  t.equal((await run(manyLines(250))).filter(({ status }) => status === 'created').length, 150)
})

t.test('a key that is revoked while its file is read writes no more of it', async t => {
  const { begin, newKey, userCount, world } = await open(t)
  const key = await newKey(['users'])
  const parts = await begin(manyLines(150), key)
  await parts.next()
  await world.database.change(change => world.serverKeys.revoke(change, key.split('_')[1]!))
  await t.rejects(parts.next(), { code: 'SERVER_KEY_REVOKED' })
  t.equal(userCount(), 100)
})

t.test('a key has a few files on their way at once, and no other key waits for them', async t => {
  const { begin, newKey } = await open(t)
  const key = await newKey(['users'])
  const open8 = await Promise.all(Array.from({ length: 8 }, () => begin(manyLines(1), key)))
  await t.rejects(begin(manyLines(1), key), { code: 'OVERLOADED' })
  await (await begin(manyLines(1))).return?.()
  await open8[0]!.return?.()
  await open8[0]!.return?.()
  const again = await begin(manyLines(1), key)
  await t.rejects(begin(manyLines(1), key), { code: 'OVERLOADED' }, 'one that is let go twice counts once')
  while (!(await again.next()).done);
  await begin(manyLines(1), key)
})

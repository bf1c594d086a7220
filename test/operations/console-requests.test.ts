/** The requests that the console shows: what each row says, that bodies come without secrets, and that none of it grows. */

import t from 'tap'
import { OPERATIONS } from '../../src/api/operations.ts'
import { requestReader } from '../../src/api/table/shown-requests.ts'
import { RequestLog } from '../../src/operations/console/requests.ts'
import type { ServedRequest } from '../../src/transport/http-deps.ts'

const reader = requestReader(OPERATIONS)

const LOGIN: ServedRequest = {
  requestId: 'request-1',
  method: 'POST',
  path: '/app/api/login',
  query: '',
  route: '/app/api/login',
  contentType: 'application/json',
  body: Buffer.from('{"emial":"ann@example.org","otp":"424242"}'),
  status: 422,
  code: 'VALIDATION_FAILED',
  pointer: '/email',
  seconds: 0.00123,
  answerType: 'application/problem+json',
  answer: '{"code":"VALIDATION_FAILED"}',
  answerBytes: 28,
}

function open(bounds: ConstructorParameters<typeof RequestLog>[1] = {}) {
  const log = new RequestLog(() => 5_000, bounds)
  const route = log.route(reader)
  const detail = async (sequence: number) => {
    const request = { params: [`${sequence}`] } as unknown as Parameters<typeof route.handle>[0]
    return JSON.parse(String((await route.handle(request)).body))
  }
  return { log, detail, rows: (after = 0) => log.rowsAfter(after, 500).map(row => JSON.parse(row)) }
}

t.test('a row has the request and its outcome', async t => {
  const { log, rows } = open()
  log.noteRequester(LOGIN, { userId: 7n, deviceId: 18446744073709551615n })
  log.add(LOGIN)
  log.add({
    ...LOGIN,
    code: undefined,
    pointer: undefined,
    status: 200,
    body: Buffer.from('{"email":"a@b.example"}'),
  })
  t.match(rows()[0], {
    sequence: 1,
    atMs: 5_000,
    method: 'POST',
    path: '/app/api/login',
    status: 422,
    code: 'VALIDATION_FAILED',
    pointer: '/email',
    ms: 1.2,
    requestId: 'request-1',
    unknownFields: ['/emial', '/otp'],
    userId: '7',
    deviceId: '18446744073709551615',
  })
  t.notOk('unknownFields' in rows()[1] || 'userId' in rows()[1] || 'code' in rows()[1])
  t.equal(rows(1).length, 1, 'those after the first')
  t.equal(rows(2).length, 0)
})

t.test('bodies are shown without their secrets, and one that is no JSON by its size', async t => {
  const { log, detail } = open()
  log.add(LOGIN)
  const first = await detail(1)
  t.match(first.request, '"emial": "ann@example.org"')
  t.notMatch(first.request, '424242')
  t.match(first, { route: '/app/api/login', answer: '{\n  "code": "VALIDATION_FAILED"\n}' })
  log.add({
    ...LOGIN,
    body: Buffer.from('otp=424242'),
    contentType: 'text/plain',
    answer: '',
    answerBytes: 0,
  })
  t.match(await detail(2), { request: '(10 bytes, text/plain, no JSON)', answer: '' })
  log.add({ ...LOGIN, body: Buffer.alloc(40_000, ' ') })
  t.match(await detail(3), { request: '(40000 bytes, not kept)' })
  log.add({ ...LOGIN, body: Buffer.from(JSON.stringify({ text: 'x'.repeat(30_000) })) })
  t.ok((await detail(4)).request.length < 12_100, 'a long one is cut')
  log.add({ ...LOGIN, answer: undefined, answerBytes: 5_000_000 })
  t.match(await detail(5), { answer: '(5000000 bytes, not kept)' }, 'one that was made part by part')
  await t.rejects(detail(6), { code: 'NOT_FOUND' })
})

t.test('the last requests are kept, and of their bodies the newest', async t => {
  const { log, rows, detail } = open({ rowsMax: 10, bytesMax: 1_000 })
  const body = Buffer.from(JSON.stringify({ name: 'x'.repeat(189) }))
  for (let at = 0; at < 1_000; at++) log.add({ ...LOGIN, body, answer: '', answerBytes: 0 })
  t.same(log.size, { rows: 10, bytes: 1_000 })
  t.same([rows()[0].sequence, rows().at(-1).sequence, rows().length], [991, 1_000, 10])
  t.equal((await detail(991)).request, '(200 bytes, not kept)')
  t.match((await detail(1_000)).request, 'xxx')
  await t.rejects(detail(990), { code: 'NOT_FOUND' })
})

t.test('the pages of the console are not among them', async t => {
  const { log } = open()
  const paths = ['/dev', '/dev/feed', '/dev/pages/base.css', '/docs', '/docs/api/swagger-ui.css', '/']
  for (const path of paths) t.equal(log.add({ ...LOGIN, path }), false, path)
  t.equal(log.sequence, 0)
  t.equal(log.add({ ...LOGIN, path: '/developer' }), true)
})

t.test('requests of a front pass on with their bodies and people, once', async t => {
  const front = open().log
  front.noteRequester(LOGIN, { userId: 7n })
  front.add(LOGIN)
  front.add({ ...LOGIN, requestId: 'request-2', body: Buffer.alloc(40_000, ' ') })
  const { log, rows, detail } = open()
  // The writer has answered it for the front.
  log.noteRequester({ requestId: 'request-2' }, { userId: 8n })
  for (const shown of front.take()) log.put(shown)
  t.same(front.take(), [])
  t.match(rows(), [
    { sequence: 1, userId: '7', unknownFields: ['/emial', '/otp'] },
    { sequence: 2, userId: '8' },
  ])
  t.match(await detail(2), { request: '(40000 bytes, not kept)' })
  t.same(front.size, { rows: 0, bytes: 0 })
})

t.test('people of requests that never get an answer do not gather', async t => {
  const { log, rows } = open()
  for (let at = 0; at <= 1_000; at++) log.noteRequester({ requestId: `request-${at}` }, { userId: 7n })
  for (const at of [0, 1_000]) log.add({ ...LOGIN, requestId: `request-${at}` })
  t.same(
    rows().map(({ userId }) => userId),
    [undefined, '7'],
  )
})

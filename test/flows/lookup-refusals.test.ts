/** Lookups over HTTP: every bad input gets its status, code and sentence; nothing leaks, nothing breaks. */

import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { openServer } from '../support/open-server.ts'
import { type OpenServer, postJson } from '../support/server.ts'

interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly requestId: string
  readonly errors?: readonly { readonly pointer: string }[]
}

interface LogWithOneKey {
  readonly server: OpenServer
  readonly url: string
  readonly historyUrl: string
  readonly vrfHash: string
}

async function logWithOneKey(t: Test, environment: Record<string, string> = {}): Promise<LogWithOneKey> {
  const server = await openServer({ dataFolder: t.testdir(), environment })
  t.teardown(() => server.end())
  const client = new RegisterClient(server.grpc)
  const { vrfHash } = await client.register(1n, 1n, 'AAAA')
  client.close()
  return {
    server,
    url: `${server.http}/api/get-public-keys`,
    historyUrl: `${server.http}/api/get-key-history`,
    vrfHash,
  }
}

const targetsOf = (...hashes: readonly unknown[]) => ({
  targets: hashes.map(publicKeyHash => ({ publicKeyHash })),
})

t.test('a body that breaks a rule gets a problem with a stable code and a pointer', async t => {
  const { url, historyUrl, vrfHash } = await logWithOneKey(t)
  const hashBytes = Buffer.from(vrfHash, 'base64')
  const oneBitOff = Buffer.from(hashBytes)
  oneBitOff[63]! ^= 1
  const otherHash = Buffer.alloc(64, 7).toString('base64')
  const cases: [string, unknown, number, string, string?][] = [
    ['not JSON', 'nonsense', 400, 'MALFORMED_JSON'],
    ['cut JSON', '{"targets":[', 400, 'MALFORMED_JSON'],
    ['nothing', '', 400, 'MALFORMED_JSON'],
    ['not UTF-8', Buffer.from('7b22ff227d', 'hex'), 400, 'MALFORMED_JSON'],
    ['nested 33 deep', '['.repeat(33) + ']'.repeat(33), 400, 'MALFORMED_JSON'],
    ['nested 8,000 deep', '['.repeat(8_000), 400, 'MALFORMED_JSON'],
    ['an array', [], 422, 'VALIDATION_FAILED', ''],
    ['null', 'null', 422, 'VALIDATION_FAILED', ''],
    ['no targets', {}, 422, 'VALIDATION_FAILED', '/targets'],
    ['targets of another type', { targets: 'x' }, 422, 'VALIDATION_FAILED', '/targets'],
    ['0 targets', { targets: [] }, 422, 'VALIDATION_FAILED', '/targets'],
    ['65 targets', targetsOf(...Array(65).fill(vrfHash)), 422, 'VALIDATION_FAILED', '/targets'],
    ['a hash of another type', targetsOf(vrfHash, 5), 422, 'VALIDATION_FAILED', '/targets/1/publicKeyHash'],
    [
      'a 63-byte hash',
      targetsOf(hashBytes.subarray(1).toString('base64')),
      422,
      'VALIDATION_FAILED',
      '/targets/0/publicKeyHash',
    ],
    [
      'a 65-byte hash',
      targetsOf(Buffer.alloc(65).toString('base64')),
      422,
      'VALIDATION_FAILED',
      '/targets/0/publicKeyHash',
    ],
    [
      'non-canonical base64',
      targetsOf(`${vrfHash.slice(0, 85)}B==`),
      422,
      'VALIDATION_FAILED',
      '/targets/0/publicKeyHash',
    ],
    [
      'a newline in the hash',
      targetsOf(`${vrfHash}\n`),
      422,
      'VALIDATION_FAILED',
      '/targets/0/publicKeyHash',
    ],
    [
      'an unknown hash',
      targetsOf(vrfHash, otherHash),
      404,
      'UNKNOWN_PUBLIC_KEY_HASH',
      '/targets/1/publicKeyHash',
    ],
    [
      'a hash one bit off',
      targetsOf(oneBitOff.toString('base64')),
      404,
      'UNKNOWN_PUBLIC_KEY_HASH',
      '/targets/0/publicKeyHash',
    ],
    ['a body over the limit', 'x'.repeat(17_000), 413, 'BODY_TOO_LARGE'],
  ]
  for (const [what, body, status, code, pointer] of cases) {
    const answer = await postJson<Problem>(url, body)
    t.match(answer, { status, body: { status, code } }, what)
    t.match(answer.headers.get('content-type'), /^application\/problem\+json/, `${what}: media type`)
    t.equal(answer.body.type, `urn:problem:${code.toLowerCase().replaceAll('_', '-')}`, `${what}: type`)
    t.equal(answer.body.requestId, answer.headers.get('x-request-id'), `${what}: request id`)
    t.equal(answer.body.errors?.[0]?.pointer, pointer, `${what}: pointer`)
    t.notMatch(JSON.stringify(answer.body), /node_modules|\.js:|at .*\(/, `${what}: no stack`)
  }
  t.match(await postJson<Problem>(historyUrl, { publicKeyHash: otherHash }), { status: 404 })
  t.match(await postJson<Problem>(historyUrl, {}), { status: 422 })
  t.equal(
    (await postJson(url, targetsOf(vrfHash, vrfHash))).status,
    200,
    'and the server goes on; duplicates are legal',
  )
})

t.test('64 targets of the longest form fit the body limit', async t => {
  const { url, vrfHash } = await logWithOneKey(t)
  const spacious = JSON.stringify(targetsOf(...Array(64).fill(vrfHash)), null, 4)
  const { status, body } = await postJson<{ results: unknown[] }>(url, spacious)
  t.equal(status, 200)
  t.equal(body.results.length, 64)
})

t.test('another media type is 415, another method 405 with Allow, another path 404', async t => {
  const { server, url, vrfHash } = await logWithOneKey(t)
  const asText = await postJson<Problem>(url, targetsOf(vrfHash), { 'content-type': 'text/plain' })
  t.match(asText, { status: 415, body: { code: 'UNSUPPORTED_MEDIA_TYPE' } })
  const get = await fetch(url)
  t.equal(get.status, 405)
  t.equal(get.headers.get('allow'), 'POST')
  t.equal(
    (await fetch(`${server.http}/app/api/meta`, { method: 'DELETE' })).headers.get('allow'),
    'GET, HEAD',
  )
  for (const path of ['/', '/api', '/api/get-public-key', '/healthz', '/metrics', '/api//get-public-keys']) {
    t.equal((await fetch(`${server.http}${path}`)).status, 404, path)
  }
  t.equal((await postJson(`${url}/`, targetsOf(vrfHash))).status, 200, 'a trailing slash is accepted')
})

t.test('a request id of 8 to 64 safe characters is echoed, any other replaced', async t => {
  const { server } = await logWithOneKey(t)
  const idOf = async (id: string) =>
    (await fetch(`${server.http}/app/api/meta`, { headers: { 'x-request-id': id } })).headers.get(
      'x-request-id',
    )
  t.equal(await idOf('abc-123.DEF_4'), 'abc-123.DEF_4')
  t.not(await idOf('short'), 'short')
  t.not(await idOf('spaces are not safe'), 'spaces are not safe')
  t.not(await idOf('x'.repeat(65)), 'x'.repeat(65))
})

t.test('uploads that are cut off at any byte leave the server as it was', async t => {
  const { server, url, vrfHash } = await logWithOneKey(t)
  const { port } = new URL(server.http)
  const body = JSON.stringify(targetsOf(vrfHash))
  const request = `POST /api/get-public-keys HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const cuts = Array.from({ length: 60 }, (_, at) => Math.floor((request.length * at) / 60))
  await Promise.all(
    cuts.map(
      cut =>
        new Promise<void>(resolve => {
          const socket = connect(Number(port), '127.0.0.1', () => {
            socket.write(request.slice(0, cut), () => socket.destroy())
          })
          socket.on('close', () => resolve()).on('error', () => resolve())
        }),
    ),
  )
  t.equal((await postJson(url, targetsOf(vrfHash))).status, 200)
})

t.test(
  'an address that asks too often is told how long to wait, and the log files stay readable',
  async t => {
    // Each front counts for itself.
    const environment = { CALLSIGN_RATE_LIMITS: '', CALLSIGN_FRONTS: '0' }
    const { server, url, vrfHash } = await logWithOneKey(t, environment)
    const statuses: number[] = []
    let refusal: Awaited<ReturnType<typeof postJson<Problem & { retryIn: number }>>> | undefined
    for (let at = 0; at < 140; at++) {
      const answer = await postJson<Problem & { retryIn: number }>(url, targetsOf(vrfHash))
      statuses.push(answer.status)
      if (answer.status === 429) refusal ??= answer
    }
    t.ok(
      statuses.slice(0, 120).every(status => status === 200),
      'the first 120 in a minute are answered',
    )
    t.match(refusal, { status: 429, body: { code: 'RATE_LIMITED', retryIn: 1 } })
    t.equal(refusal?.headers.get('retry-after'), '1')
    t.equal((await fetch(`${server.http}/checkpoint`)).status, 200)
  },
)

/** The public port as it is set up: TLS and its pins, pages of other origins, proxies in front. */

import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { get } from 'node:https'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { openRefused, openServer } from '../support/open-server.ts'
import { startedProgram } from '../support/programs.ts'
import type { OpenServer } from '../support/server.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { weakCiphersOf } from '../support/weak-ciphers.ts'

const run = promisify(execFile)
const TLS_FOLDER = join(PROJECT_ROOT, 'test/support/tls')
const CALLSIGN_TLS_CERT = join(TLS_FOLDER, 'server.crt')
const CALLSIGN_TLS_KEY = join(TLS_FOLDER, 'server.key')
const AUTHORITY = join(TLS_FOLDER, 'ca.crt')

async function start(t: Test, environment: Record<string, string>): Promise<OpenServer> {
  const server = await openServer({ dataFolder: t.testdir(), environment })
  t.teardown(() => server.end())
  return server
}

/** The pin as OpenSSL computes it. */
async function opensslPin(certificateFile: string): Promise<string> {
  const pipeline = `openssl x509 -in "$0" -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | openssl base64`
  return (await run('sh', ['-c', pipeline, certificateFile])).stdout.trim()
}

function pin(...args: string[]): Promise<{ stdout: string }> {
  return run(process.execPath, [startedProgram('scripts/callsign'), 'pin', ...args])
}

function getTrusted(url: string): Promise<{ status: number | undefined; headers: IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const outgoing = get(url, { ca: readFileSync(AUTHORITY), agent: false }, incoming => {
      incoming.resume().on('end', () => resolve({ status: incoming.statusCode, headers: incoming.headers }))
    })
    outgoing.on('error', reject)
  })
}

t.test('with a certificate the port speaks TLS, says so, and asks browsers to stay with it', async t => {
  const server = await start(t, { CALLSIGN_TLS_CERT, CALLSIGN_TLS_KEY })
  t.match(server.http, /^https:\/\/127\.0\.0\.1:\d+$/)
  const answer = await getTrusted(`${server.http}/app/api/meta`)
  t.equal(answer.status, 200)
  t.equal(answer.headers['strict-transport-security'], 'max-age=31536000')
  for (const [path, status] of [
    ['/none', 404],
    ['/checkpoint', 200],
    ['/tile/0/999', 404],
  ] as const) {
    const other = await getTrusted(`${server.http}${path}`)
    t.equal(other.status, status)
    t.equal(other.headers['strict-transport-security'], 'max-age=31536000', path)
  }
  await t.rejects(fetch(server.http.replace('https:', 'http:')), 'no plain HTTP beside it')
  t.same(await weakCiphersOf(Number(new URL(server.http).port)), [], 'TLS 1.2 without CBC')
})

t.test('the pins of a running server and of its file are those that OpenSSL computes', async t => {
  const server = await start(t, { CALLSIGN_TLS_CERT, CALLSIGN_TLS_KEY })
  const expected = await opensslPin(CALLSIGN_TLS_CERT)
  t.equal((await pin('--url', server.http)).stdout, `${expected}\n`)
  t.equal((await pin('--cert', CALLSIGN_TLS_CERT)).stdout, `${expected}\n`)
})

t.test('a chain is served whole and has a pin per certificate, the server’s own first', async t => {
  const chain = join(t.testdir(), 'chain.pem')
  writeFileSync(chain, Buffer.concat([readFileSync(CALLSIGN_TLS_CERT), readFileSync(AUTHORITY)]))
  const expected = `${await opensslPin(CALLSIGN_TLS_CERT)}\n${await opensslPin(AUTHORITY)}\n`
  t.equal((await pin('--cert', chain)).stdout, expected)
  const server = await openServer({
    dataFolder: join(t.testdirName, 'data'),
    environment: { CALLSIGN_TLS_CERT: chain, CALLSIGN_TLS_KEY },
  })
  t.teardown(() => server.end())
  t.equal((await pin('--url', server.http)).stdout, expected)
})

t.test('a server without a certificate to pin is exit 2 and a sentence', async t => {
  const { http } = await start(t, {})
  const withoutTls = http.replace('http:', 'https:')
  for (const args of [
    [],
    ['--cert', CALLSIGN_TLS_KEY],
    ['--cert', join(TLS_FOLDER, 'none')],
    ['--url', http],
    ['--url', withoutTls],
    ['--cert', CALLSIGN_TLS_CERT, '--url', http],
  ]) {
    const failed = await pin(...args).catch(error => error)
    t.equal(failed.code, 2, args.join(' '))
    t.match(failed.stderr, /^pin: /, args.join(' '))
    t.notMatch(failed.stderr, /at .*\.js|throw/, args.join(' '))
  }
})

t.test('a certificate without its key does not start', async t => {
  const dataFolder = t.testdir()
  const otherKey = join(TLS_FOLDER, 'other.key')
  const refused = await openRefused({
    dataFolder,
    environment: { CALLSIGN_TLS_CERT, CALLSIGN_TLS_KEY: otherKey },
  })
  t.equal(refused.code, 1)
  t.match(refused.stderr, 'CALLSIGN_TLS_CERT and CALLSIGN_TLS_KEY are not a certificate and its key')
})

t.test('pages of a listed origin may call the API, pages of any the log’s files', async t => {
  const { http } = await start(t, { CALLSIGN_CORS_ORIGINS: 'https://a.example, https://b.example' })
  const allowed = async (path: string, origin: string) =>
    (await fetch(`${http}${path}`, { headers: { origin } })).headers.get('access-control-allow-origin')
  t.equal(await allowed('/app/api/meta', 'https://b.example'), 'https://b.example')
  t.equal(await allowed('/app/api/meta', 'https://c.example'), null)
  t.equal(await allowed('/checkpoint', 'https://c.example'), '*')
  const preflight = await fetch(`${http}/api/get-public-keys`, {
    method: 'OPTIONS',
    headers: { origin: 'https://a.example', 'access-control-request-method': 'POST' },
  })
  t.equal(preflight.status, 204)
  t.equal(preflight.headers.get('access-control-max-age'), '7200')
})

t.test('behind a trusted proxy each client has its own rate, and can’t choose another', async t => {
  // Each front counts for itself.
  const limited = { CALLSIGN_RATE_LIMITS: '', CALLSIGN_FRONTS: '0' }
  const behind = await start(t, { ...limited, CALLSIGN_TRUSTED_PROXIES: '127.0.0.0/8, ::1' })
  const alone = await openServer({ dataFolder: join(t.testdirName, 'alone'), environment: limited })
  t.teardown(() => alone.end())
  const lookUp = ({ http }: OpenServer, client: string) =>
    fetch(`${http}/api/get-public-keys`, { method: 'POST', headers: { 'x-forwarded-for': client } })
  const refusedOf = async (server: OpenServer, clientOf: (at: number) => string) => {
    const statuses: number[] = []
    for (let at = 0; at < 125; at++) statuses.push((await lookUp(server, clientOf(at))).status)
    return statuses.filter(status => status === 429).length
  }
  t.ok((await refusedOf(behind, () => '192.0.2.1')) > 0, 'one client asks too often')
  t.not((await lookUp(behind, '192.0.2.2')).status, 429, 'another one is served')
  t.equal(await refusedOf(behind, at => `198.51.100.${at}`), 0)
  t.ok((await refusedOf(alone, at => `198.51.100.${at}`)) > 0, 'without a list the header is nobody’s word')
})

t.test('the operator makes rates higher and lower, each by its name', async t => {
  const { http } = await start(t, {
    // Each front counts for itself.
    CALLSIGN_FRONTS: '0',
    CALLSIGN_RATE_LIMITS: '',
    CALLSIGN_RATES: '{"lookup":2,"login":40,"login-day":3}',
  })
  const statusesOf = async (path: string) => {
    const statuses: number[] = []
    for (let at = 0; at < 4; at++) statuses.push((await fetch(`${http}${path}`, { method: 'POST' })).status)
    return statuses
  }
  t.same(await statusesOf('/api/get-public-keys'), [415, 415, 429, 429])
  t.same(await statusesOf('/app/api/login'), [415, 415, 415, 429])
})

t.test('a client below the minimum is sent to its store, and can still read why', async t => {
  const { http } = await start(t, {
    CALLSIGN_MIN_CLIENT_VERSION: 'ios/1.4.0,android/2.0.0',
    CALLSIGN_CORS_ORIGINS: 'https://a.example',
  })
  const ask = (path: string, version: string) =>
    fetch(`${http}${path}`, { headers: { 'x-client-version': version, origin: 'https://a.example' } })
  for (const path of ['/app/api/user', '/api/user', '/credentials', '/app/api/credentials']) {
    const refused = await ask(path, 'android/1.9.9 (77)')
    t.match(await refused.json(), { status: 426, code: 'CLIENT_TOO_OLD', minClientVersion: 'android/2.0.0' })
    t.equal(refused.headers.get('access-control-allow-origin'), 'https://a.example')
    for (const version of ['android/2.0.0', 'web/0.1.0', 'nonsense', '']) {
      t.equal((await ask(path, version)).status, 401, `${path} ${version}`)
    }
  }
  const meta = await ask('/app/api/meta', 'ios/0.0.1')
  t.equal(meta.status, 200, 'which says what the minimum is')
})

t.test('a token in the query opens nothing and is in no log line', async t => {
  const server = await start(t, { CALLSIGN_LOG_LEVEL: 'debug' })
  const secret = 'verysecrettoken'
  for (const name of ['access_token', 'token']) {
    const answer = await fetch(`${server.http}/app/api/user?${name}=${secret}`)
    t.match(await answer.json(), { status: 401, code: 'TOKEN_MISSING' })
    await fetch(`${server.http}/none?${name}=${secret}`)
  }
  await server.end()
  t.match(server.stderr(), '"code":"TOKEN_MISSING"', 'the log is there')
  t.notMatch(server.stderr(), secret)
})

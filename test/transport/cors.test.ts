/** Web pages of other origins (contract 1.7): which may call, what a preflight says, and that nothing is said unasked. */

import t, { type Test } from 'tap'
import { SignalError } from '../../src/errors.ts'
import { HttpServer } from '../../src/transport/http.ts'
import type { HttpServerDeps } from '../../src/transport/http-deps.ts'
import { fakeAdmission } from '../support/fake-admission.ts'

const PAGE = 'https://app.example.org'
const ORIGINS = [PAGE, 'http://localhost:5173', 'capacitor://localhost']

async function serve(t: Test, parts: Partial<HttpServerDeps> = {}): Promise<string> {
  const server = new HttpServer({
    routes: [
      {
        method: 'POST',
        path: '/app/api/things',
        handle: () => ({ status: 204, contentType: '', body: '' }),
      },
      {
        method: 'GET',
        path: '/app/api/things',
        handle: () => {
          throw new SignalError('TOKEN_MISSING', 'no access token')
        },
      },
    ],
    onRefused: () => {},
    onFault: error => t.fail(String(error)),
    ...parts,
  })
  t.teardown(() => server.close())
  return `http://127.0.0.1:${await server.listen('127.0.0.1', 0)}/app/api/things`
}

function corsHeadersOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => /^access-control-|^vary$/.test(name)))
}

function preflight(url: string, origin: string): Promise<Response> {
  const headers = { origin, 'access-control-request-method': 'POST' }
  return fetch(url, { method: 'OPTIONS', headers })
}

const EXPOSED = 'date, retry-after, ratelimit, ratelimit-policy, x-request-id, api-version, deprecation'

t.test('a preflight from a listed origin gets methods, headers and their lifetime', async t => {
  const url = await serve(t, { corsOrigins: ORIGINS })
  for (const origin of ORIGINS) {
    const answer = await preflight(url, origin)
    t.equal(answer.status, 204)
    t.match(corsHeadersOf(answer), {
      'access-control-allow-origin': origin,
      'access-control-allow-methods': 'GET, POST, PUT, DELETE',
      'access-control-allow-headers':
        'authorization, content-type, idempotency-key, if-match, x-client-version',
      'access-control-max-age': '7200',
      vary: 'Origin',
    })
    t.equal(answer.headers.get('access-control-allow-credentials'), null)
  }
})

t.test('a preflight is answered before anything else is asked', async t => {
  const admission = fakeAdmission(() => 60)
  const url = await serve(t, { corsOrigins: ORIGINS, admission })
  t.equal((await preflight(url, PAGE)).status, 204)
  t.equal((await preflight(`${url}/nowhere`, PAGE)).status, 204, 'the request itself will be the 404')
  t.equal((await fetch(url, { headers: { origin: PAGE } })).status, 429)
})

t.test('an answer to a listed origin can be read, and so can a refusal', async t => {
  const url = await serve(t, { corsOrigins: ORIGINS })
  for (const [method, path, status] of [
    ['POST', '', 204],
    ['GET', '', 401],
    ['DELETE', '', 405],
    ['GET', '/none', 404],
  ] as const) {
    const answer = await fetch(`${url}${path}`, { method, headers: { origin: PAGE } })
    t.equal(answer.status, status)
    t.same(corsHeadersOf(answer), {
      'access-control-allow-origin': PAGE,
      'access-control-expose-headers': EXPOSED,
      vary: 'Origin',
    })
  }
})

t.test('an origin that is not listed, letter for letter, gets no such header', async t => {
  const url = await serve(t, { corsOrigins: ORIGINS })
  const others = [
    'https://evil.example',
    'null',
    '*',
    'http://app.example.org',
    'https://app.example.org:8443',
    'https://app.example.org.evil.example',
    'https://APP.example.org',
    'https://app.example.org/',
  ]
  for (const origin of others) {
    t.same(corsHeadersOf(await preflight(url, origin)), { vary: 'Origin' }, origin)
    const answer = await fetch(url, { method: 'POST', headers: { origin } })
    t.equal(answer.status, 204, `${origin}: it is the page that is kept out, by its browser`)
    t.same(corsHeadersOf(answer), { vary: 'Origin' }, origin)
  }
})

t.test('a request without an origin varies by it all the same', async t => {
  const url = await serve(t, { corsOrigins: ORIGINS })
  t.same(corsHeadersOf(await fetch(url, { method: 'POST' })), { vary: 'Origin' })
})

t.test('OPTIONS that is no preflight is an ordinary method', async t => {
  const url = await serve(t, { corsOrigins: ORIGINS })
  const answer = await fetch(url, { method: 'OPTIONS', headers: { origin: PAGE } })
  t.equal(answer.status, 405)
  t.equal(answer.headers.get('allow'), 'POST, GET, HEAD')
})

t.test('without origins there is no such header, and OPTIONS is 405', async t => {
  const url = await serve(t)
  const answer = await preflight(url, PAGE)
  t.equal(answer.status, 405)
  t.same(corsHeadersOf(answer), {})
  t.same(corsHeadersOf(await fetch(url, { method: 'POST', headers: { origin: PAGE } })), {})
})

const LOOPBACK = [
  'http://localhost:5173',
  'http://localhost',
  'https://localhost',
  'http://127.0.0.1:3000',
  'http://127.1.2.3:1',
  'http://[::1]:8100',
  'http://shop.localhost:4200',
]
const LOOK_ALIKES = [
  'http://localhost.evil.example',
  'http://localhost.',
  'http://evillocalhost',
  'ftp://localhost',
  'http://127.0.0.1.evil.example',
  'http://[::2]',
  'http://localhost:123456',
  'http://localhost/',
  'null',
  'http://192.168.1.2:5173',
  'capacitor://localhost',
  'http://localhost@evil.example',
]

t.test('with loopback let in, only this machine’s pages may call, from any port', async t => {
  const refused: string[] = []
  const onOriginRefused = (origin: string) => void refused.push(origin)
  const url = await serve(t, { isLoopbackAllowed: true, onOriginRefused })
  for (const origin of LOOPBACK) {
    t.match(corsHeadersOf(await preflight(url, origin)), { 'access-control-allow-origin': origin }, origin)
  }
  t.same(refused, [])
  for (const origin of LOOK_ALIKES) {
    t.same(corsHeadersOf(await preflight(url, origin)), { vary: 'Origin' }, origin)
  }
  t.same(refused, LOOK_ALIKES, 'each is told of')
})

t.test('a refused origin is reported where none is allowed, too; the own one is none', async t => {
  const refused: string[] = []
  const onOriginRefused = (origin: string) => void refused.push(origin)
  const closed = await serve(t, { onOriginRefused })
  t.equal((await preflight(closed, PAGE)).status, 405)
  t.same(refused, [PAGE])
  const open = await serve(t, { corsOrigins: ORIGINS, onOriginRefused })
  await fetch(open, { method: 'POST', headers: { origin: new URL(open).origin } })
  await fetch(open, { method: 'POST', headers: { origin: PAGE } })
  t.same(refused, [PAGE])
})

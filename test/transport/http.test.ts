/** The HTTP server itself: what a handler gets, what bodies may be, what an answer carries. */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { SignalError } from '../../src/errors.ts'
import { HttpServer } from '../../src/transport/http.ts'
import type { HttpServerDeps } from '../../src/transport/http-deps.ts'
import type { HttpRequest, HttpRoute } from '../../src/transport/route.ts'
import { dotted } from '../support/bytes.ts'
import { fakeAdmission, GOOD_TOKEN } from '../support/fake-admission.ts'
import { sendRaw, statusesIn, talk } from '../support/raw-http.ts'

interface TestServer {
  readonly url: string
  readonly port: number
  /** The handlers' requests. */
  readonly requests: HttpRequest[]
  readonly answers: [route: string, status: number][]
  readonly refusals: string[]
}

/** Echoes the body, at once or when `until` resolves. */
function echo(method: HttpRoute['method'], path: string, more: Partial<HttpRoute> = {}): HttpRoute {
  return {
    method,
    path,
    handle: ({ body }) => ({ status: 200, contentType: 'text/plain', body: Buffer.from(body) }),
    ...more,
  }
}

async function serve(
  t: Test,
  routes: readonly HttpRoute[],
  parts: Partial<HttpServerDeps> = {},
): Promise<TestServer> {
  const requests: HttpRequest[] = []
  const answers: [string, number][] = []
  const refusals: string[] = []
  const watched = routes.map(route => ({
    ...route,
    handle: (request: HttpRequest) => {
      requests.push(request)
      return route.handle(request)
    },
  }))
  const server = new HttpServer({
    routes: watched,
    onAnswer: (route, status) => answers.push([route, status]),
    onRefused: code => refusals.push(code),
    onFault: error => t.fail(String(error)),
    ...parts,
  })
  t.teardown(() => server.close())
  const port = await server.listen('127.0.0.1', 0)
  return { url: `http://127.0.0.1:${port}`, port, requests, answers, refusals }
}

const NOTHING = { status: 204, contentType: '', body: '' } as const

t.test('a handler gets method, path, values, query and the headers it names', async t => {
  const names = ['authorization', 'idempotency-key']
  const networks: string[] = []
  const handle: HttpRoute['handle'] = ({ network }) => {
    networks.push(network)
    return NOTHING
  }
  const { url, requests } = await serve(t, [echo('PUT', '/app/api/devices/{id}', { headers: names, handle })])
  await fetch(`${url}/app/api/devices/a%20b?limit=5&cursor=%2F`, {
    method: 'PUT',
    headers: { Authorization: 'Bearer x', 'Content-Type': 'application/json', 'X-Other': 'y' },
    body: '{}',
  })
  const [request] = requests
  t.match(request, { method: 'PUT', path: '/app/api/devices/a%20b', params: ['a b'] })
  t.match(request, { query: 'limit=5&cursor=%2F', contentType: 'application/json' })
  const values = [...names, 'x-other'].map(name => request!.header(name))
  t.same(values, ['Bearer x', '', ''], 'unsent and unnamed ones are empty')
  t.same(networks.map(dotted), ['127.0.0.1'])
})

t.test('headers and address are still there after the handler has waited', async t => {
  const { url } = await serve(t, [
    echo('GET', '/late', {
      headers: ['x-name'],
      handle: async request => {
        await new Promise(resolve => setImmediate(resolve))
        const body = `${request.header('x-name')} ${dotted(request.network)} ${request.query}`
        return { status: 200, contentType: 'text/plain', body }
      },
    }),
  ])
  const answer = await fetch(`${url}/late?q`, { headers: { 'x-name': 'me' } })
  t.equal(await answer.text(), 'me 127.0.0.1 q')
})

t.test('each method reaches its route; any other hears which there are', async t => {
  const path = '/app/api/things/{id}'
  const { url, answers } = await serve(t, [
    ...(['GET', 'POST', 'PUT', 'DELETE'] as const).map(method => echo(method, path)),
    echo('POST', '/app/api/only'),
  ])
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']) {
    t.equal((await fetch(`${url}/api/things/1`, { method })).status, 200, method)
  }
  for (const method of ['PATCH', 'OPTIONS', 'PROPFIND', 'get']) {
    t.match(
      await sendRaw(Number(new URL(url).port), request(method, '/api/things/1')),
      /^HTTP\/1.1 405 /,
      method,
    )
  }
  const refused = await fetch(`${url}/app/api/only`, { method: 'DELETE' })
  t.equal(refused.headers.get('allow'), 'POST')
  t.match(await refused.json(), { status: 405, code: 'METHOD_NOT_ALLOWED' })
  t.same(
    [...new Set(answers.map(([route]) => route))],
    [path, '/app/api/only'],
    'metrics know canonical paths',
  )
})

t.test('HEAD has the length of GET and no body', async t => {
  const { port } = await serve(t, [
    { method: 'GET', path: '/g', handle: () => ({ status: 200, contentType: 'text/plain', body: 'naïve' }) },
  ])
  const answer = await sendRaw(port, request('HEAD', '/g'))
  t.match(answer, /\r\nContent-Length: 6\r\n/i)
  t.match(answer, /\r\n\r\n$/)
})

t.test('204 has neither body nor media type', async t => {
  const { port } = await serve(t, [echo('DELETE', '/d', { handle: () => NOTHING })])
  const answer = await sendRaw(port, request('DELETE', '/d'))
  t.match(answer, /^HTTP\/1.1 204 No Content\r\n/)
  t.notMatch(answer, /^(content-type|content-length|transfer-encoding):/im)
  t.match(answer, /\r\n\r\n$/)
})

t.test('DELETE comes with a body or without', async t => {
  const { url, requests } = await serve(t, [echo('DELETE', '/d')])
  t.equal(await (await fetch(`${url}/d`, { method: 'DELETE' })).text(), '')
  t.equal(await (await fetch(`${url}/d`, { method: 'DELETE', body: '{"a":1}' })).text(), '{"a":1}')
  t.equal(requests.length, 2)
})

t.test('a text comes whole, whatever its length and characters, beside other requests', async t => {
  const texts = ['', 'x', 'ß', '\u2014', '\u{1f600}'].flatMap(unit =>
    [1, 127, 128, 129, 255, 256, 5_000, 21_845, 21_846, 30_000, 100_000].map(length => unit.repeat(length)),
  )
  const { url } = await serve(t, [
    echo('GET', '/texts/{at}', {
      handle: ({ params: [at] }) => ({ status: 200, contentType: 'text/plain', body: texts[Number(at)]! }),
    }),
  ])
  const answers = await Promise.all(texts.map((_, at) => fetch(`${url}/texts/${at}`)))
  const bodies = await Promise.all(answers.map(async answer => Buffer.from(await answer.arrayBuffer())))
  for (const [at, body] of bodies.entries()) {
    t.ok(
      body.equals(Buffer.from(texts[at]!)),
      `${texts[at]!.length} of ${JSON.stringify(texts[at]!.slice(0, 2))}`,
    )
  }
})

t.test('every answer has its headers, errors too', async t => {
  const { url } = await serve(t, [echo('GET', '/g')])
  for (const path of ['/g', '/none']) {
    const { headers } = await fetch(`${url}${path}`)
    t.equal(headers.get('api-version'), '1', path)
    t.equal(headers.get('x-content-type-options'), 'nosniff', path)
    t.equal(headers.get('referrer-policy'), 'no-referrer', path)
    t.match(headers.get('x-request-id'), /^[\w.-]{8,64}$/, path)
    t.equal(headers.get('strict-transport-security'), null, `${path}: not without TLS`)
  }
})

t.test('an answer to a deprecated path says so and names the canonical one, whatever it is', async t => {
  const { url, answers } = await serve(t, [
    echo('POST', '/app/api/call/{callId}/invite', {
      deprecatedAliases: [{ path: '/group-calls/{callId}/invite', since: 1_767_225_600 }],
    }),
  ])
  for (const [body, status] of [
    ['{}', 200],
    ['x'.repeat(20_000), 413],
  ] as const) {
    const answer = await fetch(`${url}/group-calls/a%2Fb/invite`, { method: 'POST', body })
    t.equal(answer.status, status)
    t.equal(answer.headers.get('deprecation'), '@1767225600')
    t.equal(answer.headers.get('link'), '</app/api/call/a%2Fb/invite>; rel="successor-version"')
  }
  const canonical = await fetch(`${url}/api/call/1/invite`, { method: 'POST' })
  t.same([canonical.headers.get('deprecation'), canonical.headers.get('link')], [null, null])
  t.same([...new Set(answers.map(([route]) => route))], ['/app/api/call/{callId}/invite'])
})

t.test('a coded body is refused before it is read, with the codings that are taken', async t => {
  const { url, requests } = await serve(t, [echo('POST', '/p')])
  for (const coding of ['gzip', 'br', 'x-gzip, identity', 'zstd']) {
    const answer = await fetch(`${url}/p`, {
      method: 'POST',
      headers: { 'content-encoding': coding },
      body: gzipSync('{}'),
    })
    t.equal(answer.status, 415, coding)
    t.equal(answer.headers.get('accept-encoding'), 'identity')
    t.match(await answer.json(), { code: 'UNSUPPORTED_MEDIA_TYPE', detail: /Content-Encoding/ })
  }
  t.equal(requests.length, 0)
  const headers = { 'content-encoding': 'Identity' }
  t.equal((await fetch(`${url}/p`, { method: 'POST', headers, body: '{}' })).status, 200)
})

t.test('a body may have as many bytes as its route allows, and not one more', async t => {
  const { url, requests } = await serve(t, [
    echo('POST', '/usual'),
    echo('POST', '/large', { bodyBytesMax: 512 * 1024 }),
  ])
  const statusOf = async (path: string, bytes: number, isChunked: boolean) => {
    const body = Buffer.alloc(bytes, 'x')
    const sent = isChunked ? { body: new Blob([body]).stream(), duplex: 'half' as const } : { body }
    const answer = await fetch(`${url}${path}`, { method: 'POST', ...sent })
    const text = await answer.text()
    if (answer.status === 200) t.equal(text.length, bytes, `${path} ${bytes}: whole`)
    return answer.status
  }
  for (const isChunked of [false, true]) {
    t.equal(await statusOf('/usual', 16 * 1024, isChunked), 200)
    t.equal(await statusOf('/usual', 16 * 1024 + 1, isChunked), 413)
    t.equal(await statusOf('/large', 512 * 1024, isChunked), 200)
    t.equal(await statusOf('/large', 512 * 1024 + 1, isChunked), 413)
  }
  t.equal(requests.length, 4, 'no handler saw the others')
})

t.test('a request that its head speaks against is refused before its body comes', async t => {
  const networks: string[] = []
  const admit: HttpRoute['admit'] = ({ header, network }) => {
    networks.push(network)
    if (header('authorization') !== 'Bearer good') throw new SignalError('SERVER_KEY_INVALID', 'no')
  }
  const route = echo('POST', '/p', { admit, headers: ['authorization'], bodyBytesMax: 1024 })
  const { port, requests } = await serve(t, [route])
  const head = request('POST', '/p', `Content-Length: 8\r\nConnection: close\r\n`)
  t.match(await sendRaw(port, head), /^HTTP\/1.1 401 .*"code":"SERVER_KEY_INVALID"/s)
  t.same(requests, [])
  const good = request(
    'POST',
    '/p',
    `Authorization: Bearer good\r\nContent-Length: 2\r\nConnection: close\r\n`,
  )
  t.match(await sendRaw(port, `${good}ok`), /^HTTP\/1.1 200 .*ok$/s)
  t.equal(networks.length, 2, 'and the address may be asked for')
})

t.test('a body that says it is too long is refused before it comes', async t => {
  const { port, refusals } = await serve(t, [echo('POST', '/p')])
  const answer = await sendRaw(port, request('POST', '/p', `Content-Length: ${10 ** 12}\r\n`))
  t.match(answer, /^HTTP\/1.1 413 .*"code":"BODY_TOO_LARGE"/s)
  t.same(refusals, ['BODY_TOO_LARGE'])
})

t.test('an endless chunked body is cut off', async t => {
  const { port, requests, refusals } = await serve(t, [echo('POST', '/p')])
  const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`
  const heard = await talk(port, socket => {
    socket.write(request('POST', '/p', 'Transfer-Encoding: chunked\r\n'))
    const more = () => {
      while (socket.writable && socket.write(chunk));
    }
    socket.on('drain', more)
    more()
  })
  // The answer may be lost behind unsent bytes; the connection ends all the same.
  t.notMatch(heard, / 200 /)
  t.same([requests, refusals], [[], ['BODY_TOO_LARGE']])
})

t.test('a request that comes byte by byte arrives whole', async t => {
  const { port } = await serve(t, [echo('POST', '/p')])
  // Not so its first line: this version of uWebSockets takes the first bytes of it for another version of HTTP.
  const [line, rest] = ['POST /p HTTP/1.1\r\n', 'Host: x\r\nContent-Length: 10\r\n\r\n0123456789']
  const heard = await talk(port, async socket => {
    socket.setNoDelay(true)
    for (const byte of [line, ...rest]) {
      socket.write(byte)
      await new Promise(resolve => setImmediate(resolve))
    }
    await once(socket, 'data')
    socket.end()
  })
  t.match(heard, /^HTTP\/1.1 200 .*\r\n\r\n0123456789$/s)
})

t.test('a body that is cut off reaches no handler', async t => {
  const { url, port, requests } = await serve(t, [echo('POST', '/p')])
  for (const encoding of [
    'Content-Length: 10\r\n\r\n01234',
    'Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n',
  ]) {
    await talk(port, socket => socket.end(`POST /p HTTP/1.1\r\nHost: x\r\n${encoding}`))
    await talk(port, socket => {
      socket.write(`POST /p HTTP/1.1\r\nHost: x\r\n${encoding}`, () => socket.resetAndDestroy())
    })
  }
  await fetch(`${url}/p`, { method: 'POST', body: 'after' })
  t.equal(requests.length, 1, 'only the one that came to its end')
})

t.test('a body that is not whole in time ends the connection', async t => {
  const dripTo = (port: number) =>
    new Promise<Socket>(resolve => {
      void talk(port, socket => {
        socket.write(request('POST', '/p', 'Content-Length: 16000\r\n'))
        const timer = setInterval(() => socket.write('x'), 5)
        socket.on('close', () => clearInterval(timer))
        resolve(socket)
      })
    })
  const [hasty, patient] = [
    await serve(t, [echo('POST', '/p')], { bodyDeadlineMs: 20 }),
    await serve(t, [echo('POST', '/p')], { bodyDeadlineMs: 60_000 }),
  ]
  const other = await dripTo(patient.port)
  const ended = await dripTo(hasty.port)
  await once(ended, 'close')
  t.equal(ended.bytesRead, 0)
  t.same([hasty.requests, hasty.answers], [[], []])
  t.notOk(other.closed, 'uWebSockets would end it after ten seconds')
  other.destroy()
})

t.test('a connection that stays with half a request, or none, is ended', async t => {
  const { port, requests } = await serve(t, [echo('POST', '/p')])
  const halves = [
    '',
    'POST /p HTTP/1.1\r\nHost: x\r\nX-',
    request('POST', '/p', 'Content-Length: 5\r\n'),
    `${request('POST', '/p', 'Content-Length: 5\r\n')}0123`,
    `${request('POST', '/p', 'Transfer-Encoding: chunked\r\n')}5\r\n01`,
  ]
  const heard = await Promise.all(
    halves.map(half =>
      talk(port, socket => {
        socket.write(half)
        // A byte now and then does not keep it.
        const timer = setInterval(() => half.endsWith('X-') && socket.write('a'), 1_000)
        socket.on('close', () => clearInterval(timer))
      }),
    ),
  )
  t.same(heard, ['', '', '', '', ''])
  t.equal(requests.length, 0)
})

t.test('pipelined requests are answered in order', async t => {
  const { port } = await serve(t, [echo('POST', '/p')])
  const posts = ['one', 'two', 'three'].map(
    body => `POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const heard = await sendRaw(port, posts.join('') + request('GET', '/none', 'Connection: close\r\n'))
  t.same(statusesIn(heard), [200, 200, 200, 404])
  t.match(heard, /one.*two.*three.*NOT_FOUND/s)
})

t.test('a request before the answer to the last one ends the connection, not the process', async t => {
  let finish = () => {}
  const finished = new Promise<void>(resolve => {
    finish = resolve
  })
  const handle = async () => {
    await finished
    return NOTHING
  }
  const { url, port } = await serve(t, [echo('GET', '/slow', { handle }), echo('GET', '/g')])
  t.equal(await sendRaw(port, request('GET', '/slow') + request('GET', '/g')), '')
  finish()
  t.equal((await fetch(`${url}/g`)).status, 200)
})

t.test('a client that leaves before a late answer harms nothing', async t => {
  let finish = () => {}
  const addresses: string[] = []
  const handle = (request: HttpRequest) =>
    new Promise<typeof NOTHING>(resolve => {
      finish = () => {
        addresses.push(dotted(request.network))
        resolve(NOTHING)
      }
    })
  const { url, port, requests, answers } = await serve(t, [
    echo('POST', '/slow', { handle }),
    echo('GET', '/g'),
  ])
  const socket = connect(port, '127.0.0.1')
  socket.write(`${request('POST', '/slow', 'Content-Length: 2\r\n')}{}`)
  while (requests.length === 0) await new Promise(resolve => setImmediate(resolve))
  socket.resetAndDestroy()
  await once(socket, 'close')
  await fetch(`${url}/g`)
  finish()
  t.same(addresses, ['127.0.0.1'], 'the handler still knows who it was')
  t.equal((await fetch(`${url}/g`)).status, 200)
  t.notOk(answers.some(([route]) => route === '/slow'))
})

t.test('a request that is not HTTP, or gives its length in two ways, is refused', async t => {
  const { port, requests } = await serve(t, [echo('POST', '/p')])
  const bad = [
    'hello\r\n\r\n',
    request('POST', '/p', 'Content-Length: -1\r\n'),
    request('POST', '/p', 'Content-Length: 1e1\r\n'),
    `${request('POST', '/p', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n')}0\r\n\r\n`,
    request('POST', '/p').replace('HTTP/1.1', 'HTTP/2.0'),
  ]
  for (const text of bad) {
    const statuses = statusesIn(await sendRaw(port, text))
    // With Node 22 and newer, uWebSockets hangs up on the first without a word.
    t.ok(statuses.length <= 1 && statuses.every(status => status >= 400), text.slice(0, 60))
  }
  t.equal(requests.length, 0)
})

t.test(
  'admission counts the client, its canonical route, and paths that lead nowhere, but no page',
  async t => {
    const asked: string[] = []
    const admission = fakeAdmission((network, scope) => {
      asked.push(`${dotted(network)} ${scope}`)
      return asked.length > 5 ? 7 : 0
    })
    const { port, requests } = await serve(
      t,
      [
        { ...echo('POST', '/api/get-public-keys'), isLookup: true },
        echo('GET', '/app/api/meta'),
        { ...echo('GET', '/page'), isUncounted: true },
      ],
      {
        admission,
        trustedProxies: ['127.0.0.0/8'],
      },
    )
    const from = (address: string) => `X-Forwarded-For: ${address}\r\nConnection: close\r\n`
    await sendRaw(port, request('POST', '/api/get-public-keys/', from('192.0.2.1')))
    await sendRaw(port, request('GET', '/api/meta', from('6.6.6.6, 192.0.2.2')))
    await sendRaw(
      port,
      request('GET', '/none', `X-Forwarded-For: 6.6.6.6, 192.0.2.3\r\n${from('127.0.0.9')}`),
    )
    await sendRaw(port, request('GET', '/api/meta', from('[2001:db8::1]:80')))
    t.same(asked, [
      '192.0.2.1 request',
      '192.0.2.1 lookup',
      '192.0.2.2 request',
      '192.0.2.3 request',
      // The first half of an IPv6 address: its /64.
      '32.1.13.184.0.0.0.0 request',
    ])
    const refused = await sendRaw(port, request('GET', '/api/meta', from('192.0.2.2')))
    t.match(refused, /^HTTP\/1.1 429 .*Retry-After: 7\r\n.*"code":"RATE_LIMITED".*"retryIn":7/s)
    t.match(await sendRaw(port, request('GET', '/page', from('192.0.2.2'))), /^HTTP\/1.1 200 /)
    t.equal(requests.length, 4)
  },
)

t.test('a request counts for its token where its route goes by one', async t => {
  const asked: string[] = []
  const admission = fakeAdmission((_, what, authorization) => {
    asked.push(`${what} ${authorization}`.trim())
    return what === 'refresh no' ? 7 : 0
  })
  const headers = ['authorization']
  const refuse = (code: 'TOKEN_EXPIRED' | 'OTP_INVALID') => async () => {
    await new Promise(setImmediate)
    throw new SignalError(code, 'refused')
  }
  const { url, requests } = await serve(
    t,
    [
      { ...echo('GET', '/mine'), headers, countsFor: 'access-token' },
      { ...echo('GET', '/public'), headers },
      { ...echo('POST', '/look'), headers, countsFor: 'access-token', isLookup: true },
      { ...echo('POST', '/open'), countsFor: 'good-token', isLookup: true },
      { method: 'POST', path: '/over', headers, countsFor: 'access-token', handle: refuse('TOKEN_EXPIRED') },
      { method: 'POST', path: '/wrong', headers, countsFor: 'access-token', handle: refuse('OTP_INVALID') },
      { ...echo('POST', '/refresh'), headers, countsFor: 'refresh-token' },
    ],
    { admission },
  )
  const takeAsked = async (method: string, path: string, body?: string, authorization = 'Bearer x') => {
    const answer = await fetch(`${url}${path}`, { method, headers: { authorization }, ...(body && { body }) })
    await answer.arrayBuffer()
    return [answer.status, ...asked.splice(0)]
  }
  t.same(await takeAsked('GET', '/mine'), [200, 'request Bearer x'])
  t.same(await takeAsked('GET', '/public'), [200, 'request'])
  t.same(await takeAsked('GET', '/none'), [404, 'request'])
  t.same(await takeAsked('POST', '/look', 'y'), [200, 'request Bearer x', 'lookup Bearer x'])
  t.same(await takeAsked('POST', '/open', 'y'), [200, 'request', 'lookup'])
  t.same(await takeAsked('POST', '/open', 'y', GOOD_TOKEN), [
    200,
    `request ${GOOD_TOKEN}`,
    `lookup ${GOOD_TOKEN}`,
  ])
  t.same(await takeAsked('POST', '/over', 'y'), [401, 'request Bearer x', 'refused Bearer x'])
  t.same(await takeAsked('POST', '/wrong', 'y'), [400, 'request Bearer x'], 'the token was good')
  t.same(await takeAsked('POST', '/refresh', 'yes'), [200, 'refresh yes'])
  const handled = requests.length
  t.same(await takeAsked('POST', '/refresh', 'no'), [429, 'refresh no'])
  t.equal(requests.length, handled)
})

t.test('the title of a refusal is in the language that was asked for, the code is not', async t => {
  const languageOf = (header: string) => (header === 'de' || header === 'vi' ? header : 'en')
  const handle = async (): Promise<never> => {
    await new Promise(setImmediate)
    throw new SignalError('OTP_INVALID', 'the code does not match')
  }
  const { url } = await serve(t, [{ method: 'GET', path: '/api/late', handle }], { languageOf })
  const titleAt = async (path: string, language: string) => {
    const answer = await fetch(`${url}${path}`, { headers: { 'accept-language': language } })
    const { title, code } = (await answer.json()) as { title: string; code: string }
    return `${code} ${title}`
  }
  t.equal(await titleAt('/none', 'de'), 'NOT_FOUND Nicht gefunden')
  t.equal(await titleAt('/api/late', 'vi'), 'OTP_INVALID Mã không đúng. Hãy kiểm tra rồi nhập lại.')
  t.equal(await titleAt('/api/late', ''), 'OTP_INVALID That is not the code. Check it and try again.')
})

t.test('too many requests for the log’s files are 429, for every page to read', async t => {
  const findFile = () => undefined
  const admission = fakeAdmission(() => 3)
  const corsOrigins = ['https://app.example.org']
  const { url } = await serve(t, [], { findFile, admission, corsOrigins })
  const answer = await fetch(`${url}/checkpoint`)
  t.equal(answer.status, 429, 'a 404 would be a broken log to an auditor')
  t.equal(answer.headers.get('retry-after'), '3')
  t.equal(answer.headers.get('ratelimit-policy'), '"address";q=60;w=60')
  t.equal(answer.headers.get('access-control-allow-origin'), '*')
})

t.test('a client that is too old is refused by the routes that say so', async t => {
  const requiredClient = (version: string) => (version === 'ios/1.0.0' ? 'ios/1.4.0' : undefined)
  const checked = { ...echo('GET', '/app/api/devices/{id}'), isVersionChecked: true }
  const routes = [checked, echo('GET', '/app/api/meta'), echo('GET', '/api/get-public-keys')]
  const { url } = await serve(t, routes, { requiredClient })
  const ask = (path: string, version: string) =>
    fetch(`${url}${path}`, { headers: { 'x-client-version': version } })
  for (const path of ['/app/api/devices/1', '/api/devices/1']) {
    const answer = await ask(path, 'ios/1.0.0')
    t.match(await answer.json(), { status: 426, code: 'CLIENT_TOO_OLD', minClientVersion: 'ios/1.4.0' })
    t.equal((await ask(path, 'ios/1.4.0')).status, 200)
  }
  for (const path of ['/app/api/meta', '/api/meta', '/api/get-public-keys']) {
    t.equal((await ask(path, 'ios/1.0.0')).status, 200, path)
  }
})

/** A request line with its headers and the empty line; without a length there is no body. */
function request(method: string, path: string, headers = 'Connection: close\r\n'): string {
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
}

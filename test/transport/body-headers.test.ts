/** Requests that two readers could end at two places are refused, and nothing behind them is served (RFC 9112, 11.2). */

import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { HttpServer } from '../../src/transport/http.ts'
import { OpenConnections } from '../../src/transport/open-connections.ts'
import { statusesIn, talk } from '../support/raw-http.ts'
import { upgradeRequest } from '../support/socket-client.ts'
import { Sessions } from '../support/web-sockets.ts'

interface FramingServer {
  readonly port: number
  /** Paths that handlers and the log's files were asked for. */
  readonly served: string[]
  readonly refusals: string[]
  readonly sessions: Sessions
}

async function serve(t: Test): Promise<FramingServer> {
  const served: string[] = []
  const refusals: string[] = []
  const sessions = new Sessions()
  const handle = ({ path, body }: { readonly path: string; readonly body: Uint8Array }) => {
    served.push(path)
    return { status: 200, contentType: 'text/plain', body: Buffer.from(body) }
  }
  const server = new HttpServer({
    routes: [
      { method: 'GET', path: '/g', handle },
      { method: 'GET', path: '/smuggled', handle },
      { method: 'POST', path: '/p', handle },
      { method: 'DELETE', path: '/p', handle },
    ],
    findFile(path) {
      served.push(path)
      return undefined
    },
    webSocket: { accept: sessions.accept, connections: new OpenConnections() },
    onRefused: (code, { method, route }) => refusals.push(`${code} ${method} ${route}`),
    onFault: error => t.fail(String(error)),
  })
  t.teardown(() => server.close())
  return { port: await server.listen('127.0.0.1', 0), served, refusals, sessions }
}

function request(line: string, headers: readonly string[], body = ''): string {
  return [`${line} HTTP/1.1`, 'Host: x', ...headers, '', body].join('\r\n')
}

const CHUNKS = '5\r\n01234\r\n0\r\n\r\n'
const SMUGGLED = request('GET /smuggled', [])

/** Left alone, this version of uWebSockets answers each. */
const UNCERTAIN: Readonly<Record<string, string>> = {
  'a doubled Content-Length': request('POST /p', ['Content-Length: 5', 'Content-Length: 5'], '01234'),
  'two Content-Lengths': request('POST /p', ['Content-Length: 5', 'Content-Length: 3'], '01234'),
  'an empty Content-Length': request('POST /p', ['Content-Length:']),
  'an empty Content-Length beside one': request('POST /p', ['Content-Length:', 'Content-Length: 0']),
  'an empty Content-Length, chunked': request(
    'POST /p',
    ['Content-Length:', 'Transfer-Encoding: chunked'],
    CHUNKS,
  ),
  'Transfer-Encoding: identity': request('POST /p', ['Transfer-Encoding: identity'], CHUNKS),
  'Transfer-Encoding: gzip': request('POST /p', ['Transfer-Encoding: gzip'], CHUNKS),
  'Transfer-Encoding: gzip, chunked': request('POST /p', ['Transfer-Encoding: gzip, chunked'], CHUNKS),
  'Transfer-Encoding: chunked, identity': request(
    'POST /p',
    ['Transfer-Encoding: chunked, identity'],
    CHUNKS,
  ),
  'two Transfer-Encodings': request(
    'POST /p',
    ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
    CHUNKS,
  ),
  'an empty Transfer-Encoding beside a length': request(
    'POST /p',
    ['Transfer-Encoding:', 'Content-Length: 5'],
    '01234',
  ),
  'a DELETE with two lengths': request('DELETE /p', ['Content-Length: 0', 'Content-Length: 5']),
  'a GET with two lengths': request('GET /g', ['Content-Length: 5', 'Content-Length: 3'], '01234'),
  'a GET that is coded': request('GET /g', ['Transfer-Encoding: gzip'], CHUNKS),
  'a file that is coded': request('GET /checkpoint', ['Transfer-Encoding: gzip'], CHUNKS),
  'a path where nothing is': request('POST /none', ['Content-Length: 0', 'Content-Length: 1']),
  'a WebSocket with two lengths': upgradeRequest('/ws', 'Content-Length: 0\r\nContent-Length: 5\r\n'),
  'a WebSocket with a body': `${upgradeRequest('/ws', 'Content-Length: 5\r\n')}01234`,
  'a WebSocket with chunks': `${upgradeRequest('/ws', 'Transfer-Encoding: chunked\r\n')}${CHUNKS}`,
}

/** Refused by uWebSockets itself, in a version or another: its answer is not ours. */
const REFUSED_BELOW: Readonly<Record<string, string>> = {
  'a length and chunks': request('POST /p', ['Content-Length: 5', 'Transfer-Encoding: chunked'], CHUNKS),
  'a signed length': request('POST /p', ['Content-Length: +5'], '01234'),
  'a list of lengths': request('POST /p', ['Content-Length: 5, 5'], '01234'),
  'an empty Transfer-Encoding': request('POST /p', ['Transfer-Encoding:']),
  'two hosts': request('POST /p', ['Host: y', 'Content-Length: 5'], '01234'),
  'no host': request('POST /p', ['Content-Length: 5'], '01234').replace('Host: x\r\n', ''),
}

for (const [what, text] of Object.entries(UNCERTAIN)) {
  t.test(`${what}: 400 with code and sentence, and the connection ends`, async t => {
    const { port, served, refusals, sessions } = await serve(t)
    // Nothing is said after it, and still the server ends the connection.
    const heard = await talk(port, socket => socket.write(text))
    t.same(statusesIn(heard), [400])
    t.match(heard, /\r\nconnection: close\r\n/i)
    t.match(heard, /"code":"MALFORMED_REQUEST","detail":"[^"]{15,}"/)
    t.same([served, sessions.all], [[], []])
    t.equal(refusals.length, 1)
    t.match(refusals[0], /^MALFORMED_REQUEST /)
  })
}

t.test('nothing behind a request of uncertain length is served, in its segment or in the next', async t => {
  const { port, served, sessions } = await serve(t)
  const texts = Object.entries({ ...UNCERTAIN, ...REFUSED_BELOW })
  await Promise.all(
    texts.map(async ([what, text]) => {
      const inSegment = await talk(port, socket => socket.write(text + SMUGGLED + SMUGGLED))
      t.notMatch(inSegment, / 200 /, what)
      const inNext = await talk(port, async socket => {
        socket.setNoDelay(true).write(text)
        await once(socket, 'data')
        socket.write(SMUGGLED)
      })
      t.match(inNext, /^HTTP\/1\.1 400 /, what)
      t.equal(statusesIn(inNext).length, 1, what)
    }),
  )
  t.same([served, sessions.all], [[], []])
})

t.test('a HEAD of uncertain length has no body and ends the connection', async t => {
  const { port } = await serve(t)
  const heard = await talk(port, socket =>
    socket.write(request('HEAD /g', ['Transfer-Encoding: gzip'], CHUNKS)),
  )
  t.match(heard, /^HTTP\/1\.1 400 .*\r\n\r\n$/s)
})

t.test('a client that leaves before the refusal harms nothing', async t => {
  const { port, served } = await serve(t)
  for (const text of Object.values(UNCERTAIN)) {
    await new Promise<void>(resolve => {
      const socket = connect(port, '127.0.0.1', () => socket.write(text, () => socket.resetAndDestroy()))
      socket.on('close', () => resolve())
    })
  }
  await talk(port, socket => socket.write(request('GET /g', ['Connection: close'])))
  t.same(served, ['/g'])
})

t.test('requests with a certain end are served, however they say it', async t => {
  const { port, served } = await serve(t)
  const certain = [
    request('POST /p', ['content-length: 5'], '01234'),
    request('POST /p', ['Content-Length:  5 '], '01234'),
    request('POST /p', ['Content-Length: 0']),
    request('POST /p', []),
    request('POST /p', ['Transfer-Encoding: chunked'], CHUNKS),
    request('POST /p', ['Transfer-Encoding: Chunked'], CHUNKS),
    request('DELETE /p', []),
    request('GET /g', ['Content-Length: 0']),
    request('GET /g', ['Content-Length: 5'], '01234'),
    request('GET /g', ['Transfer-Encoding: chunked'], CHUNKS),
    request('GET /g', ['Connection: close']),
  ]
  const heard = await talk(port, socket => socket.write(certain.join('')))
  t.same(
    statusesIn(heard),
    certain.map(() => 200),
  )
  t.equal(served.length, certain.length)
})

t.test('an upgrade that says it has no body is accepted', async t => {
  const { port, sessions } = await serve(t)
  const heard = await talk(port, socket => {
    socket.once('data', () => socket.resetAndDestroy())
    socket.write(upgradeRequest('/ws', 'Content-Length: 0\r\n'))
  })
  t.match(heard, /^HTTP\/1\.1 101 /)
  t.equal(sessions.all.length, 1)
})

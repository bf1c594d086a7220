/**
 * What the HTTP parser of uWebSockets.js still gets wrong, by package, version and Node: the table `KNOWN`. A version that
 * mends a fault, or brings a new one, fails here; docs/run/proxy.md has what an operator should know.
 */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { HttpServer } from '../../src/transport/http.ts'
import { OpenConnections } from '../../src/transport/open-connections.ts'
import { statusesIn, talk } from '../support/raw-http.ts'
import { upgradeRequest } from '../support/socket-client.ts'
import { Sessions } from '../support/web-sockets.ts'

interface ParserFaults {
  readonly package: string
  readonly nodes: readonly number[]
  /** Whether a first line that is cut from its fourth byte on, its CRLF included, is answered 505. */
  readonly isLineCut: boolean
  /** The wrong answers that come back. */
  readonly answers: Readonly<Record<string, string>>
}

const HUNG_UP = 'closed without an answer'
const ALWAYS = {
  'an extension of a chunk': HUNG_UP,
  trailers: '505',
  'a bare CR in a value': HUNG_UP,
}
const KNOWN: readonly ParserFaults[] = [
  {
    package: 'uwebsockets@3.0.6',
    nodes: [20],
    isLineCut: true,
    answers: {
      ...ALWAYS,
      'a name with an underscore': HUNG_UP,
      'a NUL in a value': HUNG_UP,
      'a control character in a value': HUNG_UP,
      'a header without a colon': HUNG_UP,
      'a space before the colon': HUNG_UP,
      'a line that is folded': HUNG_UP,
      'two hosts': '200',
      'no header at all': HUNG_UP,
    },
  },
  { package: 'uwebsockets@3.0.6', nodes: [22, 24], isLineCut: false, answers: ALWAYS },
]

const { name, version } = JSON.parse(
  readFileSync(new URL('../../../node_modules/uWebSockets.js/package.json', import.meta.url), 'utf8'),
) as { name: string; version: string }
const installed = `${name}@${version}`
const node = Number(process.versions.node.split('.')[0])
const known = KNOWN.find(row => row.package === installed && row.nodes.includes(node))

async function serve(t: Test): Promise<number> {
  const sessions = new Sessions()
  const handle = ({ body }: { readonly body: Uint8Array }) => ({
    status: 200,
    contentType: 'text/plain',
    body: Buffer.from(body),
  })
  const server = new HttpServer({
    routes: [
      { method: 'GET', path: '/app/api/meta', handle },
      { method: 'POST', path: '/p', handle },
    ],
    webSocket: { accept: sessions.accept, connections: new OpenConnections() },
    onRefused: () => undefined,
    onFault: error => t.fail(String(error)),
  })
  t.teardown(() => server.close())
  return server.listen('127.0.0.1', 0)
}

/** The status of the answer to a request that comes in two segments. */
function statusOfTwo(port: number, first: Buffer, second: Buffer): Promise<number | undefined> {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, async () => {
      socket.write(first)
      // The server, in this process, reads in the turns between.
      for (let turns = 0; turns < 6; turns++) await new Promise(done => setImmediate(done))
      socket.write(second)
    })
    socket.on('error', () => undefined)
    const answered = once(socket, 'data').then(([bytes]) => statusesIn(String(bytes))[0])
    const closed = once(socket, 'close').then(() => undefined)
    void Promise.race([answered, closed]).then(status => {
      socket.destroy()
      resolve(status)
    })
  })
}

const WHOLE: Readonly<Record<string, readonly [status: number, text: string]>> = {
  GET: [200, 'GET /app/api/meta HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  'POST with a length': [200, 'POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n01234'],
  'POST in chunks': [
    200,
    'POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n3\r\n567\r\n0\r\n\r\n',
  ],
  'WebSocket upgrade': [101, upgradeRequest()],
}

t.test(`${installed} on Node ${node} is in the table`, async t => {
  t.ok(known, 'try the requests of this file and add a row')
})

for (const [what, [status, text]] of Object.entries(WHOLE)) {
  t.test(`${what}: a request in two segments is answered, wherever it is cut`, async t => {
    const port = await serve(t)
    const bytes = Buffer.from(text)
    const failing: number[] = []
    for (let at = 1; at < bytes.length; at++) {
      const heard = await statusOfTwo(port, bytes.subarray(0, at), bytes.subarray(at))
      if (heard === 505) failing.push(at)
      else t.equal(heard, status, `cut at ${at}`)
    }
    const lineBytes = text.indexOf('\n')
    const expected = known?.isLineCut ? Array.from({ length: lineBytes - 3 }, (_, at) => at + 4) : []
    t.same(failing, expected, 'answered 505')
  })
}

function request(line: string, headers: readonly string[], body = ''): string {
  return [`${line} HTTP/1.1`, 'Host: x', ...headers, '', body].join('\r\n')
}

const GET = 'GET /app/api/meta'
/** Each with what should come back. */
const ODD: Readonly<Record<string, readonly [answers: string, text: string]>> = {
  'an extension of a chunk': [
    '200',
    request('POST /p', ['Transfer-Encoding: chunked'], '5;a=b\r\n01234\r\n0\r\n\r\n'),
  ],
  trailers: ['200', request('POST /p', ['Transfer-Encoding: chunked'], '5\r\n01234\r\n0\r\nX: y\r\n\r\n')],
  'a bare CR in a value': ['400', request(GET, ['X-A: a\rb'])],
  'a name with an underscore': ['200', request(GET, ['X_A: b'])],
  'a NUL in a value': ['400', request(GET, ['X-A: a\0b'])],
  'a control character in a value': ['400', request(GET, ['X-A: a\x01b'])],
  'a header without a colon': ['400', request(GET, ['X-A b'])],
  'a space before the colon': ['400', request('POST /p', ['Content-Length : 5'], '01234')],
  'a line that is folded': ['400', request(GET, ['X-A: b', ' c'])],
  'two hosts': ['400', request(GET, ['Host: y'])],
  'no host': ['400', request(GET, ['X-A: b']).replace('Host: x\r\n', '')],
  'no header at all': ['400', `${GET} HTTP/1.1\r\n\r\n`],
  'a length and chunks': [
    '400',
    request('POST /p', ['Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
  ],
}

t.test('a request of an odd form is answered or refused at once', async t => {
  const port = await serve(t)
  const heard = await Promise.all(
    Object.entries(ODD).map(async ([what, [, text]]) => {
      const statuses = statusesIn(await talk(port, socket => socket.write(text)))
      return [what, statuses.length === 0 ? HUNG_UP : statuses.join(' ')] as const
    }),
  )
  const expected = Object.entries(ODD).map(
    ([what, [right]]) => [what, known?.answers[what] ?? right] as const,
  )
  t.same(Object.fromEntries(heard), Object.fromEntries(expected))
})

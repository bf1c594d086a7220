/** The auditor against slow, busy, broken or hostile servers: it exits with 2 or 3, and always ends. */

import type { ServerResponse } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { headersFor } from '../../scripts/audit/http-source.ts'
import { audit, IMPATIENT, newStateFile, PATIENT } from '../support/audit.ts'
import { entriesOf, logFilesOf, type Misbehaviour, serveFiles } from '../support/served-log.ts'

const FILES = logFilesOf(entriesOf(300))
const TILE = 'tile/0/001.p/44'
const BUNDLE = 'tile/entries/000'
const HTML = '<!doctype html><title>Sign in</title>'.padEnd(2_000, ' ')

/** The log with one path that is answered in that way, every time. */
function only(path: string, answer: (response: ServerResponse, bytes: Buffer) => void): Misbehaviour {
  return (asked, response) => {
    if (asked !== path) return false
    answer(response, Buffer.from(FILES.get(path)!))
    return true
  }
}

/** As `only`, for the first so many times. */
function first(
  times: number,
  path: string,
  answer: (response: ServerResponse, bytes: Buffer) => void,
): Misbehaviour {
  const misbehave = only(path, answer)
  return (asked, response, count) => count < times && misbehave(asked, response, count)
}

async function auditWith(t: Test, misbehave: Misbehaviour, limits = PATIENT) {
  const server = await serveFiles(t, FILES, misbehave)
  const startedAt = performance.now()
  const outcome = await audit({ url: server.url, stateFile: newStateFile(t), httpLimits: limits })
  return { ...outcome, ms: performance.now() - startedAt, requests: server.requests }
}

function endGzip(response: ServerResponse, bytes: Uint8Array): void {
  response.setHeader('content-encoding', 'gzip').end(bytes)
}

function endHtml(response: ServerResponse): void {
  response.setHeader('content-type', 'text/html; charset=utf-8').end(HTML)
}

/** Bytes without an end, as fast as they are taken. */
function pourForEver(response: ServerResponse): void {
  const pour = () => {
    while (response.writable && response.write(PAGE));
  }
  response.on('drain', pour)
  pour()
}

const PAGE = Buffer.alloc(64 * 1024, 1)

const brokenFiles: Record<string, [Misbehaviour, RegExp]> = {
  'a missing hash tile': [
    only(TILE, response => response.writeHead(404).end()),
    /is missing, and a signed tree has it/,
  ],
  'a missing bundle': [
    only(BUNDLE, response => response.writeHead(404).end('no')),
    /is missing, and a signed tree has it/,
  ],
  'a missing tile with an endless 404 page': [
    only(TILE, response => pourForEver(response.writeHead(404))),
    /is missing, and a signed tree has it/,
  ],
  'an endless hash tile': [only(TILE, pourForEver), /more than the 1408 bytes/],
  'an endless bundle': [only(BUNDLE, pourForEver), /more than the 16777472 bytes/],
  'an endless checkpoint': [only('checkpoint', pourForEver), /more than the 1000000 bytes/],
  'a hash tile that is too long': [
    only(TILE, (response, bytes) => response.end(Buffer.concat([bytes, bytes]))),
    /more than the 1408 bytes/,
  ],
  'a hash tile that is too short': [
    only(TILE, (response, bytes) => response.end(bytes.subarray(0, -32))),
    /has 1376 bytes, not 1408/,
  ],
  'a truncated bundle': [
    only(BUNDLE, (response, bytes) => response.end(bytes.subarray(0, -40))),
    /entry 255: bundle is cut off/,
  ],
  'an empty bundle': [only(BUNDLE, response => response.end()), /entry 0: bundle is cut off/],
  'broken gzip': [only(BUNDLE, endGzip), /broken compression/],
  'truncated gzip': [
    only(BUNDLE, (response, bytes) => endGzip(response, gzipSync(bytes).subarray(0, -50))),
    /broken compression/,
  ],
  'a gzip bomb': [only(TILE, response => endGzip(response, gzipSync(Buffer.alloc(1_000_000)))), /too long/],
  'an encoding that nobody asked for': [
    only(BUNDLE, (response, bytes) => response.setHeader('content-encoding', 'zstd').end(bytes)),
    /nobody asked for zstd/,
  ],
  'an HTML page for a tile': [only(TILE, endHtml), /an HTML page with status 200/],
  'an HTML page for a bundle': [only(BUNDLE, endHtml), /an HTML page with status 200/],
  'an HTML page for the checkpoint': [only('checkpoint', endHtml), /an HTML page with status 200/],
  'an HTML page that does not say so': [only('checkpoint', response => response.end(HTML)), /note/],
}
for (const [what, [misbehave, detail]] of Object.entries(brokenFiles)) {
  t.test(`${what}: 3, without an accusation`, async t => {
    const { verdict, findings } = await auditWith(t, misbehave)
    t.equal(verdict, 3)
    const failures = findings.filter(({ ok }) => ok !== true)
    t.match(failures, [{ check: /^(fetch|tiles|entries|checkpoint)$/, ok: null, pending: true, detail }])
    t.equal(failures.length, 1)
  })
}

const uncheckable: Record<string, Misbehaviour> = {
  'no checkpoint': only('checkpoint', response => response.writeHead(404).end()),
  'a redirect to the very file': only(TILE, response =>
    response.writeHead(302, { location: `/${TILE}` }).end(),
  ),
  'a permanent redirect of the checkpoint': only('checkpoint', response =>
    response.writeHead(301, { location: 'http://127.0.0.1:1/checkpoint' }).end(),
  ),
  'partial content': only(BUNDLE, (response, bytes) =>
    response.writeHead(206, { 'content-range': `bytes 0-${bytes.length - 1}/${bytes.length}` }).end(bytes),
  ),
  'no content': only(TILE, response => response.writeHead(204).end()),
  'a page that needs a login': only(TILE, response => response.writeHead(401).end()),
  '500 for ever': only(TILE, response => response.writeHead(500).end()),
  '503 for the checkpoint for ever': only('checkpoint', response => response.writeHead(503).end()),
  '429 for ever': only(TILE, response => response.writeHead(429).end()),
  'a connection that is closed in the middle of a body': only(TILE, (response, bytes) => {
    response
      .writeHead(200, { 'content-length': bytes.length })
      .write(bytes.subarray(0, 50), () => response.destroy())
  }),
  'a body that never completes': only(TILE, (response, bytes) => {
    response.writeHead(200, { 'content-length': bytes.length }).write(bytes.subarray(0, 50))
  }),
  'a body without a length that never completes': only('checkpoint', response =>
    response.writeHead(200).write('x'),
  ),
  'a server that never answers': only(BUNDLE, () => {}),
  'a server that drops every connection': only(BUNDLE, response => response.destroy()),
}
for (const [what, misbehave] of Object.entries(uncheckable)) {
  t.test(`${what}: 2, and it ends`, async t => {
    const { verdict, failures } = await auditWith(t, misbehave, IMPATIENT)
    t.equal(verdict, 2)
    t.strictSame(failures, ['fetch null'])
  })
}

t.test('a body of one byte at a time is too slow, however regular', async t => {
  const drip = only(TILE, (response, bytes) => {
    response.writeHead(200, { 'content-length': bytes.length })
    const timer = setInterval(() => response.write(Buffer.alloc(1)), 20)
    response.on('close', () => clearInterval(timer))
  })
  const { verdict, of } = await auditWith(t, drip, IMPATIENT)
  t.equal(verdict, 2)
  t.match(of('fetch'), { detail: /not complete after 0\.6 s/ })
})

t.test('nothing listens: 2, soon', async t => {
  const { verdict, failures } = await audit({ url: 'http://127.0.0.1:1', stateFile: newStateFile(t) })
  t.equal(verdict, 2)
  t.strictSame(failures, ['fetch null'])
})

const passing: Record<string, Misbehaviour> = {
  'some 500s': first(5, TILE, response => response.writeHead(500).end()),
  'some 429s': first(3, BUNDLE, response => response.writeHead(429).end()),
  'a dropped connection': first(1, BUNDLE, response => response.destroy()),
  'a body that was cut off once': first(1, TILE, (response, bytes) => {
    response
      .writeHead(200, { 'content-length': bytes.length })
      .write(bytes.subarray(0, 50), () => response.destroy())
  }),
  'a connection that was silent once': first(1, TILE, () => {}),
  'a slow but complete answer': only(TILE, (response, bytes) => {
    response.write(bytes.subarray(0, 100))
    setTimeout(() => response.end(bytes.subarray(100)), 50)
  }),
  'gzip that was not asked for': (path, response) => {
    if (!path.startsWith('tile/entries')) return false
    response.setHeader('content-encoding', 'gzip').end(gzipSync(FILES.get(path)!))
    return true
  },
  'gzip that is named in capitals': only(BUNDLE, (response, bytes) => {
    response.setHeader('content-encoding', 'GZIP').end(gzipSync(bytes))
  }),
  'a body in brotli, and one in deflate': (path, response) => {
    const bytes = FILES.get(path)!
    if (path === TILE) response.setHeader('content-encoding', 'br').end(brotliCompressSync(bytes))
    else if (path === BUNDLE) response.setHeader('content-encoding', 'deflate').end(deflateSync(bytes))
    else return false
    return true
  },
  'chunks without a length': (path, response) => {
    const bytes = FILES.get(path)!
    response.write(bytes.subarray(0, 7))
    response.end(bytes.subarray(7))
    return true
  },
}
for (const [what, misbehave] of Object.entries(passing)) {
  t.test(`${what} is no failure`, async t => {
    const { verdict, failures } = await auditWith(t, misbehave, { ...PATIENT, idleMs: IMPATIENT.idleMs })
    t.strictSame([verdict, ...failures], [0])
  })
}

t.test('Retry-After is waited for, in seconds or as a date', async t => {
  for (const [value, leastMs] of [
    ['1', 1_000],
    // A date has no fractions of a second, so this one is one to two seconds away.
    [() => new Date(Date.now() + 2_000).toUTCString(), 900],
  ] as const) {
    const busy = first(1, 'checkpoint', response => {
      const header = typeof value === 'string' ? value : value()
      response.writeHead(429, { 'retry-after': header }).end()
    })
    const { verdict, ms } = await auditWith(t, busy)
    t.equal(verdict, 0)
    t.ok(ms >= leastMs, `${ms} ms`)
  }
})

t.test('a Retry-After of no time at all does not have a busy server asked without a pause', async t => {
  const busy = only('checkpoint', response => response.writeHead(503, { 'retry-after': '0' }).end())
  const { requests } = await auditWith(t, busy, { ...IMPATIENT, backOffMs: 100 })
  // After at least 50, 100 and 200 ms; the next pause would be longer than the rest.
  t.ok(requests.length <= 4, `asked ${requests.length} times`)
})

t.test('a Retry-After beyond the time of a request is not waited for', async t => {
  const busy = only('checkpoint', response => response.writeHead(503, { 'retry-after': '3600' }).end())
  const { verdict, requests } = await auditWith(t, busy)
  t.equal(verdict, 2)
  t.equal(requests.length, 1)
})

t.test('a partial tile or bundle that is gone is cut from the full one', async t => {
  const grown = logFilesOf(entriesOf(600))
  const files = new Map(FILES)
  for (const gone of [TILE, 'tile/entries/001.p/44']) {
    files.delete(gone)
    const full = gone.replace(/\.p.*/, '')
    files.set(full, grown.get(full)!)
  }
  const server = await serveFiles(t, files)
  const { verdict, failures } = await audit({ url: server.url, stateFile: newStateFile(t) })
  t.strictSame([verdict, ...failures], [0])
})

t.test('a log can not tell an auditor from a client by the headers of a request', async t => {
  const sent: string[][] = []
  const server = await serveFiles(t, FILES, (_path, response) => {
    sent.push(response.req.rawHeaders)
    return false
  })
  await fetch(`${server.url}/checkpoint`)
  const { verdict } = await audit({ url: server.url, stateFile: newStateFile(t) })
  t.equal(verdict, 0)
  const [ofFetch = [], ...ofAuditor] = sent
  t.ok(ofAuditor.length > 3)
  // The last one: see the next test.
  for (const headers of ofAuditor) t.strictSame(headers.slice(0, -1), ofFetch.slice(0, -1))
  t.strictSame(
    Object.entries(headersFor(new URL('http://kt.example.org/log')))
      .flat()
      .slice(2),
    ofFetch.slice(2),
    'and from another machine all of them',
  )
})

t.test(
  'bodies are requested plain from the same machine, and from other machines as `fetch` does',
  async t => {
    const acceptedFrom = (url: string) => headersFor(new URL(url))['accept-encoding']
    for (const url of ['http://127.0.0.1:80/', 'https://localhost/log', 'http://[::1]/'])
      t.equal(acceptedFrom(url), 'identity', url)
    t.equal(acceptedFrom('http://kt.example.org/'), 'gzip, deflate')
    t.equal(acceptedFrom('https://kt.example.org/'), 'br, gzip, deflate')
  },
)

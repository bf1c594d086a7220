/** The static surface: every path form, and nothing but the canonical spelling within the published tree. */

import { request } from 'node:http'
import { gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { openServer } from '../support/open-server.ts'
import { freshPublicKey, type OpenServer } from '../support/server.ts'

/** Enough for a full tile and bundle, a partial one of each, and a level-1 tile. */
const ENTRIES = 300

async function logOf(t: Test, entries: number): Promise<OpenServer> {
  const server = await openServer({ dataFolder: t.testdir(), environment: { CALLSIGN_LOG_LEVEL: 'error' } })
  t.teardown(() => server.end())
  const client = new RegisterClient(server.grpc)
  const keys = Array.from({ length: entries }, (_, user) =>
    client.register(BigInt(user), 1n, freshPublicKey()),
  )
  await Promise.all(keys)
  client.close()
  return server
}

interface RawAnswer {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
}

/** `fetch` would tidy the path and unpack the body; this sends and shows both as they are. */
function raw(
  base: string,
  path: string,
  method = 'GET',
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, reject) => {
    const outgoing = request({ hostname, port, path, method, headers }, incoming => {
      const chunks: Buffer[] = []
      incoming.on('data', chunk => chunks.push(chunk))
      incoming.on('end', () => {
        resolve({ status: incoming.statusCode!, headers: incoming.headers, body: Buffer.concat(chunks) })
      })
    })
    outgoing.on('error', reject).end()
  })
}

t.test('an empty log serves a signed checkpoint of size 0 and no tile', async t => {
  const server = await logOf(t, 0)
  const { body } = await raw(server.http, '/checkpoint')
  t.match(
    body.toString(),
    /^localhost\/callsign-dev\n0\n47DEQpj8HBSa\+\/TImW\+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— /,
  )
  for (const path of ['/tile/0/000', '/tile/0/000.p/1', '/tile/entries/000', '/tile/entries/000.p/1']) {
    t.equal((await raw(server.http, path)).status, 404, path)
  }
})

t.test('a log of 300 entries', async t => {
  const { http } = await logOf(t, ENTRIES)

  t.test('full and partial tiles and bundles have their sizes and cache headers', async t => {
    const sizes: [string, number, RegExp][] = [
      ['/tile/0/000', 8_192, /max-age=31536000, immutable/],
      ['/tile/0/001.p/44', 44 * 32, /max-age=60$/],
      ['/tile/1/000.p/1', 32, /max-age=60$/],
      ['/tile/entries/000', 256 * 136, /max-age=31536000, immutable/],
      ['/tile/entries/001.p/44', 44 * 136, /max-age=60$/],
    ]
    for (const [path, size, caching] of sizes) {
      const { status, headers, body } = await raw(http, path)
      t.equal(status, 200, path)
      t.equal(body.length, size, path)
      t.equal(headers['content-type'], 'application/octet-stream', path)
      t.match(headers['cache-control'], caching, path)
      t.equal(headers['access-control-allow-origin'], '*', path)
    }
    const checkpoint = await raw(http, '/checkpoint')
    t.equal(checkpoint.headers['content-type'], 'text/plain; charset=utf-8')
    t.equal(checkpoint.headers['cache-control'], 'no-cache')
  })

  t.test('every partial form of a tile that is full now is still its prefix', async t => {
    for (const [kind, unit] of [
      ['0', 32],
      ['entries', 136],
    ] as const) {
      const full = (await raw(http, `/tile/${kind}/000`)).body
      let broken = 0
      for (let width = 1; width <= 255; width++) {
        const { status, body } = await raw(http, `/tile/${kind}/000.p/${width}`)
        if (status !== 200 || !body.equals(full.subarray(0, width * unit))) broken++
      }
      t.equal(broken, 0, kind)
    }
  })

  t.test('nothing else names anything', async t => {
    const paths = [
      '/tile/0/001',
      '/tile/0/001.p/45',
      '/tile/0/001.p/255',
      '/tile/0/002',
      '/tile/0/002.p/1',
      '/tile/1/000',
      '/tile/1/000.p/2',
      '/tile/2/000.p/1',
      '/tile/63/000.p/1',
      '/tile/64/000',
      '/tile/entries/001',
      '/tile/entries/001.p/45',
      '/tile/entries/002.p/1',
      '/tile/0/0',
      '/tile/0/00',
      '/tile/0/0000',
      '/tile/00/000',
      '/tile/+0/000',
      '/tile/-1/000',
      '/tile/x/000',
      '/tile/0/x000/000',
      '/tile/0/000/000',
      '/tile/0/x00/000',
      '/tile/0/X000',
      '/tile/0/x000',
      '/tile/0/000.p/0',
      '/tile/0/000.p/256',
      '/tile/0/000.p/01',
      '/tile/0/000.p/-1',
      '/tile/0/000.p/',
      '/tile/0/000.p',
      '/tile/0/000/',
      '/tile/0/',
      '/tile/0',
      '/tile/',
      '/tile',
      '/tile//0/000',
      '//tile/0/000',
      '/checkpoint/',
      '/tile/../checkpoint',
      '/tile/0/../0/000',
      '/tile/./0/000',
      '/tile/0/%30%30%30',
      '/tile/0/000%2ep/44',
      '/tile/0/000\\',
      '/checkpoint?x',
      '/tile/0/000?x=1',
      '/Checkpoint',
      '/TILE/0/000',
      '/tile/Entries/000',
      '/tile/0/x999/x999/x999/x999/x999/x999/999',
      '/tile/entries/x999/999',
      `/tile/0/${'x000/'.repeat(600)}000`,
      ...['/tile/8/001', '/store/data.mdb', '/tile/data.mdb', '/tile/0/٠٠٠'].map(encodeURI),
    ]
    for (const path of paths) {
      const { status, headers } = await raw(http, path)
      t.equal(status, 404, path)
      if (path.startsWith('/tile/')) t.equal(headers['cache-control'], 'no-store', `${path} is not cached`)
    }
  })

  t.test('HEAD answers as GET without a body; other methods are 405', async t => {
    for (const path of ['/checkpoint', '/tile/0/000', '/tile/entries/001.p/44']) {
      const [get, head] = [await raw(http, path), await raw(http, path, 'HEAD')]
      t.equal(head.status, 200, path)
      t.equal(head.body.length, 0, path)
      t.equal(head.headers['content-length'], String(get.body.length), path)
      t.equal(head.headers.etag, get.headers.etag, path)
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const { status, headers } = await raw(http, path, method)
        t.equal(status, 405, `${method} ${path}`)
        t.equal(headers.allow, 'GET, HEAD', `${method} ${path}`)
      }
    }
    t.equal((await raw(http, '/tile/0/999', 'HEAD')).status, 404)
  })

  t.test('a page that puts a token on all its requests may ask for files too', async t => {
    const preflight = {
      origin: 'https://anybody.example',
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'authorization',
    }
    for (const path of ['/checkpoint', '/tile/0/000', '/tile/0/999']) {
      const { status, headers, body } = await raw(http, path, 'OPTIONS', preflight)
      t.equal(status, 204, path)
      t.equal(body.length, 0)
      t.match(headers, {
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, HEAD',
        'access-control-allow-headers': /^authorization, /,
      })
    }
  })

  t.test('an ETag that still holds is 304, for one tag, a list, a weak tag and a star', async t => {
    for (const path of ['/checkpoint', '/tile/0/000', '/tile/0/001.p/44']) {
      const { etag } = (await raw(http, path)).headers
      for (const sent of [`${etag}`, `"x", ${etag}`, `W/${etag}`, '*']) {
        const answer = await raw(http, path, 'GET', { 'if-none-match': sent })
        t.equal(answer.status, 304, `${path} ${sent}`)
        t.equal(answer.body.length, 0)
      }
      t.equal((await raw(http, path, 'GET', { 'if-none-match': '"other"' })).status, 200)
    }
  })

  t.test('bundles come gzipped when asked for, each form with its own ETag', async t => {
    for (const path of ['/tile/entries/000', '/tile/entries/001.p/44']) {
      const plain = await raw(http, path)
      t.equal(plain.headers['content-encoding'], undefined)
      for (const accepts of ['gzip', 'br;q=1, gzip;q=0.5', '*', 'GZIP']) {
        const zipped = await raw(http, path, 'GET', { 'accept-encoding': accepts })
        t.equal(zipped.headers['content-encoding'], 'gzip', accepts)
        t.ok(gunzipSync(zipped.body).equals(plain.body), accepts)
        t.not(zipped.headers.etag, plain.headers.etag)
        t.equal(zipped.headers.vary, 'Accept-Encoding')
      }
      for (const refuses of ['gzip;q=0', 'identity', 'br', '*;q=0', 'gzip;q=0, *']) {
        const { headers } = await raw(http, path, 'GET', { 'accept-encoding': refuses })
        t.equal(headers['content-encoding'], undefined, refuses)
      }
      const both = await Promise.all(
        Array.from({ length: 20 }, () => raw(http, path, 'GET', { 'accept-encoding': 'gzip' })),
      )
      t.ok(
        both.every(({ body }) => gunzipSync(body).equals(plain.body)),
        'many at once',
      )
    }
    t.equal(
      (await raw(http, '/tile/0/000', 'GET', { 'accept-encoding': 'gzip' })).headers['content-encoding'],
      undefined,
    )
  })
})

/** A development server's help for app developers, as docs/build/development.md has it: pages of this machine, and reasons for a refusal. */

import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { chooseLanAddress } from '../../src/server/development/lan-address.ts'
import { App } from '../support/app.ts'
import { DevPerson } from '../support/dev-person.ts'
import { openServer } from '../support/open-server.ts'
import { skipWithout } from '../support/programs.ts'
import { sendRaw } from '../support/raw-http.ts'
import { type OpenServer, startServer } from '../support/server.ts'
import { blocksOf, Reader } from '../support/your-users.ts'

async function start(t: Test, environment: Record<string, string>): Promise<OpenServer> {
  const server = await openServer({ dataFolder: t.testdir(), environment })
  t.teardown(() => server.end())
  return server
}

t.test(
  'in development pages of this machine may call and connect, and a refused one is named in the log',
  async t => {
    const server = await start(t, { CALLSIGN_LOG_LEVEL: 'info' })
    const page = 'http://localhost:5173'
    const ask = (origin: string) =>
      fetch(`${server.http}/app/api/login`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      })
    t.equal((await ask(page)).headers.get('access-control-allow-origin'), page)
    const socket = new WebSocket(`${server.http.replace('http', 'ws')}/ws`, { origin: page })
    await once(socket, 'open')
    socket.terminate()

    const elsewhere = ['https://a.example', 'https://b.example']
    t.equal((await ask(elsewhere[0]!)).headers.get('access-control-allow-origin'), null)
    const refused = new WebSocket(`${server.http.replace('http', 'ws')}/ws`, { origin: elsewhere[1]! })
    const [{ message }] = await once(refused, 'error')
    t.match(message, '403')
    await server.end()
    const lines = linesOf(server, 'origin-refused')
    // Two fronts write their lines in any order.
    t.same(
      lines.map(({ origin, setting }) => `${origin} ${setting}`).sort(),
      elsewhere.map(origin => `${origin} CALLSIGN_CORS_ORIGINS`),
    )
  },
)

t.test(
  'a refusal has a log line with method, route, code and pointer, and without what was sent',
  async t => {
    const server = await start(t, { CALLSIGN_LOG_LEVEL: 'info' })
    const token = 'sk_do-not-repeat-this'
    await fetch(`${server.http}/app/api/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ email: `${token}@` }),
    })
    await fetch(`${server.http}/app/api/devices/${token}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${token}` },
    })
    await fetch(`${server.http}/nowhere/${token}`, { method: 'QUERY' })
    await server.end()
    const lines = linesOf(server, 'refused').map(({ method, route, code, pointer }) => [
      method,
      route,
      code,
      pointer,
    ])
    t.same(lines.sort(), [
      ['DELETE', '/app/api/devices/{deviceId}', 'TOKEN_INVALID', undefined],
      ['POST', '/app/api/login', 'VALIDATION_FAILED', '/email'],
      ['other', 'none', 'NOT_FOUND', undefined],
    ])
    t.notMatch(server.stderr(), token)
  },
)

/** The log lines of one event. */
function linesOf(server: OpenServer, event: string): Record<string, string>[] {
  const lines = server
    .stderr()
    .split('\n')
    .filter(line => line.startsWith('{'))
  return lines.map(line => JSON.parse(line)).filter(line => line.event === event)
}

const lanAddress = chooseLanAddress(networkInterfaces())
const page = blocksOf('build/development.md').filter(({ test }) => test === 'test/flows/development.test.ts')
const [starting = '', ...requests] = page.map(({ text }) => text)
/** `--lan`. */
const [, LAN_FLAG = ''] = /^\$ npm start -- (\S+)\n$/.exec(starting) ?? []
const skip = lanAddress === undefined && 'needs an IPv4 address on a network'

t.test('with --lan a phone finds API, socket and links at the address of this machine', { skip }, async t => {
  const server = await startServer({ dataFolder: t.testdir(), args: [LAN_FLAG] })
  t.teardown(() => server.end())
  const { port } = new URL(server.http)
  t.equal(server.http, `http://${lanAddress}:${port}`)
  const local = `http://127.0.0.1:${port}`
  const ann = await DevPerson.signIn(local, 'Ann')
  const phone = new App(server.http)
  phone.accessToken = ann.app.accessToken
  const link = await phone.get(201, 'POST /app/api/share-token', {})
  t.ok(link.url.startsWith(`${server.http}/c/`), link.url)
  t.equal((await phone.get(200, 'GET /app/api/meta')).log.url, server.http)
  t.match((await phone.get(200, 'GET /credentials')).uris[0], `turn:${lanAddress}:`)
  const socket = new WebSocket(`ws://${lanAddress}:${port}/ws`)
  await once(socket, 'open')
  socket.terminate()
  await server.end()
  const banner = server.stderr()
  t.ok(banner.includes(`On this network: ${server.http}\n`))
  t.ok(/█ ▄▄▄▄▄ █/.test(banner), 'as a QR code, too')
  t.ok(banner.includes(`${local}/dev `))
})

t.test('with --lan the console and its data stay on this machine', { skip }, async t => {
  // The phone's address as a proxy on this machine would tell it.
  const environment = { CALLSIGN_TRUSTED_PROXIES: '127.0.0.0/8' }
  const server = await startServer({ dataFolder: t.testdir(), args: ['--lan'], environment })
  t.teardown(() => server.end())
  const { port } = new URL(server.http)
  const ask = (path: string, headers: Readonly<Record<string, string>>) =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers, redirect: 'manual' })
  const phone = { 'x-forwarded-for': '203.0.113.77', accept: 'text/html' }
  const closed = ['/dev', '/dev/inbox', '/dev/pushes', '/dev/feed', '/dev/state']
  for (const path of closed) {
    t.equal((await ask(path, phone)).status, 403, path)
    t.equal((await ask(path, { accept: 'text/html' })).status, 200, path)
  }
  for (const path of ['/dev/client', '/docs', '/docs/events', '/app/api/meta']) {
    t.equal((await ask(path, phone)).status, 200, path)
  }
  t.equal((await ask('/', phone)).headers.get('location'), '/docs')
  t.equal((await ask('/', { accept: 'text/html' })).headers.get('location'), '/dev')
})

const DATA = ['/dev', '/dev/inbox', '/dev/pushes', '/dev/feed', '/dev/state']

for (const fronts of [0, 2]) {
  t.test(`no code is seen through a tunnel, with ${fronts} fronts`, async t => {
    const environment = { CALLSIGN_FRONTS: String(fronts), CALLSIGN_PUBLIC_URL: 'https://box.tunnel.example' }
    const server = await startServer({ dataFolder: t.testdir(), environment })
    t.teardown(() => server.end())
    const { port } = new URL(server.http)
    const app = new App(server.http)
    await app.get(200, 'POST /app/api/login', { email: 'ann@b.co' })
    const local = { Host: `localhost:${port}` }
    for (const path of DATA) {
      t.match(await raw(port, path, local), /^HTTP\/1.1 200/, path)
      for (const mark of ['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Any', 'Via', 'CF-Ray']) {
        const forwarded = await raw(port, path, { ...local, [mark]: 'for=127.0.0.1' })
        t.match(forwarded, /^HTTP\/1.1 403.*HOST_NOT_ALLOWED/s, `${path} with ${mark}`)
      }
      const named = await raw(port, path, { Host: 'box.tunnel.example' })
      t.match(named, /^HTTP\/1.1 403.*HOST_NOT_ALLOWED/s, `${path} at the tunnel’s name`)
    }
    for (const path of ['/dev/reset', '/dev/simulator']) {
      const command = {
        ...local,
        'Content-Type': 'application/json',
        'Content-Length': '2',
        Via: '1.1 proxy',
      }
      t.match(await raw(port, path, command, 'POST', '{}'), /^HTTP\/1.1 403/, path)
    }
    for (const path of ['/dev/client', '/docs', '/app/api/meta'])
      t.match(await raw(port, path, { Host: 'box.tunnel.example', Via: '1.1 proxy' }), /^HTTP\/1.1 200/, path)
    const entrance = await raw(port, '/', { Host: 'box.tunnel.example', Accept: 'text/html' })
    t.match(entrance, /\r\nLocation: \/dev\/client\r\n/)
  })
}

/** The answer to a request with exactly these headers. */
function raw(
  port: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  method = 'GET',
  body = '',
): Promise<string> {
  const lines = Object.entries({ ...headers, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return sendRaw(Number(port), `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

t.test(
  'the requests of the page are answered as it shows',
  { skip: skipWithout(['/usr/bin/jq'], 'jq') },
  async t => {
    const folder = t.testdir()
    const dataFolder = join(folder, 'data')
    const server = await startServer({ dataFolder })
    t.teardown(() => server.end())
    const reader = await Reader.beside(server, dataFolder, join(folder, 'reader'))
    t.equal(requests.length, 2)
    for (const request of requests) await reader.follows(t, request)
  },
)

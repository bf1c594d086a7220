/** The server behind nginx and Caddy, as the files of `deploy` set them up: docs/run/proxy.md. */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { meetPeople, settingsFor, signInPerson, startCall } from '../support/call-people.ts'
import { freePort } from '../support/free-port.ts'
import { registerUsers } from '../support/live-log.ts'
import { connectFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { eventually, until } from '../support/nodes.ts'
import { openServer } from '../support/open-server.ts'
import {
  newFolder,
  nginxConf,
  type ProxyPlace,
  skipWithoutCaddy,
  skipWithoutNginx,
  startCaddy,
  startNginx,
} from '../support/proxies.ts'
import type { OpenServer } from '../support/server.ts'
import { SocketClient } from '../support/socket-client.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const FAILED_CONNECTS = 3
const LOGINS = 12
/** Two clients in different networks, neither of them the proxy's, 127.0.0.1. */
const [ONE, OTHER] = ['127.0.9.1', '127.0.10.1']

interface Place extends Required<ProxyPlace> {
  readonly url: string
  readonly running: OpenServer
}

const PROXIES = {
  nginx: {
    skip: skipWithoutNginx,
    start: (t: Test, folder: string, place: Required<ProxyPlace>) =>
      startNginx(t, folder, nginxConf(folder, place), place.port),
  },
  Caddy: { skip: skipWithoutCaddy, start: startCaddy },
}

for (const [name, { skip, start }] of Object.entries(PROXIES)) {
  t.test(name, { skip }, async t => {
    const running = await openServer({
      dataFolder: join(t.testdir(), 'data'),
      environment: {
        ...settingsFor(8),
        CALLSIGN_TRUSTED_PROXIES: '127.0.0.1',
        CALLSIGN_RATE_LIMITS: '',
        CALLSIGN_RATES: JSON.stringify({ 'failed-connect': FAILED_CONNECTS, login: LOGINS }),
      },
    })
    let end = () => running.end()
    t.teardown(() => end())
    const [port, tlsPort, server] = [await freePort(), await freePort(), new URL(running.http).host]
    await start(t, newFolder(t), { port, tlsPort, server })
    const place = { port, tlsPort, server, running, url: `http://127.0.0.1:${port}` }
    t.test('people sign in, and a device rings', t => ring(t, place))
    t.test('rates count the client, whatever it says of itself', t => countClients(t, place))
    t.test('bodies have a bound', t => boundBodies(t, place, name))
    t.test('files of the log come as the server says', t => keepCheckpoint(t, place, name))
    t.test('HTTP/2 by TLS', t => speakHttp2(t, place))
    t.test('a checkpoint does not outlive the server', async t => {
      t.equal(await checkpointStatus(place), 200)
      await end()
      end = async () => undefined
      await until(async () => (await checkpointStatus(place)) === 502)
    })
  })
}

async function ring(t: Test, { url, port }: Place): Promise<void> {
  const [ann, bob] = await meetPeople(url, 2)
  const phone = await SocketClient.connect('websocket', port, bob!.app.accessToken!)
  await phone.subscribe('/user/queue/calls', 'calls')
  const { status, body } = await startCall(ann!, [bob!])
  t.equal(status, 201)
  const { body: invitation } = await phone.message()
  t.match(JSON.parse(String(invitation)), { type: 'call_invitation', callId: body.callId })
  t.match((await ann!.app.send('POST /app/api/call/end', { callId: body.callId })).status, /^20/)
  await phone.message()
  t.same(await phone.disconnect(), [])
}

async function countClients(t: Test, place: Place): Promise<void> {
  for (let attempt = 0; attempt < FAILED_CONNECTS; attempt++) {
    t.equal(await failToConnect(place, ONE!, attempt), 'token_invalid', `try ${attempt}`)
  }
  t.equal(await failToConnect(place, ONE!, FAILED_CONNECTS), 'rate_limited', 'a forged address is none')
  t.equal(await failToConnect(place, OTHER!, 0), 'token_invalid', 'and somebody else is not slowed')

  const statuses = []
  for (let attempt = 0; attempt <= LOGINS; attempt++) statuses.push(await logIn(place, ONE!, attempt))
  t.same(statuses.slice(0, LOGINS), Array(LOGINS).fill(200))
  t.equal(statuses.at(-1), 429)
  t.equal(await logIn(place, OTHER!, 0), 200)
}

/** Resolves with the reason that the server gives. */
async function failToConnect({ port }: Place, from: string, attempt: number): Promise<string | undefined> {
  const upgradeLines = `X-Forwarded-For: 203.0.113.${attempt}\r\nForwarded: for=203.0.113.${attempt}\r\n`
  const peer = await SocketClient.open('websocket', port, { from, upgradeLines })
  peer.write(connectFrame('no token'))
  return headerOf(await peer.frame(({ command }) => command === 'ERROR'), 'reason')
}

async function logIn({ port }: Place, localAddress: string, attempt: number): Promise<number> {
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': `203.0.113.${attempt}` }
  const options = { host: '127.0.0.1', port, localAddress, method: 'POST', path: '/app/api/login', headers }
  const request = plainRequest(options)
  request.end(JSON.stringify({ email: `person${attempt % 6}@example.org`, displayName: 'Person' }))
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  answer.resume()
  return answer.statusCode!
}

async function boundBodies(t: Test, { url }: Place, name: string): Promise<void> {
  const { app } = await signInPerson(url, 7)
  const send = (bytes: number) => app.send('PUT /app/api/user', { displayName: 'x'.repeat(bytes) })
  const refused = await send(17 * 1024)
  t.match(refused, { status: 413, body: { code: 'BODY_TOO_LARGE' } }, 'by the server, in its words')
  // Caddy says 502 where the server has answered and closed before it has all of the body.
  const large = (await send(2 * 1024 * 1024)).status
  t.ok(large === 413 || (large === 502 && name === 'Caddy'), `${large}`)
}

async function keepCheckpoint(t: Test, { url, running }: Place, name: string): Promise<void> {
  const client = new RegisterClient(running.grpc)
  t.teardown(() => client.close())
  await registerUsers(client, 1, 3)
  const sizeOf = async () => Number((await (await fetch(`${url}/checkpoint`)).text()).split('\n')[1])
  const before = await sizeOf()
  await registerUsers(client, 100, 2)
  await eventually(async () => {
    if ((await sizeOf()) < before + 2) throw new Error('not yet')
  })
  const tile = await fetch(`${url}/tile/0/000.p/${before}`)
  t.equal(tile.status, 200)
  t.equal(tile.headers.get('access-control-allow-origin'), '*')
  const missing = await fetch(`${url}/tile/0/001`)
  t.match([missing.status, missing.headers.get('cache-control')], [404, 'no-store'])
  if (name !== 'nginx') return
  const again = await fetch(`${url}/tile/0/000.p/${before}`)
  t.equal(again.headers.get('x-cache'), 'HIT')
  await (await fetch(`${url}/tile/0/001`)).text()
  t.equal((await fetch(`${url}/tile/0/001`)).headers.get('x-cache'), 'MISS', 'a 404 is not kept')
}

async function checkpointStatus({ url }: Place): Promise<number> {
  const answer = await fetch(`${url}/checkpoint`)
  await answer.arrayBuffer()
  return answer.status
}

async function speakHttp2(t: Test, { tlsPort }: Place): Promise<void> {
  const ca = readFileSync(join(PROJECT_ROOT, 'test/support/tls/ca.crt'))
  const session = connectHttp2(`https://localhost:${tlsPort}`, { ca })
  t.teardown(() => session.close())
  const stream = session.request({ ':path': '/app/api/meta' })
  const [headers] = await once(stream, 'response')
  stream.resume()
  t.match(headers, { ':status': 200, 'strict-transport-security': /max-age=31536000/ })
}

/** deploy/haproxy.cfg in an HAProxy of its own, before two nodes, and before servers that break off. */

import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { befriend, type Person, signInPerson, startCall } from '../support/call-people.ts'
import { freePort } from '../support/free-port.ts'
import { Cluster, eventually, until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { skipWithout, spawnBound } from '../support/programs.ts'
import { freshPublicKey } from '../support/server.ts'
import { SocketClient } from '../support/socket-client.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const HAPROXY = ['/usr/sbin/haproxy', '/usr/local/sbin/haproxy'].find(existsSync) ?? '/usr/sbin/haproxy'
const skip = skipWithout([HAPROXY], 'haproxy')

interface Backend {
  readonly http: string
  readonly grpc: string
  readonly admin: string
}

/** Resolves when the balancer has found a node that is ready. */
async function startBalancer(t: Test, backends: readonly Backend[]) {
  const [http, grpc] = [await freePort(), await freePort()]
  let text = readFileSync(join(PROJECT_ROOT, 'deploy/haproxy.cfg'), 'utf8')
    .replace('bind :8080', `bind 127.0.0.1:${http}`)
    .replace('bind :50051', `bind 127.0.0.1:${grpc}`)
  for (const [at, backend] of backends.entries()) {
    const { port } = new URL(backend.admin)
    text = text
      .replace(` node-${at + 1}:8080`, ` ${new URL(backend.http).host} port ${port}`)
      .replace(` node-${at + 1}:50051`, ` ${backend.grpc} port ${port}`)
  }
  const folder = mkdtempSync(join(tmpdir(), 'callsign-balancer-'))
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, text)
  const balancer = spawnBound(HAPROXY, ['-db', '-f', file], { stdio: 'ignore' })
  let hasEnded = false
  const ended = once(balancer, 'close').then(() => {
    hasEnded = true
  })
  t.teardown(async () => {
    balancer.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true })
  })
  const address = { http: `http://127.0.0.1:${http}`, grpc: `127.0.0.1:${grpc}` }
  await until(async () => hasEnded || (await fetch(address.http)).status !== 503)
  if (hasEnded) throw new Error('the balancer has ended')
  return address
}

async function connect(http: string, { app }: Person): Promise<SocketClient> {
  const peer = await SocketClient.connect('websocket', http, app.accessToken!)
  await peer.subscribe('/user/queue/calls', 'calls', 'ack:client-individual\n')
  return peer
}

t.test(
  'clients go through a balancer to the nodes that are ready',
  { skip: skip || skipWithoutPostgres },
  async t => {
    const cluster = await Cluster.start(t, { keepsAddresses: true })
    const { http, grpc } = await startBalancer(
      t,
      cluster.nodes.map(({ server }) => server),
    )
    const ann = await eventually(() => signInPerson(http, 0))
    const bob = await eventually(() => signInPerson(http, 1))
    await befriend(ann, bob)
    const peer = await connect(http, bob)
    const { status, body } = await startCall(ann, [bob])
    t.equal(status, 201)
    await peer.until(() => peer.frames.some(frame => String(frame.body).includes(body.callId)))
    const client = new RegisterClient(grpc)
    t.teardown(() => client.close())
    t.match(await client.register(1n, 1n, freshPublicKey()), { vrfHash: String })

    cluster.one.kill('SIGKILL')
    await eventually(() => ann.app.get(200, `POST /app/api/call/end`, { callId: body.callId }))
    t.match(await eventually(() => client.register(2n, 1n, freshPublicKey())), { vrfHash: String })
    t.equal(await ann.app.outcome('GET /app/api/user'), '200')
    const again = await eventually(() => connect(http, bob))
    again.destroy()
    peer.destroy()
  },
)

/** Is ready, and breaks off each request that it gets. */
async function startBroken(t: Test, onRequest: () => void): Promise<Backend> {
  const listen = async (listener: RequestListener): Promise<Server> => {
    const server = createServer(listener).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    return server
  }
  const addressOf = (server: Server) => `127.0.0.1:${(server.address() as AddressInfo).port}`
  const admin = await listen((_, response) => response.end())
  const http = await listen((request, response) => {
    if (request.method === 'POST') onRequest()
    if (request.method === 'POST') request.on('end', () => request.socket.destroy()).resume()
    else response.end()
  })
  return { http: `http://${addressOf(http)}`, admin: `http://${addressOf(admin)}`, grpc: addressOf(http) }
}

t.test('a request that a node may have had goes to no other node', { skip }, async t => {
  let requests = 0
  const backends = [await startBroken(t, () => requests++), await startBroken(t, () => requests++)]
  const { http } = await startBalancer(t, backends)
  const answer = await fetch(`${http}/app/api/call/start`, { method: 'POST', body: '{}' })
  t.equal(answer.status, 502)
  t.equal(requests, 1)
})

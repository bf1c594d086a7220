/** SIGHUP: new connections get the new certificate, and those that are open go on. */

import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import grpc from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { freePort } from '../support/free-port.ts'
import { productionEnvironment } from '../support/outside-world.ts'
import { freshPublicKey, type RunningServer, startServer } from '../support/server.ts'
import { tlsFile, tlsPath } from '../support/tls.ts'
import { weakCiphersOf } from '../support/weak-ciphers.ts'

const fingerprintOf = (name: string) => new X509Certificate(tlsFile(name)).fingerprint256

async function startWithTls(t: Test): Promise<{ server: RunningServer; put: (name: string) => void }> {
  const folder = t.testdir()
  const [certificate, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  const put = (name: string) => {
    copyFileSync(tlsPath(`${name}.crt`), certificate)
    copyFileSync(tlsPath(`${name}.key`), key)
  }
  put('server')
  const server = await startServer({
    dataFolder: join(folder, 'data'),
    dev: false,
    environment: {
      ...productionEnvironment(),
      // A port that the kernel chooses is not shared, as in production none is.
      CALLSIGN_HTTP_PORT: String(await freePort()),
      CALLSIGN_TLS_CERT: certificate,
      CALLSIGN_TLS_KEY: key,
      CALLSIGN_GRPC_TLS_CERT: certificate,
      CALLSIGN_GRPC_TLS_KEY: key,
    },
  })
  t.teardown(() => server.end())
  return { server, put }
}

const portOf = (address: string) => Number(address.split(':').at(-1))

/** The fingerprint of the certificate that a new connection gets. */
async function shownAt(address: string): Promise<string> {
  const socket = connect({
    port: portOf(address),
    host: '127.0.0.1',
    servername: 'localhost',
    rejectUnauthorized: false,
    ALPNProtocols: ['h2', 'http/1.1'],
  })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

/** Sends SIGHUP and resolves when the log says what came of it. */
async function renew({ process, stderr }: RunningServer, outcome: string): Promise<void> {
  const before = stderr().length
  process.kill('SIGHUP')
  while (!stderr().slice(before).includes(`"event":"${outcome}"`)) await once(process.stderr!, 'data')
}

/** Asks on the agent's one connection; resolves with the fingerprint of that connection's certificate. */
async function ask(agent: Agent, server: RunningServer): Promise<string> {
  const asked = request(`${server.http}/app/api/meta`, { agent, rejectUnauthorized: false }).end()
  const [answer] = await once(asked, 'response')
  answer.resume()
  await once(answer, 'end')
  return (asked.socket as TLSSocket).getPeerCertificate().fingerprint256
}

t.test('SIGHUP renews both certificates and drops no connection', async t => {
  const { server, put } = await startWithTls(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 1, maxCachedSessions: 0 })
  const client = new RegisterClient(
    `localhost:${portOf(server.grpc)}`,
    grpc.credentials.createSsl(Buffer.from(tlsFile('ca.crt'))),
  )
  const socket = new WebSocket(`${server.http.replace('https', 'wss')}/ws`, ['v12.stomp'], {
    rejectUnauthorized: false,
  })
  t.teardown(() => {
    agent.destroy()
    client.close()
    socket.terminate()
  })
  await once(socket, 'open')
  const old = fingerprintOf('server.crt')
  t.equal(await ask(agent, server), old)
  await client.register(1n, 1n, freshPublicKey())

  put('other')
  await renew(server, 'certificates-renewed')
  const renewed = fingerprintOf('other.crt')
  t.not(renewed, old)
  t.equal(await shownAt(server.http), renewed, 'the public port')
  t.equal(await shownAt(server.grpc), renewed, 'gRPC')
  t.equal(await ask(agent, server), old, 'an open connection is served')
  await client.register(2n, 1n, freshPublicKey())
  socket.ping()
  await once(socket, 'pong')
  t.equal(await shownAt(server.http), renewed, 'at each new connection')
})

t.test('a certificate without its key is logged, and the one that is served stays', async t => {
  const { server, put } = await startWithTls(t)
  const certificate = join(t.testdirName, 'tls.crt')
  copyFileSync(tlsPath('other.crt'), certificate)
  await renew(server, 'certificates-not-renewed')
  t.match(server.stderr(), /CALLSIGN_TLS_CERT and CALLSIGN_TLS_KEY are not a certificate and its key/)
  for (const address of [server.http, server.grpc])
    t.equal(await shownAt(address), fingerprintOf('server.crt'))
  put('other')
  await renew(server, 'certificates-renewed')
  for (const address of [server.http, server.grpc])
    t.equal(await shownAt(address), fingerprintOf('other.crt'))
  t.equal(await server.end(), 0)
})

t.test('ciphers stay what they were', async t => {
  const { server } = await startWithTls(t)
  await renew(server, 'certificates-renewed')
  for (const address of [server.http, server.grpc]) t.same(await weakCiphersOf(portOf(address)), [], address)
})

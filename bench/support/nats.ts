/**
 * NATS over WebSocket, as a peer: one server on loopback with one user, who may use the bench's topics. Its password is
 * kept in plain, since bcrypt, which NATS advises, takes a tenth of a second for each connect.
 */

import { randomBytes } from 'node:crypto'
import type { BenchmarkContext } from './benchmark.ts'
import { collectGoGarbage, installGoProgram, startWithConfig } from './go-program.ts'
import type { MessagingPeer } from './messaging-peer.ts'
import { freePort } from './peer.ts'

/** Starts it for the time of the benchmark; undefined when peers are not wanted or it cannot be built. */
export async function openNats(context: BenchmarkContext): Promise<MessagingPeer | undefined> {
  const path = await installGoProgram(context, MODULE)
  if (path === undefined) return undefined
  const [port, tcpPort, profilePort] = [await freePort(), await freePort(), await freePort()]
  const password = randomBytes(24).toString('hex')
  const config = `listen: 127.0.0.1:${tcpPort}
    websocket { listen: "127.0.0.1:${port}", no_tls: true }
    prof_port: ${profilePort}
    authorization {
      users: [{ user: ${USER}, password: ${password}, permissions: { publish: [${SUBJECTS}], subscribe: [${SUBJECTS}] } }]
    }\n`
  const server = await startWithConfig(context, path, { name: 'nats.conf', text: config }, port)
  const login = [
    JSON.stringify({ user: USER, pass: password, verbose: false, pedantic: false, lang: 'bench' }),
  ]
  return {
    name: `NATS ${MODULE.version.slice(1)}`,
    pid: server.pid,
    port,
    protocol: 'nats',
    loginOf: () => login,
    collectGarbage: () => collectGoGarbage(profilePort),
    end: () => server.end(),
  }
}

const MODULE = {
  name: 'NATS',
  path: 'github.com/nats-io/nats-server/v2',
  version: 'v2.15.2',
  file: 'nats-server',
}
const USER = 'bench'
const SUBJECTS = ['/topic/dev', '/topic/calls', '/topic/contacts', '/topic/account'].map(
  name => `"${name}.>"`,
)

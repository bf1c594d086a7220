/**
 * Centrifugo over WebSocket, as a peer: one node on loopback that keeps everything in memory. Each device has a JSON Web
 * Token of its own, signed by HMAC, and clients may subscribe to channels and publish to those that they have subscribed to.
 */

import { createHmac, randomBytes } from 'node:crypto'
import type { BenchmarkContext } from './benchmark.ts'
import { collectGoGarbage, installGoProgram, startWithConfig } from './go-program.ts'
import type { MessagingPeer } from './messaging-peer.ts'
import { freePort } from './peer.ts'

/** Starts it for the time of the benchmark; undefined when peers are not wanted or it cannot be built. */
export async function openCentrifugo(context: BenchmarkContext): Promise<MessagingPeer | undefined> {
  const path = await installGoProgram(context, MODULE)
  if (path === undefined) return undefined
  const port = await freePort()
  const secret = randomBytes(32).toString('hex')
  const config = JSON.stringify({
    http_server: { address: '127.0.0.1', port },
    log: { level: 'error' },
    client: { token: { hmac_secret_key: secret }, allowed_origins: [] },
    channel: {
      without_namespace: { allow_subscribe_for_client: true, allow_publish_for_subscriber: true },
    },
    debug: { enabled: true },
  })
  const server = await startWithConfig(context, path, { name: 'centrifugo.json', text: config }, port)
  return {
    name: `Centrifugo ${MODULE.version.slice(1)}`,
    pid: server.pid,
    port,
    protocol: 'centrifugo',
    loginOf: device => [tokenOf(`device-${device}`, secret)],
    collectGarbage: () => collectGoGarbage(port),
    end: () => server.end(),
  }
}

function tokenOf(sub: string, secret: string): string {
  const [head, claims] = [
    { alg: 'HS256', typ: 'JWT' },
    { sub, exp: Math.floor(Date.now() / 1000) + TOKEN_SECONDS },
  ].map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
  const signed = `${head}.${claims}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

const MODULE = {
  name: 'Centrifugo',
  path: 'github.com/centrifugal/centrifugo/v6',
  version: 'v6.9.1',
  file: 'centrifugo',
}
const TOKEN_SECONDS = 24 * 3_600

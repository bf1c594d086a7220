/** A LiveKit as it is watched, with a server in its place that refuses. */

import { createSecretKey, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { GatewayHealth } from '../../../src/media/gateway-health.ts'
import { createLogger } from '../../../src/operations/log.ts'
import { Metrics } from '../../../src/operations/metrics.ts'
import { LiveKitHost } from '../../../src/server/writer/livekit-host.ts'

t.test('looks that go on being refused are logged once', async t => {
  const server = createServer((_, response) => {
    response.statusCode = 401
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const lines: string[] = []
  const logger = createLogger('silent')
  logger.warn = ({ event }: { event: string }) => void lines.push(event)
  const turns: string[] = []
  const monotonicMs = () => performance.now()
  const health = new GatewayHealth(monotonicMs, (isUp, reason) => void turns.push(isUp ? 'back' : reason))
  const host = new LiveKitHost(
    { url, apiUrl: url, apiKey: 'a', apiSecret: 'b'.repeat(32), keySize: 256 },
    {
      ...{ health, onMissing: () => undefined, onFeeds: () => undefined },
      calls: { rooms: () => [], callInRoom: () => undefined },
    },
    {
      secrets: { mediaRoom: createSecretKey(randomBytes(32)) },
      ...{ monotonicMs, metrics: new Metrics(), logger },
    },
  )
  for (let at = 0; at < 3; at++) await host.look()
  t.same(turns, ['refused'])
  t.same(lines, ['media-look-failed'])
})

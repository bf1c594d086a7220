/** A LiveKit as it is watched, with a server in its place that refuses what it is asked. */

import { createSecretKey, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { GatewayHealth } from '../../../src/media/gateway-health.ts'
import type { Logger } from '../../../src/operations/log.ts'
import { Metrics } from '../../../src/operations/metrics.ts'
import { LiveKitHost } from '../../../src/server/writer/livekit-host.ts'
import { keyed } from '../../support/livekit-settings.ts'

for (const status of [401, 500])
  t.test(`looks that go on failing with status ${status} are logged once`, async t => {
    const failure = { status, body: { code: 'internal' } as object }
    let answer = failure
    const server = createServer((request, response) => {
      request.resume()
      response.writeHead(answer.status).end(JSON.stringify(answer.body))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const logged: unknown[] = []
    const logger = { warn: ({ event, reason }: Record<string, unknown>) => logged.push([event, reason]) }
    const host = new LiveKitHost(
      keyed(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
      {
        health: new GatewayHealth(
          () => performance.now(),
          () => undefined,
        ),
        ...{ onMissing: () => undefined, onFeeds: () => undefined },
        calls: { rooms: () => [], callInRoom: () => undefined },
      },
      {
        secrets: { mediaRoom: createSecretKey(randomBytes(32)) },
        ...{ monotonicMs: () => performance.now(), metrics: new Metrics() },
        logger: logger as unknown as Logger,
      },
    )
    const failed = ['media-look-failed', 'refused']
    await host.look()
    await host.look()
    t.same(logged, [failed])
    answer = { status: 200, body: { rooms: [] } }
    await host.look()
    answer = failure
    await host.look()
    t.same(logged, [failed, failed])
  })

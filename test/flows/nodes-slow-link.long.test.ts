/** A node on a slow link: the rest of the cluster goes on at its own pace. */

import t from 'tap'
import { READ_LEASE_MS } from '../../src/fronts/messages.ts'
import { DroppingProxy } from '../support/dropping-proxy.ts'
import { Cluster, eventually, until } from '../support/nodes.ts'
import { skipWithoutPostgres as skip } from '../support/postgres.ts'
import { Rename } from '../support/rename.ts'

t.test('a slow link between two nodes slows changes for a moment only', { skip }, async t => {
  const cluster = await Cluster.start(t, { running: 1 })
  const { one, two } = cluster
  const toWriter = await DroppingProxy.open(t, one.port)
  await cluster.leadTo(one, toWriter.port)
  await two.start()
  const [front] = await eventually(async () => {
    const [lag] = await one.frontFigures('callsign_front_lag_seconds').then(lags => [...lags].filter(isOfTwo))
    if (lag === undefined) throw new Error('not linked yet')
    return lag
  })
  const rename = await Rename.begin(t, one, two)
  await rename.more(5)
  toWriter.slow(400)
  const lag = async () => (await one.frontFigures('callsign_front_lag_seconds')).get(front) ?? 0
  const waited = async () => (await one.frontFigures('callsign_front_waited_seconds_total')).get(front)
  await until(async () => (await lag()) > 0.5)
  // As long as its last read lease may have lasted.
  await rename.during(READ_LEASE_MS)
  const before = await waited()
  await rename.more(30)
  t.equal(await waited(), before, 'no change has waited for it')
  t.ok(await two.isReady(), 'it reads by asking PostgreSQL')
  toWriter.slow(0)
  await until(async () => (await lag()) < 0.15)
  await rename.more(10)
  await rename.end()
  t.same(rename.stale, [])
})

function isOfTwo([front]: readonly [string, number]): boolean {
  return front.startsWith('two/front')
}

/** A node on a slow or dead link to the writer: the rest of the cluster goes on at its own pace, and no log shrinks. */

import t, { type Test } from 'tap'
import { READ_LEASE_MS } from '../../src/fronts/messages.ts'
import { DroppingProxy } from '../support/dropping-proxy.ts'
import { Cluster, eventually, register, type TestNode, until } from '../support/nodes.ts'
import { skipWithoutPostgres as skip } from '../support/postgres.ts'
import { Rename } from '../support/rename.ts'

t.test('a slow link between two nodes slows changes for a moment only', { skip }, async t => {
  const { one, two, toWriter, front } = await startLinked(t)
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

t.test(
  'a node that reaches PostgreSQL and not the writer shows no checkpoint before the rest',
  { skip },
  async t => {
    const { one, two, toWriter } = await startLinked(t)
    for (let cuts = 0; cuts < 3; cuts++) {
      // It has a read lease then, which the writer waits for.
      await until(
        async () => ((await one.frontFigures('callsign_front_lag_seconds')).get('two/front-1') ?? 1) < 0.15,
      )
      await eventually(() => sizeAt(two))
      const before = await sizeAt(one)
      toWriter.cut()
      const registered = register(one)
      for (let shown = before; shown === before; ) {
        const atTwo = await eventually(() => sizeAt(two))
        shown = await eventually(() => sizeAt(one))
        if (shown < atTwo) t.fail(`${atTwo} at two, then ${shown} at one`)
      }
      await registered
      toWriter.mend()
    }
    t.pass('never a smaller one')
  },
)

async function sizeAt({ server }: TestNode): Promise<number> {
  const answer = await fetch(`${server.http}/checkpoint`)
  if (!answer.ok) throw new Error('not now')
  return Number((await answer.text()).split('\n')[1])
}

/** Two nodes, and the second one's way to the first, which writes. */
async function startLinked(t: Test) {
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
  return { one, two, toWriter, front }
}

function isOfTwo([front]: readonly [string, number]): boolean {
  return front.startsWith('two/front')
}

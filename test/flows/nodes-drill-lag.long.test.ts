/** The drill of a promoted standby finds out that it lagged. */

import t from 'tap'
import { commands, drill, nodeOf } from '../support/drill-program.ts'
import { FaultyCluster } from '../support/faulty-cluster.ts'
import { checkpointAt } from '../support/node-load.ts'
import { until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'

t.test(
  'a standby that lacks what was acknowledged is promoted: that is found out, and no node shows another log',
  { skip: skipWithoutPostgres },
  async t => {
    const cluster = await FaultyCluster.start(t, { isSynchronous: false })
    const { server } = nodeOf(cluster, 'one')
    const args = await commands(t, {
      promote: async () => {
        cluster.replication.cut()
        const { treeSize } = await checkpointAt(server)
        await until(async () => (await checkpointAt(server)).treeSize > treeSize + 2)
        await cluster.promote()
      },
    })
    const within = ['--writer-within', '15', '--back-within', '15']
    const { code, lines, stdout, stderr } = await drill(cluster.nodes, [
      '--drills',
      'promote',
      ...within,
      ...args,
    ])
    t.equal(code, 1, stderr)
    const found = new Map(lines.map(line => [line.check, line]))
    t.equal(found.get('return')?.ok, false, stdout)
    t.notMatch(found.get('log')?.detail, /a fork/, stdout)
  },
)

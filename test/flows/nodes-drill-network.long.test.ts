/** The drills of paused processes, networks that are slow or cut one way, and standbys that are promoted. */

import t from 'tap'
import { commands, drill, nodeOf, PATIENT } from '../support/drill-program.ts'
import { FaultyCluster } from '../support/faulty-cluster.ts'
import { checkpointAt } from '../support/node-load.ts'
import { until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'

t.test(
  'a cluster passes: a process that does not run, a network that is slow or loses one way, a promoted standby',
  { skip: skipWithoutPostgres },
  async t => {
    const cluster = await FaultyCluster.start(t)
    const args = await commands(t, {
      pause: name => nodeOf(cluster, name).signalAll('SIGSTOP'),
      resume: name => nodeOf(cluster, name).signalAll('SIGCONT'),
      slow: name => {
        for (const link of cluster.linksOf(nodeOf(cluster, name))) link.slow(400)
      },
      cut: (name, direction) => {
        cluster.holdLinks(nodeOf(cluster, name), direction === 'in' ? 'in' : 'out')
        cluster.toDatabase(nodeOf(cluster, name)).hold(direction === 'in' ? 'from' : 'to')
      },
      mend: name => {
        const node = nodeOf(cluster, name)
        for (const proxy of [...cluster.linksOf(node), cluster.toDatabase(node)]) proxy.mend()
      },
      promote: () => cluster.promote(),
    })
    const drills = ['--drills', 'pause,slow,cut-in,cut-out,promote']
    const { code, lines, stdout, stderr } = await drill(cluster.nodes, [...drills, ...PATIENT, ...args])
    t.same(
      lines.filter(({ ok }) => !ok),
      [],
      stderr,
    )
    t.equal(code, 0, stdout + stderr)
    const found = ['copies', 'calls', 'keys', 'messages', 'log']
    const checksOf = (name: string) => lines.filter(line => line.drill === name).map(({ check }) => check)
    t.same(checksOf('pause'), ['writer', 'first change', 'return', 'reads', ...found])
    t.same(checksOf('slow'), ['pace', 'return', 'reads', ...found])
    t.same(checksOf('cut-in'), ['first change', 'return', 'reads', ...found])
    t.same(checksOf('cut-out'), ['first change', 'return', 'reads', ...found])
    t.same(checksOf('promote'), ['first change', 'return', ...found])
  },
)

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
    const within = ['--writer-within', '60', '--back-within', '15']
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

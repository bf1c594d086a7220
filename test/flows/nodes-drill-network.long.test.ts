/** The drills of paused processes, networks that are slow or cut one way, and a standby that is promoted. */

import t from 'tap'
import { assertPassed, commands, drill, FOUND, nodeOf, PATIENT } from '../support/drill-program.ts'
import { FaultyCluster } from '../support/faulty-cluster.ts'
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
    const drills = ['--drills', 'pause,slow,cut-out,promote']
    const outcome = await drill(cluster.nodes, [...drills, ...PATIENT, ...args])
    const checksOf = assertPassed(t, outcome)
    t.same(checksOf('pause'), ['writer', 'first change', 'return', 'reads', ...FOUND])
    t.same(checksOf('slow'), ['pace', 'return', 'reads', ...FOUND])
    t.same(checksOf('cut-out'), ['first change', 'return', 'reads', ...FOUND])
    t.same(checksOf('promote'), ['first change', 'return', ...FOUND])
  },
)

/** The drill against two nodes on one PostgreSQL, as an operator runs it; and what it has to notice. */

import { rmSync } from 'node:fs'
import t from 'tap'
import { assertPassed, commands, drill, FOUND, nodeOf, PATIENT } from '../support/drill-program.ts'
import { Cluster } from '../support/nodes.ts'
import { skipWithoutPostgres, startPostgres } from '../support/postgres.ts'

t.test(
  'a cluster passes: each failure, and all that was acknowledged',
  { skip: skipWithoutPostgres },
  async t => {
    const postgres = await startPostgres(t)
    const cluster = await Cluster.start(t, { postgres, keepsAddresses: true })
    for (const node of cluster.nodes) node.supervise()
    const args = await commands(t, {
      kill: async name => nodeOf(cluster, name).kill('SIGKILL'),
      stop: async name => nodeOf(cluster, name).kill('SIGTERM'),
      'restart-postgres': async () => {
        await postgres.stop()
        await postgres.start()
      },
    })
    const outcome = await drill(cluster.nodes, [...PATIENT, ...args])
    const checksOf = assertPassed(t, outcome)
    const { lines, stdout, stderr } = outcome
    t.same(checksOf('writer'), ['writer', 'first change', 'return', 'reads', ...FOUND])
    t.same(checksOf('other'), ['first change', 'return', 'reads', ...FOUND])
    t.same(checksOf('stop'), ['writer', 'first change', 'return', 'reads', ...FOUND])
    t.same(checksOf('postgres'), ['first change', 'return', ...FOUND])
    t.match(lines.find(({ check }) => check === 'writer')?.detail, /^(two instead of one|one again) after/)
    t.match(lines.find(({ check }) => check === 'calls')?.detail, /; 1 went on through the failure$/)
    for (const secret of ['424242', 'kat_', 'krt_']) t.notOk((stdout + stderr).includes(secret), secret)
  },
)

t.test(
  'production is left alone, and a node that does not come back is found out',
  { skip: skipWithoutPostgres },
  async t => {
    const cluster = await Cluster.start(t, { keepsAddresses: true })
    const args = await commands(t, { kill: async name => nodeOf(cluster, name).kill('SIGKILL') })
    const refused = await drill(cluster.nodes, [...args, '--staging', 'another/log'])
    t.equal(refused.code, 2)
    t.equal(refused.stderr, 'drill: --staging another/log is not the log of these nodes\n')
    const elsewhere = await drill(cluster.nodes, args, '[::ffff:127.0.0.1]')
    t.equal(elsewhere.code, 2)
    t.match(elsewhere.stderr, /^drill: this may be production: one is at http:.*--staging CALLSIGN_ORIGIN\n$/)
    const { code, lines } = await drill(cluster.nodes, [
      ...['--drills', 'writer,other', '--writer-within', '60', '--back-within', '1'],
      ...args,
    ])
    t.equal(code, 1)
    t.match(
      lines.find(({ check }) => check === 'return'),
      {
        ok: false,
        detail: /^one is not back after 1 s: one does not answer, /,
      },
    )
    t.same(new Set(lines.map(line => line.drill)), new Set(['writer']), 'the next drill does not begin')
  },
)

t.test(
  'a cluster that loses what it has acknowledged is found out',
  { skip: skipWithoutPostgres },
  async t => {
    const cluster = await Cluster.start(t, { keepsAddresses: true })
    const args = await commands(t, {
      kill: async () => {
        await Promise.all(cluster.nodes.map(node => node.end('SIGKILL')))
        await cluster.sql('drop schema callsign cascade')
        for (const node of cluster.nodes) {
          rmSync(node.dataFolder, { recursive: true })
          await node.start()
        }
      },
    })
    const { code, lines, stderr } = await drill(cluster.nodes, ['--drills', 'writer', ...PATIENT, ...args])
    t.equal(code, 1, stderr)
    const failed = new Map(lines.filter(({ ok }) => !ok).map(({ check, detail }) => [check, detail]))
    t.match(failed.get('calls'), /call \d+ answers 40[14] /)
    t.match(failed.get('keys'), /key of \d+_\d+ at (one|two): /)
    t.match(failed.get('log'), /does not begin with that of size|is below \d+, which was seen before/)
  },
)

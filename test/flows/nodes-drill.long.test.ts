/** The drill against two nodes on one PostgreSQL, as an operator runs it; and what it has to notice. */

import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { FaultyCluster } from '../support/faulty-cluster.ts'
import { checkpointAt } from '../support/node-load.ts'
import { Cluster, type TestNode, until } from '../support/nodes.ts'
import { skipWithoutPostgres, startPostgres } from '../support/postgres.ts'
import { type Outcome, runProgram, startedProgram } from '../support/programs.ts'

const IDENTIFIERS = { 'person0@example.org': '424242', 'person1@example.org': '424242' }
/** How long a node takes is not what these tests are about. */
const PATIENT = ['--writer-within', '60', '--back-within', '120']

interface Line {
  readonly drill: string
  readonly check: string
  readonly ok: boolean
  readonly detail: string
}

/** Commands that have this test act on a node of its own. */
async function commands(
  t: Test,
  acts: Readonly<Record<string, (node: string, direction: string) => Promise<void> | void>>,
) {
  const onRequest: RequestListener = async ({ url = '' }, response) => {
    const [, act = '', node = '', direction = ''] = url.split('/')
    await acts[act]!(node, direction)
    response.end()
  }
  const server = createServer(onRequest).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return Object.keys(acts).flatMap(act => [
    `--${act}`,
    `"${process.execPath}" -e "fetch('http://127.0.0.1:${port}/${act}/{node}/{direction}').then(r => process.exit(r.ok ? 0 : 1))"`,
  ])
}

async function drill(
  nodes: readonly TestNode[],
  args: readonly string[],
  host = '127.0.0.1',
): Promise<Outcome & { lines: Line[] }> {
  const named = nodes.flatMap(({ name, server }) => [
    '--node',
    `${name}=${server.http.replace('127.0.0.1', host)},${server.admin},${server.grpc}`,
  ])
  const outcome = await runProgram(
    process.execPath,
    [startedProgram('scripts/callsign'), 'drill', '--json', ...named, ...args],
    { environment: { CALLSIGN_TEST_IDENTIFIERS: JSON.stringify(IDENTIFIERS) } },
  )
  const lines = outcome.stdout
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
  return { ...outcome, lines }
}

function nodeOf({ nodes }: Pick<Cluster, 'nodes'>, name: string): TestNode {
  return nodes.find(node => node.name === name)!
}

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
    const { code, lines, stdout, stderr } = await drill(cluster.nodes, [...PATIENT, ...args])
    t.same(
      lines.filter(({ ok }) => !ok),
      [],
      stderr,
    )
    t.equal(code, 0, stdout + stderr)
    const found = ['copies', 'calls', 'keys', 'messages', 'log']
    const checksOf = (name: string) => lines.filter(line => line.drill === name).map(({ check }) => check)
    t.same(checksOf('writer'), ['writer', 'first change', 'return', 'reads', ...found])
    t.same(checksOf('other'), ['first change', 'return', 'reads', ...found])
    t.same(checksOf('stop'), ['writer', 'first change', 'return', 'reads', ...found])
    t.same(checksOf('postgres'), ['first change', 'return', ...found])
    t.match(lines.find(({ check }) => check === 'writer')?.detail, /^(two instead of one|one again) after/)
    t.match(lines.find(({ check }) => check === 'calls')?.detail, /; 1 went on through the failure$/)
    for (const secret of ['424242', 'kat_', 'krt_']) t.notOk((stdout + stderr).includes(secret), secret)
  },
)

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

/**
 * The promotion of a standby that lagged: PostgreSQL has lost acknowledged changes that nodes have shown. They refuse to go
 * on from there, and say how nothing is lost.
 */

import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runScript } from '../support/commands.ts'
import { FaultyCluster } from '../support/faulty-cluster.ts'
import { checkpointAt } from '../support/node-load.ts'
import { eventually, finds, type RegisteredKey, register, type TestNode, until } from '../support/nodes.ts'
import { skipWithoutPostgres as skip } from '../support/postgres.ts'
import { spawnServer } from '../support/server.ts'

t.test('a standby that lagged is promoted', { skip }, async t => {
  const faulty = await FaultyCluster.start(t, { isSynchronous: false })
  const [one, two] = faulty.nodes as [TestNode, TestNode]
  const keys: RegisteredKey[] = [await register(one)]
  faulty.replication.hold('from')
  for (let count = 0; count < KEYS; count++) keys.push(await register(one))
  await finds(two, keys)
  const text = await (await fetch(`${two.server.http}/checkpoint`)).text()
  const shown = await checkpointAt(two.server)

  await one.end('SIGKILL')
  await faulty.promote()
  await two.said('ledger-refused')
  await until(async () => !(await two.isReady()))
  t.match(two.server.stderr(), /it has \d entries, and this node has shown its checkpoint of \d/)
  t.match(two.server.stderr(), /callsign migrate --to postgres/)
  t.notOk(two.hasSaid('writer'))
  const epoch = async () =>
    (await faulty.sql<{ epoch: string }>('select epoch from callsign.writer'))[0]!.epoch
  const before = await epoch()

  const note = join(two.dataFolder, '..', 'head')
  writeFileSync(note, text)
  const empty = {
    dataFolder: join(two.dataFolder, '..', 'empty'),
    environment: { ...one.environment, CALLSIGN_LOG_HEAD_FILE: note },
  }
  for (const [what, options] of Object.entries({
    'the node that wrote': one,
    'a node without a copy': empty,
  })) {
    const { process, stderr } = spawnServer(options)
    const ended = once(process, 'close')
    await Promise.race([ended, until(async () => /this node has shown its checkpoint/.test(stderr()))])
    process.kill('SIGKILL')
    await ended
    t.match(stderr(), /it has \d entries, and this node has shown its checkpoint of \d/, what)
  }
  t.equal(await epoch(), before, 'nobody has become the writer')
  await two.end()

  t.test('the copy of a node is the way back', async t => {
    const [, database] = /\/(\w+)$/.exec(faulty.cluster.databaseUrl)!
    const url = faulty.primary.urlOf(database!)
    await faulty.sql('drop schema callsign cascade')
    const moved = await runScript('migrate', ['--to', 'postgres', '--data-dir', two.dataFolder], {
      CALLSIGN_DATABASE_URL: url,
    })
    t.equal(moved.code, 0, moved.stderr)
    // Its copy is of the changes that are lost: it ends, and is filled anew.
    for (const node of [two, one]) await eventually(() => node.start())
    for (const node of [one, two]) await finds(node, keys)
    t.ok((await checkpointAt(one.server)).treeSize >= shown.treeSize)
    await finds(two, [await register(one)])
  })
})

const KEYS = 5

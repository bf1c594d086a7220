/**
 * The copy of a node, which is written without syncs: a killed node goes on with it, a stopped machine is noticed, and
 * nothing takes it for the store of one machine.
 */

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readBootId } from '../../src/store/engine/unsynced-mark.ts'
import { runScript } from '../support/commands.ts'
import { Cluster, finds, register, type TestNode } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'

const OTHER_BOOT = '11111111-2222-3333-4444-555555555555\n'
const skip = skipWithoutPostgres || (readBootId() === undefined && 'the system has no boot id')

function markOf({ dataFolder }: TestNode): string {
  return join(dataFolder, 'store/unsynced')
}

t.test('a killed node goes on with its copy', { skip }, async t => {
  const { one, two } = await Cluster.start(t)
  const keys = [await register(one)]
  await finds(two, keys)
  await two.end('SIGKILL')
  t.equal(readFileSync(markOf(two), 'latin1').trim(), readBootId(), 'the copy is marked')
  keys.push(await register(one))
  await two.start()
  await finds(two, keys)
  t.notOk(two.hasSaid('copy-filled'))

  t.equal(await two.end(), 0)
  t.notOk(existsSync(markOf(two)), 'a clean stop leaves no mark')
  await one.end('SIGKILL')
  await two.start()
  await one.start()
  await finds(one, keys)
  t.notOk(one.hasSaid('copy-filled'), 'the same goes for a writer')
})

t.test('after the machine has stopped a node fills its copy anew', { skip }, async t => {
  const cluster = await Cluster.start(t)
  const { one, two } = cluster
  const keys = [await register(one)]
  await finds(two, keys)
  for (const mark of [OTHER_BOOT, '']) {
    await two.end('SIGKILL')
    writeFileSync(markOf(two), mark)
    // A crash may leave only a part of a file on disk.
    writeFileSync(join(two.dataFolder, 'store/data.mdb'), 'torn')
    await two.start()
    t.ok(two.hasSaid('copy-removed'))
    t.ok(two.hasSaid('copy-filled'))
    await finds(two, keys)
  }
})

t.test('no command takes the copy of a killed node for a store', { skip }, async t => {
  const cluster = await Cluster.start(t)
  const { one, two } = cluster
  const keys = [await register(one)]
  await finds(two, keys)
  await two.end('SIGKILL')
  await one.end()
  const { dataFolder } = two
  const database = { CALLSIGN_DATABASE_URL: cluster.databaseUrl }
  const backup = join(dataFolder, '../backup')
  t.equal((await runScript('backup', ['--data-dir', dataFolder, '--to', backup])).code, 0)
  t.notOk(existsSync(join(backup, 'store/unsynced')), 'a backup is on disk')
  const moved = await runScript('migrate', ['--to', 'lmdb', '--data-dir', dataFolder], database)
  t.match(moved, { code: 2, stderr: /has the copy of a node: name an empty folder/ })
  t.notOk(existsSync(markOf(two)), 'a command that may write syncs it first')
  await t.rejects(
    two.start({ environment: { CALLSIGN_DATABASE_URL: '', CALLSIGN_NODE_HOST: '' } }),
    /has a copy of the ledger that several nodes share/,
  )

  writeFileSync(markOf(two), OTHER_BOOT)
  const commands = [
    ['fsck', '--data-dir', dataFolder],
    ['fsck', '--data-dir', dataFolder, '--repair'],
    ['backup', '--data-dir', dataFolder, '--to', join(dataFolder, '../none')],
    ['migrate', '--to', 'lmdb', '--data-dir', dataFolder],
    ['migrate', '--to', 'postgres', '--data-dir', dataFolder],
  ] as const
  for (const [name, ...flags] of commands) {
    const outcome = await runScript(name, flags, database)
    t.match(outcome, { code: 2, stderr: /the machine stopped before it was on disk: remove/ }, name)
  }
  t.ok(existsSync(markOf(two)), 'the mark stays')
})

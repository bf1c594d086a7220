/**
 * D7: a backup that is taken while everybody calls, writes and signs up holds all that was acknowledged before it began,
 * and of nothing only one half; a restore gives back the backup, row by row; and devices notice that
 * their inboxes have begun anew.
 */

import { cpSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { runScript } from '../support/commands.ts'
import { KillLoad } from '../support/kill-load.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { runProgram, startedProgram } from '../support/programs.ts'
import { SocketClient } from '../support/socket-client.ts'
import { auditStore } from '../support/store-audit.ts'
import { tableDigests } from '../support/test-api.ts'

/** Resolves with the checkpoint that the copy has. */
async function backUp(dataFolder: string, to: string): Promise<string> {
  const { code, lines, stderr } = await runScript('backup', ['--data-dir', dataFolder, '--to', to])
  if (code !== 0) throw new Error(`backup ends with ${code}: ${stderr}`)
  return String(lines[0]!.checkpoint)
}

/** Puts a backup into a new data directory, with the keys of the old one. */
async function restore(from: string, dataFolder: string, keysFrom: string): Promise<void> {
  const { code, stderr } = await runScript('restore', ['--from', from, '--data-dir', dataFolder])
  if (code !== 0) throw new Error(`restore ends with ${code}: ${stderr}`)
  cpSync(join(keysFrom, 'development-keys.env'), join(dataFolder, 'development-keys.env'))
}

async function digestsOf(dataFolder: string): Promise<Record<string, string>> {
  const database = LmdbStore.openReadOnly(dataFolder)
  try {
    return tableDigests(database)
  } finally {
    await database.close()
  }
}

/** Starts the server on a data directory that was restored, or on any. */
async function startOn(load: KillLoad, dataFolder: string, checkpoint?: string): Promise<void> {
  const file = `${dataFolder}.checkpoint`
  if (checkpoint !== undefined) writeFileSync(file, checkpoint)
  await load.startServer({ dataFolder, args: checkpoint === undefined ? [] : ['--known-checkpoint', file] })
}

async function epochOf({ server, person }: KillLoad): Promise<string | undefined> {
  const client = await SocketClient.connect('tcp', server.stompTcp!, person.app.accessToken!)
  client.destroy()
  return headerOf(client.connected, 'inbox-epoch')
}

t.test('a backup that finds no room names its folder, and leaves none of it', async t => {
  const folder = t.testdir({ to: {} })
  const [dataFolder, to] = [join(folder, 'data'), join(folder, 'to')]
  await LmdbStore.open(dataFolder).close()
  const script = startedProgram('scripts/backup')
  const full = ['-c', 'ulimit -f 4; exec "$@"', '-', process.execPath, script]
  const { code, stderr } = await runProgram('/bin/sh', [...full, '--data-dir', dataFolder, '--to', to])
  t.equal(code, 2)
  const sentence = `backup: the copy could not be written into ${to}/unfinished/store: File too large\n`
  t.equal(stderr, sentence)
  t.same(readdirSync(to), [])
})

t.test('a backup under load is whole and complete, and a restore gives it back', async t => {
  const folder = t.testdir()
  const at = (name: string) => join(folder, name)
  const load = await KillLoad.start(at('data'))
  t.teardown(() => load.end())
  const epoch = await epochOf(load)
  const olderCheckpoint = await backUp(at('data'), at('older'))
  let known = load.known()
  let checkpoint = ''
  let during = 0
  await load.runWhile(200, async () => {
    known = load.known()
    during = load.counts.acknowledgements
    checkpoint = await backUp(at('data'), at('backup'))
    during = load.counts.acknowledgements - during
  })
  t.ok(during > 0, `${during} things were acknowledged meanwhile`)
  await backUp(at('data'), at('quiet'))
  const digests = await digestsOf(at('data'))
  t.same(await digestsOf(at('quiet')), digests, 'nothing else is in a backup that nobody wrote beside')

  await restore(at('backup'), at('restored'), at('data'))
  t.same(await digestsOf(at('restored')), await digestsOf(at('backup')))
  const { faults, counts } = await auditStore(at('restored'))
  t.same(faults, [], `whole are ${JSON.stringify(counts)}`)

  await startOn(load, at('restored'), checkpoint)
  t.same(await load.lost(known), [], `${known.claims.size} things were acknowledged before`)
  const newEpoch = await epochOf(load)
  t.not(newEpoch, epoch, 'inboxes begin anew')
  await load.end()
  await startOn(load, at('restored'))
  t.equal(await epochOf(load), newEpoch, 'once')
  await load.end()

  await restore(at('older'), at('too-old'), at('data'))
  await startOn(load, at('too-old'), olderCheckpoint)
  const missed = await load.lost(known)
  t.ok(missed.length > 0, `positive control: ${missed.length} things are missed in an older backup`)
  const tables = Object.entries(await digestsOf(at('older'))).filter(
    ([name, digest]) => digest !== digests[name],
  )
  const changed = tables.map(([name]) => name)
  t.same(
    ['calls-ended', 'inbox-heads', 'log-head', 'users'].filter(name => !changed.includes(name)),
    [],
  )
})

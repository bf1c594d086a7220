/** The roll-back guard over real stores: the copies of a log that may go on, and the refusals of the rest. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { writeRestoreMarker } from '../../src/keyserver/restore-marker.ts'
import { RollBackGuard } from '../../src/keyserver/roll-back-guard.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { createLog, ExpectedLog, freshKeys, LogWriter, SIGNER } from '../support/stored-log.ts'

const SIZE = 700
const MARKER = { restoredAt: '2026-01-02T03:04:05Z', backup: '/backups/monday' }

interface Stored {
  readonly folder: string
  readonly dataFolder: string
  readonly store: LogStore
  readonly log: ExpectedLog
}

async function storeLog(t: Test): Promise<Stored> {
  const folder = t.testdir()
  const dataFolder = join(folder, 'data')
  const database = LmdbStore.open(dataFolder)
  t.teardown(() => database.close())
  const store = new LogStore(database)
  await createLog(store)
  const writer = new LogWriter(store, new ExpectedLog())
  await writer.append(freshKeys(0, SIZE))
  return { folder, dataFolder, store, log: writer.expected }
}

/** Writes the checkpoint of a log's first entries, and gives the path. */
function keepCheckpoint(folder: string, log: ExpectedLog, treeSize: number): string {
  const path = join(folder, `checkpoint-${treeSize}`)
  writeFileSync(path, signCheckpoint({ treeSize, rootHash: log.tree.root(0, treeSize) }, SIGNER))
  return path
}

type Known = Partial<Record<'headFile' | 'knownCheckpoint', string>>

function guardOf(dataFolder: string, known: Known, isFrozen = false): RollBackGuard {
  return new RollBackGuard({
    dataFolder,
    verifier: SIGNER,
    headFile: known.headFile,
    knownCheckpoint: known.knownCheckpoint,
    isFrozen,
  })
}

t.test('a log goes on from every checkpoint that it extends', async t => {
  const { folder, dataFolder, store, log } = await storeLog(t)
  const refused: string[] = []
  for (const size of [0, 1, 2, 255, 256, 257, 511, 512, 640, 699, 700]) {
    const path = keepCheckpoint(folder, log, size)
    for (const known of [{ headFile: path }, { knownCheckpoint: path }]) {
      try {
        guardOf(dataFolder, known).assertExtends(store)
      } catch (error) {
        refused.push(`${size}: ${error}`)
      }
    }
  }
  t.same(refused, [])
  t.doesNotThrow(() => guardOf(dataFolder, { headFile: join(folder, 'none') }).assertExtends(store))
  t.doesNotThrow(() => guardOf(dataFolder, {}).assertExtends(store))
})

t.test('an older copy is refused and told what to do', async t => {
  const { folder, dataFolder, store, log } = await storeLog(t)
  const larger = new ExpectedLog([...freshKeys(0, SIZE), ...freshKeys(5_000, 1)])
  const path = keepCheckpoint(folder, larger, SIZE + 1)
  t.equal(log.size, SIZE)
  for (const name of ['headFile', 'knownCheckpoint'] as const) {
    t.throws(() => guardOf(dataFolder, { [name]: path }).assertExtends(store), {
      code: 'CHECKPOINT_INVALID',
      message: /has 700 entries, but .*checkpoint-701 is its signed checkpoint of 701: put a newer copy/,
    })
  }
})

t.test('another history is refused, at the same size and below', async t => {
  const { folder, dataFolder, store } = await storeLog(t)
  const other = new ExpectedLog(freshKeys(9_000, SIZE))
  for (const size of [1, 256, 300, SIZE]) {
    const path = keepCheckpoint(folder, other, size)
    t.throws(() => guardOf(dataFolder, { headFile: path }).assertExtends(store), {
      code: 'CHECKPOINT_INVALID',
      message: new RegExp(`is not the one of CALLSIGN_LOG_HEAD_FILE .*: their first ${size} entries differ`),
    })
  }
})

t.test('an old root that the old tiles still have does not excuse a new root without them', async t => {
  const { folder, dataFolder, store, log } = await storeLog(t)
  const path = keepCheckpoint(folder, log, 256)
  const head = store.head()!
  const rewritten = new ExpectedLog([...freshKeys(8_000, 256), ...freshKeys(256, SIZE - 256)])
  const root = rewritten.tree.root(0, SIZE)
  const signed = {
    ...head,
    checkpoint: signCheckpoint({ treeSize: SIZE, rootHash: root }, SIGNER),
  }
  const altered = { head: () => signed, readHashes: store.readHashes }
  t.throws(() => guardOf(dataFolder, { headFile: path }).assertExtends(altered), /entries differ/)
})

t.test('an empty data directory does not begin a log that has entries elsewhere', async t => {
  const { folder, log } = await storeLog(t)
  const dataFolder = join(folder, 'new')
  const known = { headFile: keepCheckpoint(folder, log, 5) }
  t.throws(() => guardOf(dataFolder, known), /has 0 entries, but .* of 5: put a newer copy/)
  t.notOk(existsSync(dataFolder), 'and nothing is made there')
  t.doesNotThrow(() => guardOf(dataFolder, { headFile: keepCheckpoint(folder, log, 0) }))
})

t.test('after a restore the operator has to name the checkpoint signed last', async t => {
  const { folder, dataFolder, store, log } = await storeLog(t)
  await writeRestoreMarker(dataFolder, MARKER)
  const ask =
    /was restored at 2026-01-02T03:04:05Z from \/backups\/monday: start once with --known-checkpoint/
  t.throws(() => guardOf(dataFolder, {}), { code: 'CHECKPOINT_INVALID', message: ask })
  t.throws(() => guardOf(dataFolder, { headFile: join(folder, 'none') }), { message: ask })
  for (const name of ['headFile', 'knownCheckpoint'] as const) {
    await writeRestoreMarker(dataFolder, MARKER)
    const guard = guardOf(dataFolder, { [name]: keepCheckpoint(folder, log, 600) })
    guard.assertExtends(store)
    t.throws(() => guardOf(dataFolder, {}), ask, 'it asks until that is confirmed')
    await guard.confirm()
    t.doesNotThrow(() => guardOf(dataFolder, {}), `answered by ${name}`)
  }
})

t.test('a restored copy is shown frozen without an answer, and asks again once it may sign', async t => {
  const { folder, dataFolder, store, log } = await storeLog(t)
  await writeRestoreMarker(dataFolder, MARKER)
  const headFile = join(folder, 'none')
  for (const known of [{}, { headFile }, { knownCheckpoint: keepCheckpoint(folder, log, SIZE) }]) {
    const guard = guardOf(dataFolder, known, true)
    guard.assertExtends(store)
    t.equal(guard.headFile, undefined, 'nothing is recorded that would answer for it')
    await guard.confirm()
    t.throws(() => guardOf(dataFolder, { headFile }), /was restored at/)
  }
  const larger = new ExpectedLog([...freshKeys(0, SIZE), ...freshKeys(5_000, 1)])
  const newer = { knownCheckpoint: keepCheckpoint(folder, larger, SIZE + 1) }
  t.throws(() => guardOf(dataFolder, newer, true).assertExtends(store), /has 700 entries, but .* of 701/)
})

t.test('a frozen log that was not restored is recorded like any other', async t => {
  const { folder, dataFolder, log } = await storeLog(t)
  const headFile = keepCheckpoint(folder, log, 5)
  t.equal(guardOf(dataFolder, { headFile }, true).headFile?.path, headFile)
})

t.test('a restore that did not finish is no log to go on with', async t => {
  const { folder, log } = await storeLog(t)
  const dataFolder = join(folder, 'half')
  mkdirSync(dataFolder)
  await writeRestoreMarker(dataFolder, MARKER)
  for (const known of [{}, { headFile: keepCheckpoint(folder, log, 0) }])
    t.throws(() => guardOf(dataFolder, known), /did not finish: empty the directory and restore again/)
})

t.test('a known checkpoint that is none, or of another log, is refused by name', async t => {
  const { folder, dataFolder } = await storeLog(t)
  const path = join(folder, 'note')
  writeFileSync(path, 'no note')
  for (const knownCheckpoint of [path, join(folder, 'absent')]) {
    const sentence = /--known-checkpoint .* is not a file with a checkpoint of log\.example\/test/
    t.throws(() => guardOf(dataFolder, { knownCheckpoint }), {
      code: 'CHECKPOINT_INVALID',
      message: sentence,
    })
  }
})

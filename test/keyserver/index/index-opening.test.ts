/** Which key may go on with a stored index, and which may begin one: none ever signs two output logs. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { claimIndex, type IndexGuard } from '../../../src/keyserver/index/index-opening.ts'
import { IndexStore } from '../../../src/keyserver/index/index-store.ts'
import { HEAD, INDEX_HEAD, INDEX_STATE, MAP, SHOWN } from '../../../src/keyserver/index/index-tables.ts'
import { INDEX_LOG } from '../../../src/keyserver/kept-log.ts'
import { LogStore } from '../../../src/keyserver/log-store.ts'
import { writeRestoreMarker } from '../../../src/keyserver/restore-marker.ts'
import { RollBackGuard } from '../../../src/keyserver/roll-back-guard.ts'
import { formatVerifierKey, type SignerKey, signerKeyFromSeed } from '../../../src/log/note.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { FilledIndex, INDEX_SIGNER } from '../../support/filled-index.ts'
import { createLog, ExpectedLog, freshKeys, LogWriter } from '../../support/stored-log.ts'

const A = INDEX_SIGNER
const [B, C] = [53, 54].map(seed => signerKeyFromSeed(A.name, Buffer.alloc(32, seed))) as [
  SignerKey,
  SignerKey,
]
const NOTHING_KNOWN: IndexGuard = { assertExtends: () => undefined, confirm: () => Promise.resolve() }

interface Stored {
  readonly folder: string
  readonly database: LmdbStore
  readonly index: IndexStore
  /** A start with these keys, and how it ends. */
  start(index: SignerKey, secondIndex?: SignerKey): Promise<'goes on' | 'begins' | string>
}

/** A store whose index of `A` has a leaf. */
async function stored(t: Test): Promise<Stored> {
  const folder = t.testdir()
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const log = new LogStore(database)
  await createLog(log)
  await new LogWriter(log, new ExpectedLog()).append(freshKeys(0, 5))
  await new FilledIndex(database).addLeaf(log.head()!)
  const index = new IndexStore(database)
  return {
    folder,
    database,
    index,
    start: async (key, secondIndex) => {
      const signers = { index: key, ...(secondIndex && { secondIndex }) }
      const claimed = claimIndex(index, signers, () => NOTHING_KNOWN)
      return claimed.then(({ begun }) => (begun ? 'begins' : 'goes on'), String)
    },
  }
}

t.test('a key that has signed the stored output log goes on with it, and begins none', async t => {
  const { start, index } = await stored(t)
  t.equal(await start(A), 'goes on')
  t.equal(await start(A, B), 'goes on')
  // The next leaf has two signatures: with the new key alone it is the same output log.
  t.equal(await start(B), 'goes on')
  t.equal(index.state?.vkey, formatVerifierKey(B))
  t.equal(await start(A), 'goes on')
  t.equal(index.head()?.treeSize, 1)
})

t.test('a key of an earlier index signs no second one, be it the second key', async t => {
  const { start, index } = await stored(t)
  t.equal(await start(A, B), 'goes on')
  t.equal(await start(C), 'begins')
  t.equal(index.head(), undefined)
  for (const keys of [[A], [B], [C, A], [A, C]] as [SignerKey, SignerKey?][])
    t.match(await start(...keys), /a key of an earlier index/)
  t.equal(await start(C), 'goes on')
})

t.test('no key goes on from leaves without a state, and no key of theirs begins again', async t => {
  const { start, database, index } = await stored(t)
  await database.change(change => change.remove(INDEX_STATE, MAP))
  t.match(await start(A), /has leaves, and no state/)
  t.match(await start(B, A), /has leaves, and no state/)
  t.equal(index.head()?.treeSize, 1)
  t.equal(await start(B), 'begins')
  t.match(await start(A), /a key of an earlier index/)
})

t.test('neither are leaves without a checkpoint', async t => {
  const { start, database } = await stored(t)
  await database.change(change => {
    change.remove(INDEX_STATE, MAP)
    change.remove(INDEX_HEAD, HEAD)
    change.remove(INDEX_HEAD, SHOWN)
  })
  for (const key of [A, B]) t.match(await start(key), /neither state nor checkpoint/)
})

t.test('a restored copy from before a change of the key begins no index unasked', async t => {
  const { index, folder } = await stored(t)
  const dataFolder = folder
  await writeRestoreMarker(dataFolder, { restoredAt: 'now', backup: 'a backup' })
  const outside = { headFile: undefined, knownCheckpoint: undefined, isFrozen: false }
  const claimed = claimIndex(
    index,
    { index: B },
    takesOver => new RollBackGuard({ of: INDEX_LOG, dataFolder, verifier: B, ...outside, takesOver }),
  )
  await t.rejects(claimed, { code: 'CHECKPOINT_INVALID', message: /--known-index-checkpoint FILE.*remove / })
  t.equal(index.head()?.treeSize, 1, 'nothing is forgotten')
})

t.test('an index begun anew goes on while its head file still has the earlier one’s checkpoint', async t => {
  const { index, folder } = await stored(t)
  const headFile = join(folder, 'head')
  writeFileSync(`${headFile}.index`, index.head()!.checkpoint)
  const outside = { headFile, knownCheckpoint: undefined, isFrozen: false }
  const start = (key: SignerKey) =>
    claimIndex(
      index,
      { index: key },
      takesOver =>
        new RollBackGuard({ of: INDEX_LOG, dataFolder: folder, verifier: key, ...outside, takesOver }),
    )
  t.match(await start(B), { begun: {} })
  // Stopped before its first leaf.
  t.equal((await start(B)).begun, undefined)
  writeFileSync(`${headFile}.index`, 'no note')
  await t.rejects(start(B), { code: 'CHECKPOINT_INVALID', message: /is not a checkpoint of / })
})

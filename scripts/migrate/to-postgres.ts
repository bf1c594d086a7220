/**
 * The store of one machine into an empty ledger, or the copy of a node, whose own ledger has lost changes.
 *
 *   1. fill     the ledger is marked, so that no node works on it before the end; a crash in here starts over
 *   2. prove    every row is there
 *   3. end      the ledger is open, from a change of its own on
 *   4. mark     the store is a copy at that change; a crash before it proves again, and marks
 */

import { assertWhole } from '../../src/check/backup.ts'
import { IndexStore } from '../../src/keyserver/index/index-store.ts'
import { INDEX_LOG, KEY_LOG, type KeptLog } from '../../src/keyserver/kept-log.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { readRestoreMarker } from '../../src/keyserver/restore-marker.ts'
import { ShownHeads } from '../../src/keyserver/shown-heads.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { walkPages } from '../../src/store/engine/page-walk.ts'
import { assertReadable } from '../../src/store/engine/store-files.ts'
import type { Filling } from '../../src/store/postgres/filling.ts'
import type { PostgresLedger } from '../../src/store/postgres/ledger.ts'
import type { WriteLease } from '../../src/store/postgres/write-lease.ts'
import { asWriter, type Moved, proveSame, RowsDiffer, refused } from './moved.ts'

type Say = (sentence: string) => void

/** Throws `CHECKPOINT_INVALID` where the log is damaged, `STORE_UNAVAILABLE` for all else that keeps it from moving. */
export async function moveToPostgres(
  folder: string,
  openLedger: () => Promise<PostgresLedger>,
  say: Say,
): Promise<Moved> {
  assertReadable(folder)
  const database = LmdbStore.open(folder, { inspect: path => void walkPages(path) })
  let ledger: PostgresLedger | undefined
  try {
    assertNewest(folder, database)
    const log = await assertWhole(folder, `the log in ${folder}`)
    ledger = await openLedger()
    return { ...(await move(database, ledger, say)), log }
  } finally {
    await ledger?.close()
    await database.close()
  }
}

/** Throws where the store may lack what clients have seen. */
function assertNewest(folder: string, database: LmdbStore): void {
  if (database.copyState?.isFilling) throw refused(`the store in ${folder} is a copy that lacks rows`)
  const store = new LogStore(database)
  const maker = store.maker()
  if (maker !== undefined)
    ShownHeads.open(folder, undefined, parseVerifierKey(maker.vkey)).assertExtendedBy(store)
  assertAnswered(folder, KEY_LOG)
  const index = new IndexStore(database)
  const vkey = index.state?.vkey
  if (vkey === undefined) return
  ShownHeads.open(folder, undefined, parseVerifierKey(vkey), INDEX_LOG).assertExtendedBy(index)
  assertAnswered(folder, INDEX_LOG)
}

/** The mark of a restore would stay behind. */
function assertAnswered(folder: string, of: KeptLog): void {
  if (readRestoreMarker(folder, of) === undefined) return
  throw refused(
    `${folder} was restored from a backup: start the server once with ${of.knownFlag} FILE, which asks whether its ${of.what} is the newest copy, before it moves`,
  )
}

function move(database: LmdbStore, ledger: PostgresLedger, say: Say): Promise<Omit<Moved, 'log'>> {
  return asWriter(ledger, ['open', 'filling'], async lease => {
    const filling = await ledger.fill(lease)
    if (filling === undefined && database.copyState !== undefined) throw refused(NOT_EMPTY)
    const { position, ...moved } =
      filling === undefined
        ? await proveMoved(database, ledger, lease)
        : await fill(database, ledger, filling)
    await database.filled(position.number, position.epoch)
    return { ...moved, change: position.number }
  })

  async function fill(database: LmdbStore, ledger: PostgresLedger, filling: Filling) {
    try {
      if (filling.isAnew) say('an earlier move into this database did not end; it starts over')
      await filling.put(database.rowsInOrder())
      const { rows, bytes } = await proveSame(database, ledger)
      const { checkpoint } = new LogStore(database).head()!
      return { rows, bytes, position: await filling.end(Buffer.from(checkpoint)) }
    } finally {
      filling.close()
    }
  }
}

/** The ledger may have been filled from this store, and the store not be marked yet. */
async function proveMoved(database: LmdbStore, ledger: PostgresLedger, lease: WriteLease) {
  await lease.rowsBehind.settle()
  try {
    return await proveSame(database, ledger)
  } catch (error) {
    if (!(error instanceof RowsDiffer)) throw error
    throw refused(NOT_EMPTY)
  }
}

const NOT_EMPTY = 'the database is not empty, and its rows are not those of the store: name an empty one'

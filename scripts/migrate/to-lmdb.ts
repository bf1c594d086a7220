/**
 * The ledger of several nodes into the store of one machine.
 *
 *   1. fill     the store is marked as a copy that lacks rows
 *   2. prove    every row is there, and the log goes on from every checkpoint that is known
 *   3. mark     the store has the epoch of this lease, which no other store has
 *   4. leave    no node works on the ledger any more
 *   5. detach   the store belongs to one machine
 *
 * A crash before 4 starts over. After 4 the next run finds the ledger left to this store, and goes on with 5.
 */

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { assertWhole } from '../../src/check/backup.ts'
import type { LogReport } from '../../src/check/log/fault.ts'
import { assert } from '../../src/errors.ts'
import { IndexStore } from '../../src/keyserver/index/index-store.ts'
import { INDEX_LOG } from '../../src/keyserver/kept-log.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { RollBackGuard } from '../../src/keyserver/roll-back-guard.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { fillRows } from '../../src/server/node/copy-follower.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { walkPages } from '../../src/store/engine/page-walk.ts'
import { hasStore } from '../../src/store/engine/store-files.ts'
import type { PostgresLedger } from '../../src/store/postgres/ledger.ts'
import type { WriteLease } from '../../src/store/postgres/write-lease.ts'
import { asWriter, type Moved, proveSame, refused } from './moved.ts'

/** Throws `CHECKPOINT_INVALID` where the log is damaged, `STORE_UNAVAILABLE` for all else that keeps it from moving. */
export async function moveToLmdb(
  folder: string,
  openLedger: () => Promise<PostgresLedger>,
  say: (sentence: string) => void,
): Promise<Moved> {
  let database = openStore(folder)
  let ledger: PostgresLedger | undefined
  try {
    const state = database.copyState
    if (state === undefined && database.hasRows) throw refused(`${folder} has a store: name an empty folder`)
    ledger = await openLedger()
    if (state !== undefined) {
      if (await isLeftTo(ledger, state.epoch)) return await finish(folder, database, ledger)
      if (!state.isFilling) throw refused(`${folder} has the copy of a node: name an empty folder`)
      say('an earlier move into this folder did not end; it starts over')
      await database.close()
      await rm(join(folder, 'store'), { recursive: true })
      database = openStore(folder)
    }
    return await move(folder, database, ledger)
  } finally {
    await ledger?.close()
    await database.close()
  }
}

function openStore(folder: string): LmdbStore {
  return LmdbStore.open(folder, hasStore(folder) ? { inspect: path => void walkPages(path) } : {})
}

function move(folder: string, database: LmdbStore, ledger: PostgresLedger): Promise<Moved> {
  return asWriter(ledger, ['open'], async lease => {
    if (lease.last === 0) throw refused('the database has no log')
    await fill(database, ledger, lease)
    const { rows, bytes } = await proveSame(database, ledger)
    const log = await assertWhole(folder, 'the log in the database')
    assertExtends(folder, database, lease.head)
    await database.moved(lease.last, lease.epoch)
    await ledger.leave(lease)
    await database.detach()
    return { rows, bytes, change: lease.last, log }
  })
}

async function fill(database: LmdbStore, ledger: PostgresLedger, lease: WriteLease): Promise<void> {
  await lease.rowsBehind.settle()
  const { position } = await fillRows(database, ledger)
  assert(position.number === lease.last, 'nobody else changes the ledger')
}

/** The head in PostgreSQL, and those of log and index in the head files, if there are any. */
function assertExtends(folder: string, database: LmdbStore, head: Uint8Array | undefined): void {
  const outside = {
    dataFolder: folder,
    headFile: process.env.CALLSIGN_LOG_HEAD_FILE || undefined,
    knownCheckpoint: undefined,
    isFrozen: false,
  }
  const store = new LogStore(database)
  const verifier = parseVerifierKey(store.maker()!.vkey)
  const recordedHead = head && Buffer.from(head).toString()
  new RollBackGuard({ ...outside, verifier, recordedHead }).assertExtends(store)
  const index = new IndexStore(database)
  const vkey = index.state?.vkey
  if (vkey === undefined) return
  // A file of another key belongs to another index; a start holds an index that does not extend its file.
  const ofIndex = { of: INDEX_LOG, verifier: parseVerifierKey(vkey), takesOver: true }
  new RollBackGuard({ ...outside, ...ofIndex }).assertExtends(index)
}

async function isLeftTo(ledger: PostgresLedger, epoch: number): Promise<boolean> {
  const writer = await ledger.writer()
  return writer.state === 'left' && writer.epoch === epoch
}

async function finish(folder: string, database: LmdbStore, ledger: PostgresLedger): Promise<Moved> {
  const { rows, bytes, position } = await proveSame(database, ledger)
  const log: LogReport = await assertWhole(folder, 'the log in the database')
  await database.detach()
  return { rows, bytes, change: position.number, log }
}

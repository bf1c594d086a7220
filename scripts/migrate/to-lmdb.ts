/**
 * The record of several nodes into the store of one machine.
 *
 *   1. fill     the store is marked as a copy that lacks rows
 *   2. prove    every row is there, and the log goes on from every checkpoint that is known
 *   3. mark     the store has the epoch of this lease, which no other store has
 *   4. leave    no node works on the record any more
 *   5. detach   the store belongs to one machine
 *
 * A crash before 4 starts over. After 4 the next run finds the record left to this store, and goes on with 5.
 */

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { assertWhole } from '../../src/check/backup.ts'
import type { LogReport } from '../../src/check/log/fault.ts'
import { assert } from '../../src/errors.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { RollBackGuard } from '../../src/keyserver/roll-back-guard.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { fillRows } from '../../src/server/node/copy-follower.ts'
import { Database } from '../../src/store/engine/database.ts'
import { walkPages } from '../../src/store/engine/page-walk.ts'
import { hasStore } from '../../src/store/engine/store-files.ts'
import type { Lease } from '../../src/store/postgres/lease.ts'
import type { PostgresRecord } from '../../src/store/postgres/record.ts'
import { asWriter, type Moved, proveSame, refused } from './moved.ts'

/** Throws `CHECKPOINT_INVALID` where the log is damaged, `STORE_UNAVAILABLE` for all else that keeps it from moving. */
export async function moveToLmdb(
  folder: string,
  openRecord: () => Promise<PostgresRecord>,
  say: (sentence: string) => void,
): Promise<Moved> {
  let database = openStore(folder)
  let record: PostgresRecord | undefined
  try {
    const state = database.copyState
    if (state === undefined && database.hasRows) throw refused(`${folder} has a store: name an empty folder`)
    record = await openRecord()
    if (state !== undefined) {
      if (await isLeftTo(record, state.epoch)) return await finish(folder, database, record)
      if (!state.isFilling) throw refused(`${folder} has the copy of a node: name an empty folder`)
      say('an earlier move into this folder did not end; it starts over')
      await database.close()
      await rm(join(folder, 'store'), { recursive: true })
      database = openStore(folder)
    }
    return await move(folder, database, record)
  } finally {
    await record?.close()
    await database.close()
  }
}

function openStore(folder: string): Database {
  return Database.open(folder, hasStore(folder) ? { inspect: path => void walkPages(path) } : {})
}

function move(folder: string, database: Database, record: PostgresRecord): Promise<Moved> {
  return asWriter(record, ['open'], async lease => {
    if (lease.last === 0) throw refused('the database has no log')
    await fill(database, record, lease)
    const { rows, bytes } = await proveSame(database, record)
    const log = await assertWhole(folder, 'the log in the database')
    assertExtends(folder, database, lease.head)
    await database.moved(lease.last, lease.epoch)
    await record.leave(lease)
    await database.detach()
    return { rows, bytes, change: lease.last, log }
  })
}

async function fill(database: Database, record: PostgresRecord, lease: Lease): Promise<void> {
  await lease.rowsBehind.settle()
  const { position } = await fillRows(database, record)
  assert(position.number === lease.last, 'nobody else changes the record')
}

/** The head in PostgreSQL, and the one in the head file, if there is one. */
function assertExtends(folder: string, database: Database, head: Uint8Array | undefined): void {
  const store = new LogStore(database)
  const guard = new RollBackGuard({
    dataFolder: folder,
    verifier: parseVerifierKey(store.maker()!.vkey),
    headFile: process.env.CALLSIGN_LOG_HEAD_FILE || undefined,
    knownCheckpoint: undefined,
    recordedHead: head && Buffer.from(head).toString(),
    isFrozen: false,
  })
  guard.assertExtends(store)
}

async function isLeftTo(record: PostgresRecord, epoch: number): Promise<boolean> {
  const writer = await record.writer()
  return writer.state === 'left' && writer.epoch === epoch
}

async function finish(folder: string, database: Database, record: PostgresRecord): Promise<Moved> {
  const { rows, bytes, position } = await proveSame(database, record)
  const log: LogReport = await assertWhole(folder, 'the log in the database')
  await database.detach()
  return { rows, bytes, change: position.number, log }
}

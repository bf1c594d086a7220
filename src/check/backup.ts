/**
 * Copies of a data directory: made while the server runs, and put back. A copy holds the store and nothing else: no
 * private key, no head file. A backup or a restore checks every entry before the copy counts.
 */

import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, readdir, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { SignalError } from '../errors.ts'
import { INDEX_HEAD, INDEX_STATE, MAP, SHOWN } from '../keyserver/index/index-tables.ts'
import { INDEX_LOG, KEY_LOG } from '../keyserver/kept-log.ts'
import { LogStore } from '../keyserver/log-store.ts'
import { removeRestoreMarker, writeRestoreMarker } from '../keyserver/restore-marker.ts'
import { syncToDisk } from '../store/engine/durable-file.ts'
import { LmdbStore } from '../store/engine/lmdb-store.ts'
import { checkInProcess } from './check-process.ts'
import type { LogReport } from './log/fault.ts'

/** The contents of a checked copy. */
export interface CopiedLog {
  readonly report: LogReport
  /** The signed note. */
  readonly checkpoint: string
  readonly vkey: string
  readonly vrfPublicKey: string
  /** Undefined where the store has no index, or none that has shown a leaf. */
  readonly index: CopiedIndex | undefined
}

export interface CopiedIndex {
  readonly vkey: string
  /** The size of the output log as it was shown last, and its signed note. */
  readonly leaves: number
  readonly checkpoint: string
}

/**
 * Writes a copy of the store below `dataFolder` into the folder `to`, which must be elsewhere, and empty or not there.
 * The server may keep running: the copy lacks commits made after it began. Throws `STORE_UNAVAILABLE` without a store
 * to copy or a place for it, `CHECKPOINT_INVALID` for a damaged copy, which means a damaged store.
 *
 *   1. copy    into a folder `unfinished`; a crash leaves that behind, and `restore` refuses it
 *   2. sync    the copy survives a power cut
 *   3. check   every entry, up to the signed root
 *   4. rename  the copy counts
 */
export async function backUp(dataFolder: string, to: string): Promise<CopiedLog> {
  await assertEmpty(to)
  await assertOutside(to, dataFolder)
  const source = LmdbStore.openReadOnly(dataFolder)
  const unfinished = join(to, UNFINISHED)
  try {
    await mkdir(join(unfinished, STORE), { recursive: true, mode: 0o700 })
    await source.copyTo(join(unfinished, STORE))
    return await finish(unfinished, to)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    throw error
  } finally {
    await source.close()
  }
}

/**
 * Puts a copy into `dataFolder`, which must be empty or not there, and leaves a mark: the next start asks whether the
 * copy is the newest one (`roll-back-guard.ts`). Throws as `backUp` does, and then leaves nothing behind.
 *
 * Writes the mark before the store: no crash leaves a restored store without it.
 */
export async function restore(from: string, dataFolder: string): Promise<CopiedLog> {
  await assertEmpty(dataFolder)
  const backup = join(from, STORE, DATA_FILE)
  if (!existsSync(backup)) throw new SignalError('STORE_UNAVAILABLE', `there is no backup in ${from}`)
  const unfinished = join(dataFolder, UNFINISHED)
  await mkdir(join(unfinished, STORE), { recursive: true, mode: 0o700 })
  try {
    await copyFile(backup, join(unfinished, STORE, DATA_FILE))
    await writeRestoreMarker(dataFolder, { restoredAt: new Date().toISOString(), backup: resolve(from) })
    return await finish(unfinished, dataFolder)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    // The store goes before its mark: without the mark, a server would serve it unasked.
    await rm(join(dataFolder, STORE), { recursive: true, force: true })
    for (const log of [INDEX_LOG, KEY_LOG]) await removeRestoreMarker(dataFolder, log).catch(() => {})
    throw error
  }
}

async function finish(unfinished: string, folder: string): Promise<CopiedLog> {
  // LMDB makes its files readable for all users, and a backup may have kept that.
  await chmod(join(unfinished, STORE, DATA_FILE), 0o600)
  await syncToDisk(join(unfinished, STORE, DATA_FILE))
  const copied = await check(unfinished)
  await rm(join(unfinished, STORE, LOCK_FILE), { force: true })
  await syncToDisk(join(unfinished, STORE))
  await rename(join(unfinished, STORE), join(folder, STORE))
  await rm(unfinished, { recursive: true })
  await syncToDisk(folder)
  return copied
}

/** Checks every entry of the log in a store, and its index. Throws `CHECKPOINT_INVALID` for the first fault; `called` names the store. */
export async function assertWhole(dataFolder: string, called: string): Promise<LogReport> {
  const { log: report } = await checkInProcess({ dataFolder })
  const fault = report.outcomes.find(({ ok }) => ok === false)
  if (fault !== undefined) {
    const { check, first } = fault
    throw new SignalError(
      'CHECKPOINT_INVALID',
      `${called} does not hold: ${check}: ${first?.detail} (table ${first?.table}, key ${first?.key}); run fsck on the original`,
    )
  }
  return report
}

async function check(dataFolder: string): Promise<CopiedLog> {
  const report = await assertWhole(dataFolder, 'the copy')
  // Opened after the check: a damaged file could have ended this process.
  const database = LmdbStore.openReadOnly(dataFolder)
  try {
    const store = new LogStore(database)
    const { checkpoint } = store.head()!
    const { vkey, vrfPublicKey } = store.maker()!
    return { report, checkpoint, vkey, vrfPublicKey, index: indexIn(database) }
  } finally {
    await database.close()
  }
}

function indexIn(database: LmdbStore): CopiedIndex | undefined {
  return database.view(view => {
    const [state, shown] = [view.get(INDEX_STATE, MAP), view.get(INDEX_HEAD, SHOWN)]
    if (state === undefined || shown === undefined) return undefined
    return { vkey: state.vkey, leaves: shown.treeSize, checkpoint: shown.checkpoint }
  })
}

async function assertEmpty(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  if (names.length > 0) throw new SignalError('STORE_UNAVAILABLE', `${folder} is not empty`)
}

/** A copy inside the data directory would be lost with it. */
async function assertOutside(folder: string, dataFolder: string): Promise<void> {
  const isInside = `${await realPathOf(folder)}/`.startsWith(`${await realPathOf(dataFolder)}/`)
  if (!isInside) return
  const reason = `${folder} is inside the data directory ${dataFolder} and would be lost with it: name a folder elsewhere`
  throw new SignalError('STORE_UNAVAILABLE', reason)
}

/** The path without links; its last folders need not exist yet. */
async function realPathOf(path: string): Promise<string> {
  const full = resolve(path)
  return realpath(full).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return join(await realPathOf(dirname(full)), basename(full))
  })
}

const STORE = 'store'
const DATA_FILE = 'data.mdb'
const LOCK_FILE = 'lock.mdb'
const UNFINISHED = 'unfinished'

/**
 * Compaction: a store's live pages, copied into a new file that takes the place of the old one. LMDB gives no page back to the
 * disk and overwrites none that it frees, so a row that was removed can be read in the file until then.
 *
 *   1. walk    every page of the store: LMDB ends the process over some damaged ones
 *   2. copy    the live pages, into the folder `store/compacting`
 *   3. sync    the copy survives a power cut
 *   4. compare every page of the copy is walked, and it has as many rows, of the same transaction
 *   5. rename  over the store's file, and sync its folder
 *
 * A crash leaves the whole old store before the rename, the whole new one after it.
 */

import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { assert, messageOf } from '../../errors.ts'
import { syncToDisk, writeDurably } from './durable-file.ts'
import { withFolderLock } from './folder-lock.ts'
import { TABLES_MAX } from './lmdb-store.ts'
import { type PageWalk, readSpace, walkPages } from './page-walk.ts'
import { assertWhole, storeFile } from './store-files.ts'
import { mayHaveLostWrites } from './unsynced-mark.ts'

/** The outcome for a store that had more free pages than used ones, or was marked. */
export type Compaction =
  | { readonly kind: 'compacted'; readonly bytesBefore: number; readonly bytesAfter: number }
  | { readonly kind: 'left'; readonly reason: string }

type Step = 'walked' | 'copying' | 'copied' | 'synced' | 'compared' | 'renamed'

interface CompactionListener {
  /** Called before the pages are walked. */
  readonly onBegin?: (bytes: number) => void
  /** Hears that it waits for a process of another container to leave the folder. */
  readonly onWait?: (sentence: string) => void
  /** For tests. */
  readonly onStep?: (step: Step) => void
}

/**
 * Compacts the store below `dataFolder` where more than half of its pages are free, or `askForCompaction` was called.
 * Resolves with undefined where it need not be, or is of a kind that `LmdbStore.open` refuses or removes. Whatever fails
 * leaves the store as it was. Throws `STORE_UNAVAILABLE` while another process has it open for writing.
 *
 * A compaction that was cut short is not tried again at once: a supervisor that allows a start too little time would never
 * see the server ready.
 */
export async function compactStore(
  dataFolder: string,
  listener: CompactionListener = {},
): Promise<Compaction | undefined> {
  const wasCutShort = existsSync(copyFolder(dataFolder))
  if (!wasCutShort && !needsCompaction(dataFolder)) return undefined
  let compaction: Compaction | undefined
  await withFolderLock(
    dataFolder,
    async () => {
      rmSync(copyFolder(dataFolder), { recursive: true, force: true })
      if (wasCutShort) compaction = { kind: 'left', reason: CUT_SHORT }
      else compaction = await compact(dataFolder, listener)
    },
    listener.onWait,
  )
  return compaction
}

/** The next start compacts the store, however few of its pages are free. Resolves when that is durable. */
export function askForCompaction(dataFolder: string): Promise<void> {
  return writeDurably(markIn(dataFolder), '', 0o600)
}

function needsCompaction(dataFolder: string): boolean {
  const path = storeFile(dataFolder)
  if (!existsSync(path) || mayHaveLostWrites(dataFolder)) return false
  try {
    assertWhole(path, 'CHECKPOINT_INVALID', '')
    const { pages, freePages } = readSpace(path)
    return existsSync(markIn(dataFolder)) || freePages * 2 > pages
  } catch {
    // `LmdbStore.open` says what it is.
    return false
  }
}

async function compact(dataFolder: string, listener: CompactionListener): Promise<Compaction> {
  const file = storeFile(dataFolder)
  const bytesBefore = statSync(file).size
  listener.onBegin?.(bytesBefore)
  try {
    await replace(file, copyFolder(dataFolder), step => listener.onStep?.(step))
  } catch (error) {
    rmSync(copyFolder(dataFolder), { recursive: true, force: true })
    return { kind: 'left', reason: messageOf(error) }
  }
  rmSync(copyFolder(dataFolder), { recursive: true, force: true })
  rmSync(markIn(dataFolder), { force: true })
  return { kind: 'compacted', bytesBefore, bytesAfter: statSync(file).size }
}

async function replace(file: string, to: string, onStep: (step: Step) => void): Promise<void> {
  const walked = walkPages(file)
  onStep('walked')
  mkdirSync(to, { mode: 0o700 })
  onStep('copying')
  await copy(dirname(file), to)
  const copied = join(to, 'data.mdb')
  onStep('copied')
  chmodSync(copied, 0o600)
  await syncToDisk(copied)
  onStep('synced')
  assertSame(file, walked, copied)
  onStep('compared')
  renameSync(copied, file)
  onStep('renamed')
  await syncToDisk(dirname(file))
}

async function copy(from: string, to: string): Promise<void> {
  const environment = open({ path: from, overlappingSync: false, maxDbs: TABLES_MAX, encoding: 'binary' })
  try {
    await endOnOddTransaction(environment, join(from, 'data.mdb'))
    await environment.backup(to, true)
  } finally {
    await environment.close()
  }
}

/**
 * LMDB gives a compacted copy the store's transaction number made odd. A process that reads the old file keeps the lock file
 * of both in use, which has that number, and by it the writer of the new file chooses between two meta pages: with another
 * number it would take the empty one.
 */
async function endOnOddTransaction(environment: RootDatabase, file: string): Promise<void> {
  if (readSpace(file).transaction % 2 === 1) return
  const table = [...environment.getKeys({ limit: 1 })].map(String)[0]
  assert(table !== undefined, 'a store that has free pages has a table')
  const rows = environment.openDB<Uint8Array, Uint8Array>(table, {
    encoding: 'binary',
    keyEncoding: 'binary',
  })
  await environment.transaction(() => {
    rows.putSync(NO_ROW, Uint8Array.of(0))
    rows.removeSync(NO_ROW)
  })
}

function assertSame(file: string, { rows }: PageWalk, copied: string): void {
  const [from, to] = [readSpace(file), readSpace(copied)]
  assert(from.transaction === to.transaction, 'nothing was written while the store was copied')
  assert(walkPages(copied).rows === rows, 'a copy has the rows of its store')
}

function copyFolder(dataFolder: string): string {
  return join(dirname(storeFile(dataFolder)), 'compacting')
}

function markIn(dataFolder: string): string {
  return join(dataFolder, 'compact')
}

const CUT_SHORT =
  'the last start did not end it: the next one tries again, and may take a second for each 100 MB of the store'
/** No table's: theirs are at least as long as an id. */
const NO_ROW = Uint8Array.of(0)

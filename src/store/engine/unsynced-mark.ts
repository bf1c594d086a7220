/**
 * The mark of a store that is written without syncs: a file beside it that names the machine's boot. A killed process loses
 * nothing, since the kernel has what it wrote. A machine that has stopped may have lost any part of it, and has another boot
 * id when it runs again.
 */

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SignalError } from '../../errors.ts'

/** Undefined where the system has none. */
export function readBootId(): string | undefined {
  try {
    return readFileSync(BOOT_ID, 'latin1').trim() || undefined
  } catch {
    return undefined
  }
}

/** Whether the machine has stopped since the store was marked, or may have. */
export function mayHaveLostWrites(dataFolder: string): boolean {
  let marked: string
  try {
    marked = readFileSync(markOf(dataFolder), 'latin1')
  } catch (error) {
    // Any other failure leaves open what it says.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
  return marked.trim() !== readBootId()
}

/** Throws where the machine has stopped while the store was written without syncs. */
export function assertSynced(folder: string): void {
  if (!mayHaveLostWrites(folder)) return
  throw new SignalError(
    'STORE_UNAVAILABLE',
    `the store in ${folder} is a node's copy, and the machine stopped before it was on disk: remove ${join(folder, 'store')}, and the node's next start fills it anew`,
  )
}

/** The mark is on disk before the first write that is not. */
export function markUnsynced(dataFolder: string, bootId: string): void {
  const path = markOf(dataFolder)
  writeFileSync(path, `${bootId}\n`, { mode: 0o600 })
  syncNow(path)
  syncNow(dirname(path))
}

/** Syncs the store and removes its mark, if it has one. */
export function syncMarked(dataFolder: string): void {
  const path = markOf(dataFolder)
  try {
    syncNow(join(dirname(path), 'data.mdb'))
  } catch (error) {
    // The kernel reports a failed write once, and then takes its memory for written.
    if (existsSync(path)) writeFileSync(path, 'a write failed\n')
    throw error
  }
  rmSync(path, { force: true })
  syncNow(dirname(path))
}

/**
 * A process that was killed in a commit leaves what it wrote visible, but perhaps not yet durable; whoever opens the
 * store tells others what it reads there. And a new file is found after a power cut only if the folders on the way to
 * it are durable; `firstMade` is the topmost new one.
 */
export function syncStore(folder: string, firstMade: string | undefined): void {
  const topmost = firstMade === undefined ? folder : dirname(firstMade)
  syncMarked(folder)
  syncNow(folder)
  for (let path = folder; path !== topmost; ) {
    path = dirname(path)
    syncNow(path)
  }
}

/** Returns when the bytes of a file, or the names in a folder, survive a power cut. Throws `STORE_UNAVAILABLE` when the disk fails. */
function syncNow(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const reason = `the store could not write (${code}): a sync of ${path} failed, the disk may have`
    throw new SignalError('STORE_UNAVAILABLE', reason, { cause })
  } finally {
    closeSync(descriptor)
  }
}

function markOf(dataFolder: string): string {
  return join(dataFolder, 'store', 'unsynced')
}

const BOOT_ID = '/proc/sys/kernel/random/boot_id'

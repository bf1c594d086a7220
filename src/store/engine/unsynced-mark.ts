/**
 * The mark of a store that is written without syncs: a file beside it that names the machine's boot. A killed process loses
 * nothing, since the kernel has what it wrote. A machine that has stopped may have lost any part of it, and has another boot
 * id when it runs again.
 */

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

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
    // The kernel reports a failed write once, and then takes what is in memory for written.
    if (existsSync(path)) writeFileSync(path, 'a write failed\n')
    throw error
  }
  rmSync(path, { force: true })
  syncNow(dirname(path))
}

/** Returns when the bytes of a file, or the names in a folder, survive a power cut. */
export function syncNow(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function markOf(dataFolder: string): string {
  return join(dataFolder, 'store', 'unsynced')
}

const BOOT_ID = '/proc/sys/kernel/random/boot_id'

/** The files of a store, looked at before LMDB is: it ends the process over some that it can't open. */

import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type ErrorCode, messageOf, SignalError } from '../../errors.ts'

/** The file with everything in it. */
export function storeFile(dataFolder: string): string {
  return join(dataFolder, DATA_FILE)
}

/** Throws the system's error where nobody can say: a folder that can't be looked into may hold a whole log. */
export function hasStore(dataFolder: string): boolean {
  return isThere(storeFile(dataFolder))
}

/** Throws the system's error, which names the file, unless this process can read and write all that is there. */
export function assertWritable(dataFolder: string): void {
  for (const name of [DATA_FILE, 'store/lock.mdb', 'lock/data.mdb', 'lock/lock.mdb']) {
    const path = join(dataFolder, name)
    if (isThere(path)) accessSync(path, constants.R_OK | constants.W_OK)
  }
}

/** Throws `STORE_UNAVAILABLE` where there is no store, or none that this process can read. */
export function assertReadable(dataFolder: string): void {
  try {
    if (hasStore(dataFolder)) return accessSync(storeFile(dataFolder), constants.R_OK)
  } catch (cause) {
    const reason = `the store in ${dataFolder} can't be read (${messageOf(cause)}): do this as the server's user`
    throw new SignalError('STORE_UNAVAILABLE', reason, { cause })
  }
  throw new SignalError('STORE_UNAVAILABLE', `there is no store in ${dataFolder}`)
}

/**
 * LMDB ends the process over a file without its two first pages, which it writes as it makes one, and over one where they are
 * something else. Choice: it is refused, not made anew, because a log that begins again by itself would be another log under
 * the same key. `damaged` is the code for a file that was never or is no longer LMDB's.
 */
export function assertWhole(path: string, damaged: ErrorCode, advice: string): void {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size
  if (bytes === undefined) return
  if (bytes < STORE_BYTES_MIN) {
    throw new SignalError(
      'STORE_UNAVAILABLE',
      `${path} has ${bytes} bytes, fewer than an empty store: its making was cut short, or it was damaged; ${advice}`,
    )
  }
  if (!hasMetaPages(path)) {
    throw new SignalError(damaged, `${path} does not begin as a store does: it was damaged; ${advice}`)
  }
}

/** Whether the file begins as LMDB begins each that it makes: with two meta pages, in the form of version 2. */
function hasMetaPages(path: string): boolean {
  const descriptor = openSync(path, 'r')
  try {
    const page = Buffer.alloc(META_BYTES)
    const isMetaAt = (position: number) =>
      readSync(descriptor, page, 0, META_BYTES, position) === META_BYTES &&
      (page.readUInt16LE(FLAGS_AT) & META_FLAG) !== 0 &&
      page.readUInt32LE(MAGIC_AT) === MAGIC &&
      page.readUInt16LE(VERSION_AT) === VERSION
    if (!isMetaAt(0)) return false
    const pageBytes = page.readUInt32LE(PAGE_BYTES_AT)
    // Either page may be the newer one, and LMDB divides by the size that is there.
    return pageBytes > 0 && isMetaAt(pageBytes) && page.readUInt32LE(PAGE_BYTES_AT) === pageBytes
  } finally {
    closeSync(descriptor)
  }
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}

const DATA_FILE = 'store/data.mdb'
/** Two pages. */
const STORE_BYTES_MIN = 8_192
/** `MDB_page` with `MDB_meta` after it, in mdb.c. */
const FLAGS_AT = 18
const MAGIC_AT = 24
const VERSION_AT = 28
const PAGE_BYTES_AT = 48
const META_BYTES = 52
const META_FLAG = 0x08
const MAGIC = 0xbeefc0de
const VERSION = 2

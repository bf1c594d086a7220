/** One process at a time writes to a data directory. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { SignalError } from '../../errors.ts'
import { assertWhole } from './store-files.ts'

/**
 * The lock is a reader slot in an LMDB environment of its own: the kernel frees it when its process ends in any way,
 * so it can't go stale. Two processes that start together see each other and both refuse.
 */
export function lockFolder(folder: string): RootDatabase {
  const path = join(folder, 'lock')
  const advice = `nothing is kept there: remove ${path} while no server runs`
  assertWhole(join(path, 'data.mdb'), 'STORE_UNAVAILABLE', advice)
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const lock = open({ path, overlappingSync: false })
  lock.readerCheck()
  lock.get('held')
  const holders = lock.readerList().matchAll(/^\s*(\d+)\s/gm)
  for (const [, pid] of holders) {
    if (pid === String(process.pid)) continue
    void lock.close()
    throw new SignalError('STORE_UNAVAILABLE', `data directory ${folder} is in use by process ${pid}`)
  }
  return lock
}

/** Runs `act` while no other process uses the data directory. Throws `STORE_UNAVAILABLE` where one does. */
export async function withFolderLock(folder: string, act: () => Promise<void>): Promise<void> {
  const lock = lockFolder(folder)
  try {
    await act()
  } finally {
    await lock.close()
  }
}

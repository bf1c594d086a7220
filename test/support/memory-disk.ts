/** Puts stores onto a memory disk, where the machine has one: for tests of anything but durability. */

import { existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { Rehearsals } from './rehearsal-store.ts'

/** A database that rehearses every change first. */
export interface RehearsedDatabase {
  readonly database: LmdbStore
  readonly rehearsals: Rehearsals
}

/** In memory, where there is room. `folder` may hold a store that was closed. */
export function openRehearsed(folder: string, nowMs: () => number, rehearses = true): RehearsedDatabase {
  useMemoryDisk(folder)
  const rehearsals = new Rehearsals()
  const options = { nowMs: rehearsals.clock(nowMs), ...(rehearses && { rehearse: rehearsals.rehearse }) }
  return { database: LmdbStore.open(folder, options), rehearsals }
}

/** Lets the store that is about to be made in the folder lie in memory until the process ends, where there is room. */
function useMemoryDisk(folder: string): void {
  if (!hasRoom() || existsSync(join(folder, 'store'))) return
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const inMemory = mkdtempSync(join(ownFolder(), 'data-'))
  for (const name of ['store', 'lock']) {
    mkdirSync(join(inMemory, name), { mode: 0o700 })
    symlinkSync(join(inMemory, name), join(folder, name))
  }
}

function hasRoom(): boolean {
  if (!existsSync(MEMORY_DISK)) return false
  const { type, bavail, bsize } = statfsSync(MEMORY_DISK)
  return type === TMPFS && bavail * bsize >= FREE_BYTES_MIN
}

function ownFolder(): string {
  if (own === undefined) {
    own = mkdtempSync(join(MEMORY_DISK, 'callsign-test-'))
    process.on('exit', () => rmSync(own!, { recursive: true, force: true }))
  }
  return own
}

let own: string | undefined
const MEMORY_DISK = '/dev/shm'
const TMPFS = 0x01021994
/** More than all files that run at once fill. Containers often have 64 MB, which is too little. */
const FREE_BYTES_MIN = 1024 ** 3

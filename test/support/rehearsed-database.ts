/** A database in memory, where the machine has room for it, whose every change is rehearsed first. */

import { Database } from '../../src/store/engine/database.ts'
import { useMemoryDisk } from './memory-disk.ts'
import { Rehearsals } from './rehearsal-store.ts'

export interface RehearsedDatabase {
  readonly database: Database
  readonly rehearsals: Rehearsals
}

/** `folder` may hold a store that was closed. */
export function openRehearsed(folder: string, nowMs: () => number, rehearses = true): RehearsedDatabase {
  useMemoryDisk(folder)
  const rehearsals = new Rehearsals()
  const options = { nowMs: rehearsals.clock(nowMs), ...(rehearses && { rehearse: rehearsals.rehearse }) }
  return { database: Database.open(folder, options), rehearsals }
}

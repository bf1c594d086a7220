/**
 * The mark of a data directory that was restored from a backup: nobody has said yet that the backup was the newest
 * copy. `restore` leaves it, the next start asks (`roll-back-guard.ts`) and takes it away.
 */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeDurably, writeDurably } from '../store/engine/durable-file.ts'

export interface RestoreMarker {
  /** RFC 3339. */
  readonly restoredAt: string
  readonly backup: string
}

export function writeRestoreMarker(dataFolder: string, marker: RestoreMarker): Promise<void> {
  return writeDurably(pathIn(dataFolder), `${JSON.stringify(marker)}\n`, 0o600)
}

/** Its text, or undefined when there is none. A marker that can't be read is one all the same. */
export function readRestoreMarker(dataFolder: string): RestoreMarker | undefined {
  const path = pathIn(dataFolder)
  if (!existsSync(path)) return undefined
  try {
    const { restoredAt, backup }: Partial<RestoreMarker> = JSON.parse(readFileSync(path, 'utf8'))
    return { restoredAt: String(restoredAt), backup: String(backup) }
  } catch {
    return { restoredAt: 'an unknown time', backup: 'an unknown backup' }
  }
}

export function removeRestoreMarker(dataFolder: string): Promise<void> {
  return removeDurably(pathIn(dataFolder))
}

function pathIn(dataFolder: string): string {
  return join(dataFolder, 'restored.json')
}

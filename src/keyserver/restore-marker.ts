/**
 * The mark of a data directory that was restored from a backup: nobody has said yet that the backup was the newest
 * copy. `restore` leaves it, the next start asks (`roll-back-guard.ts`) and takes it away.
 */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeDurably, writeDurably } from '../store/engine/durable-file.ts'
import { INDEX_LOG, KEY_LOG, type KeptLog } from './kept-log.ts'

export interface RestoreMarker {
  /** RFC 3339. */
  readonly restoredAt: string
  readonly backup: string
}

/** Leaves a mark for each log that may be older than the checkpoints that clients have. */
export async function writeRestoreMarker(dataFolder: string, marker: RestoreMarker): Promise<void> {
  for (const of of [INDEX_LOG, KEY_LOG])
    await writeDurably(markerPath(dataFolder, of), `${JSON.stringify(marker)}\n`, 0o600)
}

/** Its text, or undefined when there is none. A marker that can't be read is one all the same. */
export function readRestoreMarker(dataFolder: string, of: KeptLog = KEY_LOG): RestoreMarker | undefined {
  const path = markerPath(dataFolder, of)
  if (!existsSync(path)) return undefined
  try {
    const { restoredAt, backup }: Partial<RestoreMarker> = JSON.parse(readFileSync(path, 'utf8'))
    return { restoredAt: String(restoredAt), backup: String(backup) }
  } catch {
    return { restoredAt: 'an unknown time', backup: 'an unknown backup' }
  }
}

export function removeRestoreMarker(dataFolder: string, of: KeptLog): Promise<void> {
  return removeDurably(markerPath(dataFolder, of))
}

export function markerPath(dataFolder: string, { markerFile }: KeptLog): string {
  return join(dataFolder, markerFile)
}

/**
 * A data directory of a development server that is to begin anew. A marker says so before anything is removed, so that a
 * crash leaves nothing half-removed: the next start goes on.
 */

import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { removeDurably, writeDurably } from './durable-file.ts'
import { withFolderLock } from './folder-lock.ts'

/** Resolves when the marker is durable: nothing that the directory holds comes back. */
export function markForReset(dataFolder: string): Promise<void> {
  return writeDurably(markerIn(dataFolder), '', 0o600)
}

/**
 * Removes what a marked directory holds of ours, the keys of its log too, and the marker last. Throws `STORE_UNAVAILABLE`
 * while another process uses it.
 */
export async function finishReset(dataFolder: string): Promise<void> {
  if (!existsSync(markerIn(dataFolder))) return
  await withFolderLock(dataFolder, async () => {
    for (const name of HELD) await rm(join(dataFolder, name), { recursive: true, force: true })
    await removeDurably(markerIn(dataFolder))
  })
}

function markerIn(dataFolder: string): string {
  return join(dataFolder, 'reset')
}

const HELD = ['store', 'compact', 'restored.json', 'development-keys.env']

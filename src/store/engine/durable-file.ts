/** Files beside LMDB that a crash at any point leaves old or new, never half of one, and never only in memory. */

import { open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Puts `text` in the place of what the file held. A crash before the rename leaves the old file and a draft beside it,
 * which the next write replaces; one after it leaves the new file. Resolves when the new one survives a power cut. The
 * file is as public as `mode` says.
 */
export async function writeDurably(path: string, text: string, mode: number): Promise<void> {
  const draftPath = `${path}.draft`
  const draft = await open(draftPath, 'w', mode)
  try {
    await draft.writeFile(text)
    await draft.sync()
  } finally {
    await draft.close()
  }
  await rename(draftPath, path)
  await syncToDisk(dirname(path))
}

/** Resolves when the file is gone for good. */
export async function removeDurably(path: string): Promise<void> {
  await unlink(path)
  await syncToDisk(dirname(path))
}

/** Resolves when the bytes of a file, or the names in a folder, survive a power cut. */
export async function syncToDisk(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

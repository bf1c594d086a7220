/** Who else on the machine may look into a data folder: nobody, because names and addresses are in it. */

import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Closes a data folder and all that the server keeps in it. A folder that was there before and holds other things too
 * stays as it is, or one of another owner: only the server's own files are closed then. Returns whether all is closed.
 */
export function closeToOthers(dataFolder: string): boolean {
  const kept = readdirSync(dataFolder)
  for (const name of kept.filter(name => OWN.has(name))) {
    const path = join(dataFolder, name)
    if (!statSync(path).isDirectory()) tighten(path, 0o600)
    else {
      tighten(path, 0o700)
      for (const file of readdirSync(path)) tighten(join(path, file), 0o600)
    }
  }
  if (kept.every(name => OWN.has(name))) tighten(dataFolder, 0o700)
  return isClosed(dataFolder)
}

/** Where it is not ours to change, it stays as it is. */
function tighten(path: string, mode: number): void {
  if (isClosed(path)) return
  try {
    chmodSync(path, mode)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && NOT_OURS.has(error.code))) throw error
  }
}

function isClosed(path: string): boolean {
  return (statSync(path).mode & 0o077) === 0
}

/** Names that the server and `restore` put into the data folder. */
const OWN = new Set(['store', 'lock', 'restored.json', 'reset', 'compact', 'development-keys.env'])
const NOT_OURS = new Set<unknown>(['EPERM', 'EROFS'])

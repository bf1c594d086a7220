/** A file with a signing key of the program's own, made where there is none. */

import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { formatSignerKey, signerKeyFromSeed } from '../../src/log/note.ts'

/** Makes a key of this name, readable by the program's user alone. A file that is there stays. Throws as the file system. */
export function makeKeyFile(path: string, name: string): void {
  try {
    const text = `${formatSignerKey(signerKeyFromSeed(name, randomBytes(32)))}\n`
    writeFileSync(path, text, { flag: 'wx', mode: 0o600, flush: true })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

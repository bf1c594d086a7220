/** The software's version, as `package.json` says it. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

function readVersion(): string {
  // From `dist/src/server/process`.
  const path = join(import.meta.dirname, '..', '..', '..', '..', 'package.json')
  const { version }: { version: string } = JSON.parse(readFileSync(path, 'utf8'))
  return version
}

export const VERSION = readVersion()

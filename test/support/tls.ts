/** The certificates and keys of `test/support/tls`, for `localhost`: of one authority, but for that of a stranger; and a key of RSA. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_ROOT } from './vectors.ts'

export function tlsPath(name: string): string {
  return join(PROJECT_ROOT, 'test/support/tls', name)
}

export function tlsFile(name: string): string {
  return readFileSync(tlsPath(name), 'utf8')
}

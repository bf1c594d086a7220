/** Prints what the code knows of operations, events, errors, limits, settings and tables into the pages of `docs/reference`. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withParts } from './reference/markdown-table.ts'
import { referenceParts } from './reference/reference-pages.ts'

for (const [name, parts] of Object.entries(referenceParts())) {
  const path = join(import.meta.dirname, '..', '..', '..', 'docs', 'reference', name)
  writeFileSync(path, withParts(readFileSync(path, 'utf8'), parts))
}

/** Writes the list of tables in `docs/house.md`. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withTableList } from './table-list.ts'

const path = join(import.meta.dirname, '..', '..', '..', 'docs', 'house.md')
writeFileSync(path, withTableList(readFileSync(path, 'utf8')))

/** The name of this project's package, under which apps install it. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_ROOT } from './vectors.ts'

export const PACKAGE: string = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')).name

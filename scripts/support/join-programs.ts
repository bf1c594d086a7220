/**
 * A step of the build: the server and the commands, joined (`joined-programs.ts`) into `dist/joined`, which operators start. Does nothing
 * where neither code nor packages have changed since.
 */

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { BUILT, joinPrograms, LICENCES, programsIn, SERVER_PROGRAMS } from './joined-programs.ts'

const FOLDER = join(BUILT, 'joined')
/** Written at each compilation and at each installation. */
const CHANGED = [
  'src/.tsbuildinfo',
  'src/app/.tsbuildinfo',
  'scripts/.tsbuildinfo',
  '../node_modules/.package-lock.json',
]

const writtenAtMs = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs
const joinedAtMs = writtenAtMs(join(FOLDER, LICENCES)) ?? 0
if (CHANGED.some(name => (writtenAtMs(join(BUILT, name)) ?? Number.POSITIVE_INFINITY) >= joinedAtMs)) {
  await joinPrograms(FOLDER, [SERVER_PROGRAMS, programsIn('scripts', /\.js$/)])
}

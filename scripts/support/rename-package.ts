/**
 * Gives the package another name, such as one under the scope that its publisher has: `node
 * dist/scripts/support/rename-package.js @callsign/sdk`. `package.json` has the name; imports in programs, examples and
 * documents follow it.
 */

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { specifierPattern } from './package-name.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const [next] = process.argv.slice(2)
if (next === undefined || !/^@[a-z0-9-]+\/[a-z0-9-]+$/.test(next)) {
  process.stderr.write('usage: node dist/scripts/support/rename-package.js @scope/name\n')
  process.exit(2)
}
const { name, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const specifiers = specifierPattern(name, Object.keys(exports))
const dependency = new RegExp(`^(\\s*)"${name}": "file:`, 'gm')
const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0')
for (const file of files.filter(each => /\.(?:[cm]?[jt]sx?|json|md|html|kt|swift)$/.test(each))) {
  const path = join(ROOT, file)
  const before = readFileSync(path, 'utf8')
  const imported = before.replace(specifiers, specifier => next + specifier.slice(name.length))
  const depended = file.endsWith('.json') ? imported.replace(dependency, `$1"${next}": "file:`) : imported
  const after =
    file === 'package.json' || file === 'package-lock.json'
      ? depended.replaceAll(`"name": "${name}"`, `"name": "${next}"`)
      : depended
  if (after !== before) writeFileSync(path, after)
}

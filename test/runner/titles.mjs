/**
 * Lists the titles of tests that an earlier commit has and the working tree has not, as they stand in the sources: nothing is dropped
 * without its name.
 *
 *     node test/runner/titles.mjs COMMIT
 */

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { ROOT } from './processes.mjs'

const TITLE = /\bt\.test\(\s*('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)/g

const [commit] = process.argv.slice(2)
if (commit === undefined) {
  process.stderr.write('usage: node test/runner/titles.mjs COMMIT\n')
  process.exit(2)
}
const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28 })
const isTest = file => file.endsWith('.test.ts')
const now = new Set(
  git('ls-files', '--cached', '--others', '--exclude-standard', 'test')
    .split('\n')
    .filter(isTest)
    .flatMap(file => titlesIn(readIfThere(file))),
)
const gone = git('ls-tree', '-r', '--name-only', commit, 'test')
  .split('\n')
  .filter(isTest)
  .flatMap(file => titlesIn(git('show', `${commit}:${file}`)).map(title => ({ file, title })))
  .filter(({ title }) => !now.has(title))
for (const { file, title } of gone) process.stdout.write(`${file}: ${title}\n`)
process.stdout.write(`${gone.length} titles of ${commit} are gone\n`)

function titlesIn(text) {
  return Array.from(text.matchAll(TITLE), ([, title]) => title.slice(1, -1))
}

function readIfThere(file) {
  try {
    return readFileSync(new URL(file, `file://${ROOT}/`), 'utf8')
  } catch {
    return ''
  }
}

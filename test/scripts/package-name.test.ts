/** The package's name: `package.json` has it, under a scope, and every import of it in programs and documents follows. */

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { specifierPattern } from '../../scripts/support/package-name.ts'
import { PACKAGE } from '../support/package-name.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const OWN = 'test/scripts/package-name.test.ts'
const PARTS = ['./app', './app/media', './client', './package.json', './react', './server']

t.test('an import of the package is found by its name, and no path that ends alike', t => {
  const found = (text: string) => text.match(specifierPattern('callsign', PARTS)) ?? []
  for (const text of [
    "from 'callsign/app'",
    '`callsign/app/media`',
    'import("callsign/server")',
    'callsign/react.',
  ])
    t.equal(found(text).length, 1, text)
  for (const text of [
    'src/callsign/app',
    '@other/callsign/app',
    'kotlin/callsign/app',
    'callsign/apple',
    'my-callsign/app',
  ])
    t.equal(found(text).length, 0, text)
  t.end()
})

t.test('nothing imports the package by another name', t => {
  t.match(PACKAGE, /^@[a-z0-9-]+\/[a-z0-9-]+$/, 'a name of its own scope: others are open to strangers')
  const { exports } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8'))
  const unscoped = specifierPattern('callsign', Object.keys(exports))
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: PROJECT_ROOT, encoding: 'utf8' }).split('\0')
  const texts = listed.filter(file => /\.(?:[cm]?[jt]sx?|json|md|html)$/.test(file) && file !== OWN)
  t.ok(texts.length > 1_000)
  const strays = texts.filter(file => unscoped.test(readFileSync(join(PROJECT_ROOT, file), 'utf8')))
  t.same(strays, [], 'see scripts/support/rename-package.ts')
  t.end()
})

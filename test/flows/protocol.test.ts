/** docs/protocol/overview.md as a reader follows it: its commands take the program from the page, compile it strictly, and run it. */

import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runProgram } from '../support/programs.ts'
import { startServer } from '../support/server.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const page = readFileSync(join(PROJECT_ROOT, 'docs/protocol/overview.md'), 'utf8')
const [, console_ = ''] = /^```console\n([\s\S]+?)^```$/m.exec(page) ?? []

/** A line that is printed, with any ids and fingerprints. */
function withoutNumbers(line: string): string {
  return line.replaceAll(/\b\d{5}(?: \d{5}){5}\b/g, '<fingerprint>').replaceAll(/\d{6,}/g, '<id>')
}

t.test('the program of the page is compiled as it says, and prints what it shows', async t => {
  const folder = t.testdir()
  for (const name of ['dist', 'docs', 'node_modules', 'package.json']) {
    symlinkSync(join(PROJECT_ROOT, name), join(folder, name))
  }
  const server = await startServer({ dataFolder: join(folder, 'server') })
  t.teardown(() => server.end())
  const lines = console_.trimEnd().split('\n')
  const commands = lines.filter(line => line.startsWith('$ ')).map(line => line.slice(2))
  t.equal(commands.length, 6)
  const PATH = `${join(process.execPath, '..')}:/usr/bin:/bin`
  // A reader's Node has none of what the test runner puts into each.
  const script = ['set -e', 'unset NODE_OPTIONS', `cd '${folder}'`, ...commands].join('\n')
  const { code, stdout, stderr } = await runProgram('/bin/bash', ['--norc', '-c', script], {
    environment: { PATH, SERVER: server.http },
  })
  if (code !== 0) t.comment(stdout + stderr)
  t.equal(code, 0)
  const shown = lines.filter(line => !line.startsWith('$ '))
  t.same(stdout.trimEnd().split('\n').map(withoutNumbers), shown.map(withoutNumbers))
  const fingerprints = stdout.match(/\b\d{5}(?: \d{5}){5}\b/g) ?? []
  t.equal(fingerprints.length, 2)
  t.equal(fingerprints[0], fingerprints[1], 'both phones have the same key')
})

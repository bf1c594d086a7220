/** docs/start/first-call.md as a reader follows it: its commands take the program from the page and run it. */

import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runProgram } from '../support/programs.ts'
import { startServer } from '../support/server.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { blocksOf } from '../support/your-users.ts'

const [typed = '', program = ''] = blocksOf('start/first-call.md')
  .filter(({ test }) => test !== undefined)
  .map(({ text }) => text)
const FINGERPRINT = /\b\d{5}(?: \d{5}){5}\b/g

t.test('the program of the page has 25 lines at most, and prints what the page shows', async t => {
  t.ok(program.trimEnd().split('\n').length <= 25)
  const folder = t.testdir()
  for (const name of ['dist', 'docs', 'node_modules', 'package.json']) {
    symlinkSync(join(PROJECT_ROOT, name), join(folder, name))
  }
  const server = await startServer({ dataFolder: join(folder, 'server') })
  t.teardown(() => server.end())
  const lines = typed.trimEnd().split('\n')
  const commands = lines.filter(line => line.startsWith('$ ')).map(line => line.slice(2))
  const PATH = `${join(process.execPath, '..')}:/usr/bin:/bin`
  // A reader's Node has none of what the test runner puts into each.
  const script = ['set -e', 'unset NODE_OPTIONS', `cd '${folder}'`, ...commands].join('\n')
  const { code, stdout, stderr } = await runProgram('/bin/bash', ['--norc', '-c', script], {
    environment: { PATH, CALLSIGN_URL: server.http },
  })
  if (code !== 0) t.comment(stdout + stderr)
  t.equal(code, 0)
  const shown = lines.filter(line => !line.startsWith('$ ')).join('\n')
  t.equal(stdout.trimEnd().replaceAll(FINGERPRINT, '<digits>'), shown.replaceAll(FINGERPRINT, '<digits>'))
  const [anns, bobs] = stdout.match(FINGERPRINT) ?? []
  t.type(anns, 'string')
  t.equal(anns, bobs, 'both devices have the same key')
})

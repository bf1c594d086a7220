/** The modules of programs, joined into a few files. */

import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { joinPrograms, LICENCES } from '../../scripts/support/joined-programs.ts'
import { runProgram } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

t.test('joined programs run at another place, and name the licences of their packages', async t => {
  const built = join(PROJECT_ROOT, 'dist', `joined-for-${process.pid}`)
  t.teardown(() => rmSync(built, { recursive: true }))
  await joinPrograms(built, [['src/check/check-program.js'], ['scripts/callsign.js']])
  t.notOk(existsSync(join(built, 'src/main.js')), 'the server is not among them')
  const folder = t.testdir({
    'package.json': JSON.stringify({ type: 'module', version: '9.9.9' }),
    // Native packages are not joined.
    node_modules: t.fixture('symlink', join(PROJECT_ROOT, 'node_modules')),
  })
  const moved = join(folder, 'dist/joined')
  cpSync(built, moved, { recursive: true })
  const program = join(moved, 'scripts/callsign.js')
  t.match(await runProgram(process.execPath, [program, '--version']), { code: 0, stdout: '9.9.9\n' })
  const failed = await runProgram(process.execPath, [program, 'fsck', '--data-dir', join(folder, 'none')])
  t.match(failed, { code: 2, stderr: /is not there|no store|ENOENT/ })

  const licences = readFileSync(join(moved, LICENCES), 'utf8')
  t.match(licences, /^typebox \d[\d.]* \(MIT\)$/m)
  t.match(licences, /^sonic-boom \d[\d.]* \(MIT\)$/m, 'also of what packages bring')
  t.notMatch(licences, /^lmdb /m, 'it is found in node_modules')
})

/** Files dropped from an installation because it never loads them. */

import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { runProgram } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const PROGRAM = 'dist/scripts/support/prune-install.js'
const { platform, arch, versions } = process
const own = `uWebSockets.js/uws_${platform}_${arch}_${versions.modules}.node`

async function prune(folder: string, files: readonly string[], ...args: readonly string[]) {
  for (const file of files) {
    mkdirSync(dirname(join(folder, 'node_modules', file)), { recursive: true })
    writeFileSync(join(folder, 'node_modules', file), 'x')
  }
  mkdirSync(dirname(join(folder, PROGRAM)), { recursive: true })
  copyFileSync(join(PROJECT_ROOT, PROGRAM), join(folder, PROGRAM))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const outcome = await runProgram(process.execPath, [join(folder, PROGRAM), ...args])
  return { ...outcome, left: files.filter(file => existsSync(join(folder, 'node_modules', file))) }
}

t.test(
  'the installation keeps its system’s and Node’s binaries, and drops foreign ones and type declarations',
  async t => {
    const loaded = [
      own,
      'uWebSockets.js/uws.js',
      `@lmdb/lmdb-linux-x64/node.abi${versions.modules}.glibc.node`,
      '@lmdb/lmdb-linux-x64/node.napi.glibc.node',
      'other/index.js',
    ]
    const foreign = [
      'uWebSockets.js/uws_plan9_vax_1.node',
      `uWebSockets.js/uws_${platform}_${arch}_1.node`,
      '@lmdb/lmdb-linux-x64/node.abi1.glibc.node',
      '@lmdb/lmdb-linux-x64/node.napi.musl.node',
      'other/index.d.ts',
      'other/index.d.mts',
    ]
    const { code, left } = await prune(t.testdir(), [...loaded, ...foreign], '--production')
    t.equal(code, 0)
    t.same(left, loaded)
  },
)

t.test('where the binary of this system is missing, nothing goes', async t => {
  const files = ['uWebSockets.js/uws_plan9_vax_1.node', 'other/index.d.ts']
  const { code, left, stderr } = await prune(t.testdir(), files, '--production')
  t.equal(code, 1)
  t.match(stderr, /is missing, so nothing is taken out/)
  t.same(left, files)
})

t.test(
  'the build keeps the binaries of each Node that the server runs with, and all that is not of uWebSockets.js',
  async t => {
    const kept = [
      ...['115', '127', '137'].map(abi => `uWebSockets.js/uws_${platform}_${arch}_${abi}.node`),
      'uWebSockets.js/uws.js',
      '@lmdb/lmdb-linux-x64/node.abi1.glibc.node',
      'other/index.d.ts',
    ]
    const foreign = [
      'uWebSockets.js/uws_plan9_vax_115.node',
      `uWebSockets.js/uws_${platform}_${arch}_93.node`,
    ]
    const folder = t.testdir()
    const { code, left, stdout } = await prune(folder, [...kept, ...foreign])
    t.same({ code, left }, { code: 0, left: kept })
    t.match(stdout, /took out/)
    t.equal((await prune(folder, kept)).stdout, '', 'nothing is left to take out')
  },
)

t.test('a build on a system without a binary goes on', async t => {
  const files = ['uWebSockets.js/uws_plan9_vax_1.node']
  const { code, left } = await prune(t.testdir(), files)
  t.same({ code, left }, { code: 0, left: files })
})

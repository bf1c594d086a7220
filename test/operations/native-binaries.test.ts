/** Native binaries are those of this version, or of the operator's choice. */

import { appendFileSync, copyFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { foreignBinaries, loadBinaries, loadedBinaries } from '../../src/operations/native-binaries.ts'
import { builtProgram, runProgram } from '../support/programs.ts'

t.test('the binaries that are installed here are pinned', async t => {
  loadBinaries()
  const binaries = loadedBinaries()
  t.match(binaries.map(({ from }) => from).sort(), [/^@lmdb\//, /^@msgpackr-extract\//, /^uwebsockets@/])
  t.same(foreignBinaries(binaries, []), [])
})

t.test('an exchanged binary is named with its hash, until the operator allows it', async t => {
  loadBinaries()
  const { path } = loadedBinaries().find(({ from }) => from?.startsWith('@msgpackr-extract/'))!
  const changed = join(t.testdir(), 'changed.node')
  copyFileSync(path, changed)
  appendFileSync(changed, '\0')
  const script = `
    import { foreignBinaries, loadedBinaries } from ${JSON.stringify(builtProgram('src/operations/native-binaries'))}
    process.dlopen({ exports: {} }, ${JSON.stringify(changed)})
    const loaded = loadedBinaries()
    console.log(JSON.stringify([foreignBinaries(loaded, []), foreignBinaries(loaded, [loaded[0].sha256])]))`
  const { stdout } = await runProgram(process.execPath, ['--input-type=module', '-e', script])
  const [refused, allowed] = JSON.parse(stdout)
  t.equal(refused.length, 1)
  t.match(refused[0], /changed\.node has SHA-256 [0-9a-f]{64}, .*CALLSIGN_NATIVE_HASHES/)
  t.same(allowed, [])
})

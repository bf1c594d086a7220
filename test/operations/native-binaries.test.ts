/** Native binaries are those of this version, or of the operator's choice, before any of their code runs. */

import { createHash } from 'node:crypto'
import t from 'tap'
import { binariesToLoad, foreignBinaries } from '../../src/operations/native-binaries.ts'
import { productionEnvironment } from '../support/outside-world.ts'
import { builtProgram, runProgram, startedProgram } from '../support/programs.ts'

const MODULE = JSON.stringify(builtProgram('src/operations/native-binaries'))

function runScript(script: string) {
  return runProgram(process.execPath, ['--input-type=module', '-e', script])
}

t.test('the binaries that are installed here are pinned', async t => {
  const binaries = binariesToLoad()
  t.match(binaries.map(({ from }) => from).sort(), [/^@lmdb\//, /^@msgpackr-extract\//, /^uwebsockets@/])
  t.same(foreignBinaries(binaries, []), [])
})

t.test('looking at the binaries loads none, and leaves them to be loaded', async t => {
  const script = `
    import { binariesToLoad } from ${MODULE}
    const loaded = () => process.report.getReport().sharedObjects.filter(path => path.endsWith('.node')).length
    const before = [binariesToLoad().length, loaded()]
    await import('uWebSockets.js')
    const { open } = await import('lmdb')
    console.log(JSON.stringify([...before, loaded(), typeof open]))
    process.exit(0)`
  t.same(JSON.parse((await runScript(script)).stdout), [3, 0, 3, 'function'])
})

t.test('an exchanged binary is named with its hash and not loaded, until the operator allows it', async t => {
  // No library at all: loading it would say so.
  const text = 'code of a stranger'
  const path = `${t.testdir({ 'changed.node': text })}/changed.node`
  const sha256 = createHash('sha256').update(text).digest('hex')
  const load = (allowed: readonly string[]) =>
    runScript(`
      import { guardBinaries } from ${MODULE}
      const refuse = sentence => {
        console.log(sentence)
        process.exit(3)
      }
      guardBinaries(${JSON.stringify(allowed)}, refuse)
      try {
        process.dlopen({ exports: {} }, ${JSON.stringify(path)})
      } catch {
        process.exit(4)
      }`)
  const refused = await load([])
  t.equal(refused.code, 3)
  t.ok(refused.stdout.includes(`changed.node has SHA-256 ${sha256}, `))
  t.match(refused.stdout, /CALLSIGN_NATIVE_HASHES/)
  t.equal((await load(['0'.repeat(64)])).code, 3)
  t.equal((await load([sha256])).code, 4, 'it is loaded, as far as it can be')
})

t.test('a server in production refuses an exchanged binary before any of its code runs', async t => {
  // Every binary reads as an exchanged one, and says when it is loaded.
  const preload = `import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const { readFileSync } = fs
    fs.readFileSync = (path, ...others) =>
      String(path).endsWith('.node') ? Buffer.from('exchanged') : readFileSync(path, ...others)
    syncBuiltinESMExports()
    const load = process.dlopen
    process.dlopen = (...all) => {
      process.stderr.write('loaded\\n')
      load.apply(process, all)
    }`
  const sha256 = createHash('sha256').update('exchanged').digest('hex')
  const environment = {
    ...productionEnvironment(),
    CALLSIGN_DATA_DIR: t.testdir(),
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}`,
  }
  // A front gets the allowed ones as an argument.
  for (const [program, ...args] of [['src/main'], ['src/front', 'front-1', '']]) {
    const command = [startedProgram(program!), ...args]
    const { code, stderr } = await runProgram(process.execPath, command, { environment })
    t.equal(code, 1)
    t.match(stderr, new RegExp(`^callsign: .*\\.node has SHA-256 ${sha256}, .*CALLSIGN_NATIVE_HASHES`))
    t.notMatch(stderr, /loaded/)
  }
})

t.test('the doctor fails where uWebSockets.js has no binary for this Node', async t => {
  const machine = JSON.stringify(builtProgram('scripts/doctor/machine'))
  const script = `
    Object.defineProperty(process, 'versions', { value: { ...process.versions, modules: '1' } })
    const { checkMachine } = await import(${machine})
    const config = { log: {}, dataFolder: '/', fronts: 0, openFiles: [], nativeBinaries: [] }
    const findings = await checkMachine({ config })
    console.log(JSON.stringify(findings.filter(({ check, state }) => check === 'native binary' && state === 'fails')))`
  const { stdout } = await runScript(script)
  t.match(JSON.parse(stdout), [
    { check: 'native binary', detail: /^none of uWebSockets\.js is installed for Node / },
  ])
})

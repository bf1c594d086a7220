/**
 * `examples/react-native`, with what the project has: the packed SDK and React's types. React Native and its packages
 * are not among them, so the example's use of these is not checked here; docs/build/react-native.md lists the checks by hand,
 * with dates.
 */

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import t from 'tap'
import { PACKAGE } from '../support/package-name.ts'
import { long } from '../support/size.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const run = promisify(execFile)
const EXAMPLE = join(PROJECT_ROOT, 'examples/react-native')
const { dependencies, devDependencies } = JSON.parse(readFileSync(join(EXAMPLE, 'package.json'), 'utf8'))
const MISSING = Object.keys(dependencies).filter(name => name !== 'react' && name !== PACKAGE)

t.test('the example for phones fits the packed SDK', long(), async t => {
  const app = t.testdir()
  cpSync(EXAMPLE, app, { recursive: true })
  const sdk = join(app, 'node_modules', PACKAGE)
  mkdirSync(sdk, { recursive: true })
  mkdirSync(join(app, 'node_modules', '@types'))
  const packer = join(PROJECT_ROOT, 'dist/scripts/support/pack-sdk.js')
  const { stdout } = await run(process.execPath, [packer, app])
  await run('tar', ['xzf', stdout.trim(), '-C', sdk, '--strip-components=1'])
  for (const name of ['@noble', 'react', '@types/react', 'csstype']) {
    symlinkSync(join(PROJECT_ROOT, 'node_modules', name), join(app, 'node_modules', name))
  }

  const { compilerOptions } = JSON.parse(readFileSync(join(app, 'tsconfig.json'), 'utf8'))
  const modules = MISSING.map(name => `declare module '${name}'`)
  const declared = [...modules, 'declare function setTimeout(task: () => void, ms: number): number'].join(
    '\n',
  )
  writeFileSync(join(app, 'src', 'missing.d.ts'), declared)
  // Values of modules without types have none.
  compilerOptions.noImplicitAny = false
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }))
  const tsc = join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc')
  const compiled = await run(process.execPath, [tsc, '-p', app]).catch(({ stdout }) => ({ stdout }))
  t.equal(compiled.stdout, '', 'it compiles')

  const { metafile } = await build({
    absWorkingDir: app,
    entryPoints: ['index.js'],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'neutral',
    conditions: ['react-native'],
    jsx: 'automatic',
    external: [...MISSING, 'react'],
    logLevel: 'silent',
  })
  const inputs = Object.keys(metafile.inputs).join('\n')
  t.match(inputs, /primitives-portable/, 'with the cryptography that needs no Node')
  t.notMatch(inputs, /primitives-node/)
})

t.test('the example names exact versions', async t => {
  const { [PACKAGE]: sdk, ...versions } = { ...dependencies, ...devDependencies }
  t.equal(sdk, 'file:callsign-sdk.tgz')
  for (const [name, version] of Object.entries(versions)) t.match(version, /^\d+\.\d+\.\d+$/, name)
})

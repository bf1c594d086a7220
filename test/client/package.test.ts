/** The package from `npm run pack-client`: the client alone, which an app can import as it is, with types. */

import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { PROJECT_ROOT } from '../support/vectors.ts'

const run = promisify(execFile)
const PACKER = join(PROJECT_ROOT, 'dist/scripts/support/pack-client.js')
const TSC = join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc')
const SAMPLE = `import { LogClient, type LookupOutcome } from 'callsign/client'
export const keyOf = (outcome: LookupOutcome) => (outcome.kind === 'verified' ? outcome.publicKey : undefined)
export const client: (url: string) => LogClient = url => new LogClient({ url, vkey: '', vrfPublicKey: '' })
`

t.test('the packed client has types and runs, with the packages that it names and nothing else', async t => {
  const app = t.testdir()
  const { stdout } = await run(process.execPath, [PACKER, app])
  const folder = join(app, 'node_modules', 'callsign')
  mkdirSync(folder, { recursive: true })
  await run('tar', ['xzf', stdout.trim(), '-C', folder, '--strip-components=1'])
  symlinkSync(join(PROJECT_ROOT, 'node_modules', '@noble'), join(app, 'node_modules', '@noble'))
  t.same(readdirSync(folder).sort(), ['LICENSE', 'dist', 'package.json', 'src'])

  const program = `import { LogClient } from 'callsign/client'; console.log(LogClient.name)`
  writeFileSync(join(app, 'program.mjs'), program)
  for (const conditions of [[], ['--conditions=browser']]) {
    const { stdout } = await run(process.execPath, [...conditions, 'program.mjs'], { cwd: app })
    t.equal(stdout, 'LogClient\n')
  }
  writeFileSync(join(app, 'sample.mts'), SAMPLE)
  const compilerOptions = {
    module: 'nodenext',
    lib: ['es2022', 'dom'],
    types: [],
    strict: true,
    noEmit: true,
  }
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  await t.resolves(run(process.execPath, [TSC], { cwd: app }))
})

/** The package from `npm run pack-audit` (docs/check/auditor.md): npm installs it in an empty folder without a network, and it audits a server. */

import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { formatVerifierKey } from '../../src/log/note.ts'
import { registerUsers, startLog } from '../support/live-log.ts'
import { PACKAGE } from '../support/package-name.ts'
import { builtProgram, runProgram } from '../support/programs.ts'
import { entriesOf, logFilesOf, SIGNER, serveFiles } from '../support/served-log.ts'

const INSTALLED_BYTES_MAX = 1_000_000

/** All packages of the project have one. */
const SCOPE = PACKAGE.split('/')[0]!

t.test('the packed auditor is small, needs no other package, and audits a server', async t => {
  const folder = t.testdir({ packed: {}, data: {}, 'package.json': '{"private":true}' })
  const packed = await runProgram(process.execPath, [
    builtProgram('scripts/support/pack-audit'),
    join(folder, 'packed'),
  ])
  t.equal(packed.code, 0, packed.stderr)
  const install = [
    'install',
    '--prefix',
    folder,
    '--offline',
    '--no-audit',
    '--no-fund',
    packed.stdout.trim(),
  ]
  const installed = await runProgram('npm', install, { environment: { HOME: folder } })
  t.equal(installed.code, 0, installed.stderr)
  const modules = join(folder, 'node_modules')
  t.strictSame(
    readdirSync(modules).filter(name => !name.startsWith('.')),
    [SCOPE],
  )
  t.strictSame(readdirSync(join(modules, SCOPE)), ['audit'])
  const files = readdirSync(modules, { recursive: true, encoding: 'utf8' }).map(name => join(modules, name))
  const bytes = files
    .map(file => lstatSync(file))
    .filter(stat => stat.isFile())
    .reduce((sum, { size }) => sum + size, 0)
  t.ok(bytes < INSTALLED_BYTES_MAX, `${bytes} bytes`)
  t.comment(`${bytes} bytes installed`)
  t.strictSame(
    files.filter(file => file.endsWith('.node')),
    [],
    'no native module',
  )
  const { dependencies, scripts } = JSON.parse(
    readFileSync(join(modules, SCOPE, 'audit/package.json'), 'utf8'),
  )
  t.strictSame([dependencies, scripts], [undefined, undefined])

  const command = join(modules, '.bin/callsign-audit')
  const log = await startLog(t, join(folder, 'data'))
  await registerUsers(log.client, 1, 20)
  const state = join(folder, 'state.json')
  const audited = await runProgram(command, ['--url', log.http, '--vkey', log.vkey, '--state', state])
  t.equal(audited.code, 0, audited.stderr)
  t.match(audited.stdout, /20 entries from 0 on/)
  t.match((await runProgram(command, ['--help'])).stdout, /^usage: callsign-audit --url/)

  const vkey = formatVerifierKey(SIGNER)
  const [honest, forked] = [
    await serveFiles(t, logFilesOf(entriesOf(300))),
    await serveFiles(t, logFilesOf(entriesOf(400, 50))),
  ]
  const other = join(folder, 'other.json')
  const caught = await runProgram(command, [
    '--url',
    honest.url,
    '--vkey',
    vkey,
    '--state',
    other,
    '--gossip',
    forked.url,
  ])
  t.equal(caught.code, 1)
  const evidence = readdirSync(folder).find(name => name.includes('.evidence-'))!
  const explained = await runProgram(command, ['explain', join(folder, evidence), '--vkey', vkey])
  t.equal(explained.code, 0)
  t.match(explained.stdout, /^Proven: /m)
  writeFileSync(join(folder, 'nothing'), '{}')
  t.equal((await runProgram(command, ['explain', join(folder, 'nothing')])).code, 1)
})

/**
 * The pages for operators as a reader follows them: install.md, proxy.md, machines.md, kubernetes.md, backup.md, mail-and-push.md,
 * log.md, watch.md of docs/run. Their commands against a server in production, their settings as it reads them.
 */

import { generateKeyPairSync } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { freePort } from '../support/free-port.ts'
import { registerUsers } from '../support/live-log.ts'
import { eventually } from '../support/nodes.ts'
import { markedBlocks, PageShell } from '../support/page-shell.ts'
import { builtProgram, runProgram, skipWithout } from '../support/programs.ts'
import { startServer } from '../support/server.ts'
import { long } from '../support/size.ts'

const SELF = 'test/flows/operator-pages.test.ts'
const skip = skipWithout(['/usr/bin/jq', '/usr/bin/openssl'], 'jq openssl')
const blocks = (page: string, language = 'console') =>
  markedBlocks(`docs/run/${page}.md`, SELF).flatMap(block =>
    block.language === language ? [block.text] : [],
  )

function newShell(folder: string): PageShell {
  const here = (path: string) => join(folder, path)
  for (const path of ['srv/callsign', 'srv/callsign-head', 'srv/new-head', 'backup', 'etc/callsign'])
    mkdirSync(here(path), { recursive: true })
  const replaced = {
    '/srv/': here('srv/'),
    '/backup/': here('backup/'),
    '/etc/callsign': here('etc/callsign'),
  }
  return new PageShell(folder, Object.fromEntries(Object.entries(replaced).map(withSlash)))
}

/** `join` keeps the slash at the end of a folder. */
function withSlash([from, to]: [string, string]): [string, string] {
  return [from, from.endsWith('/') && !to.endsWith('/') ? `${to}/` : to]
}

/** Settings of a server in production, with new keys. */
async function newSettings(shell: PageShell): Promise<Record<string, string>> {
  const args = [builtProgram('scripts/callsign'), 'keygen', '--origin', 'kt.example.org/log']
  const { stdout } = await runProgram(process.execPath, args)
  return {
    ...(parseEnv(stdout) as Record<string, string>),
    CALLSIGN_DATA_DIR: shell.here('/srv/callsign/data'),
    CALLSIGN_LOG_HEAD_FILE: shell.here('/srv/callsign-head/checkpoint'),
    CALLSIGN_PUBLIC_URL: 'https://call.example.org',
    CALLSIGN_HTTP_HOST: '127.0.0.1',
    CALLSIGN_HTTP_PORT: `${await freePort()}`,
    CALLSIGN_GRPC_PORT: `${await freePort()}`,
    CALLSIGN_ADMIN_PORT: `${await freePort()}`,
    CALLSIGN_SERVER_API_PORT: `${await freePort()}`,
    CALLSIGN_FRONTS: '0',
    CALLSIGN_INDEX_SECONDS: '1',
  }
}

function writeSettings(path: string, settings: Readonly<Record<string, string>>): void {
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(path, lines.join(''), { mode: 0o600 })
}

t.test('doctor, backup, restore, fsck of a server with 60 entries', long({ skip }), async t => {
  const shell = newShell(t.testdir())
  const environment = await newSettings(shell)
  writeSettings(join(shell.folder, 'callsign.env'), environment)
  const dataFolder = environment.CALLSIGN_DATA_DIR!
  const server = await startServer({ dataFolder, environment, dev: false })
  t.teardown(() => server.end())
  const client = new RegisterClient(server.grpc)
  t.teardown(() => client.close())
  await registerUsers(client, 1, 40)
  const [, , doctor] = blocks('install')
  await shell.follows(t, doctor!)
  const [head, backup, restore, knownCheckpoint, fsck] = blocks('backup')
  await shell.follows(t, head!)
  await shell.follows(t, backup!)
  await registerUsers(client, 100, 20)
  const headFile = environment.CALLSIGN_LOG_HEAD_FILE!
  await eventually(async () => t.match(readFileSync(headFile, 'utf8'), /\n60\n/))
  t.equal(await server.end(), 0)
  copyFileSync(headFile, shell.here('/backup/newest'))
  await shell.follows(t, restore!)
  await shell.follows(t, knownCheckpoint!)
  await shell.follows(t, fsck!)
})

t.test('keys, settings and certificates', { skip }, async t => {
  const shell = newShell(t.testdir())
  const [keys, settings] = blocks('install')
  const all = [
    keys,
    settings,
    ...blocks('proxy'),
    ...blocks('log'),
    ...blocks('machines'),
    ...blocks('kubernetes'),
  ]
  t.equal(all.length, 8)
  for (const block of all) await shell.follows(t, block!)
})

for (const page of ['install', 'mail-and-push', 'proxy']) {
  t.test(`the server takes the settings of ${page}.md`, async t => {
    const shell = newShell(t.testdir())
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const pem = privateKey.export({ format: 'pem', type: 'pkcs8' })
    writeFileSync(shell.here('/etc/callsign/apple.p8'), pem, { mode: 0o600 })
    const given = await newSettings(shell)
    const found = blocks(page, 'env')
    t.ok(found.length > 0)
    for (const block of found) {
      const file = join(shell.folder, 'block.env')
      writeSettings(file, { ...given, ...(parseEnv(shell.here(block)) as Record<string, string>) })
      const args = [builtProgram('scripts/callsign'), 'config', 'check', '--config', file]
      const { code, stdout, stderr } = await runProgram(process.execPath, args)
      t.equal(code, 0, stdout + stderr)
    }
  })
}

const PROMTOOL = '/usr/bin/promtool'

t.test('Prometheus takes the lines of watch.md', { skip: skipWithout([PROMTOOL], 'prometheus') }, async t => {
  const shell = newShell(t.testdir())
  const [lines = ''] = blocks('watch', 'yaml')
  const file = join(shell.folder, 'prometheus.yaml')
  writeFileSync(file, lines.replace('/opt/callsign', shell.folder))
  const { code, stderr } = await runProgram(PROMTOOL, ['check', 'config', file])
  t.equal(code, 0, stderr)
})

/** The `audit` command against the server itself, as an operator's neighbour runs it. */

import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import type { Finding } from '../../scripts/audit/finding.ts'
import { readSettings } from '../../scripts/audit/settings.ts'
import { formatVerifierKey } from '../../src/log/note.ts'
import { newStateFile } from '../support/audit.ts'
import { type LiveLog, lookUp, registerKey, registerUsers, startLog } from '../support/live-log.ts'
import { runProgram, spawnBound, startedProgram } from '../support/programs.ts'
import { entriesOf, logFilesOf, SIGNER, serveFiles } from '../support/served-log.ts'

const AUDIT = startedProgram('scripts/audit')
const CALLSIGN = startedProgram('scripts/callsign')

type Environment = Readonly<Record<string, string>>

/** Runs the command to its end; `findings` are its lines. */
async function runAudit(args: readonly string[], environment: Environment = {}, program = [AUDIT]) {
  const { code, stdout, stderr } = await runProgram(process.execPath, [...program, ...args], { environment })
  const lines = stdout.split('\n').slice(0, -1)
  return { code, stderr, findings: lines.map(line => JSON.parse(line) as Finding & { time: string }) }
}

function argumentsFor({ http, vkey }: LiveLog, stateFile: string): string[] {
  return ['--url', http, '--vkey', vkey, '--state', stateFile]
}

function failuresOf(findings: readonly Finding[]): string[] {
  return findings.filter(({ ok }) => ok !== true).map(({ check, ok }) => `${check} ${ok}`)
}

t.test('a server’s log is audited, grows, and the audit goes on from there', async t => {
  const log = await startLog(t, t.testdir())
  const stateFile = newStateFile(t)
  const empty = await runAudit(argumentsFor(log, stateFile))
  t.equal(empty.code, 0)
  await registerUsers(log.client, 1, 300)
  const first = await runAudit(argumentsFor(log, stateFile))
  t.equal(first.code, 0, JSON.stringify(first))
  t.strictSame(
    first.findings.map(({ check }) => check),
    ['checkpoint', 'consistency', 'fetch', 'entries', 'tiles', 'state'],
  )
  t.ok(
    first.findings.every(
      ({ ok, detail, time }) => ok === true && detail !== '' && !Number.isNaN(Date.parse(time)),
    ),
  )
  await registerUsers(log.client, 1_000, 250)
  const second = await runAudit(argumentsFor(log, stateFile))
  t.equal(second.code, 0)
  t.match(second.findings.find(({ check }) => check === 'entries')?.detail, /^250 entries from 300 on/)
  const unchanged = await runAudit(argumentsFor(log, stateFile))
  t.equal(unchanged.code, 0)
  t.notOk(unchanged.findings.some(({ check }) => check === 'entries'))
})

t.test(
  'keys from the environment, proofs from the API, the log itself as gossip, as `callsign audit`',
  async t => {
    const log = await startLog(t, t.testdir())
    const users = await registerUsers(log.client, 1, 20)
    const results = await lookUp(
      log.http,
      users.map(({ vrfHash }) => vrfHash),
    )
    const stateFile = newStateFile(t)
    const proofsFile = `${stateFile}.proofs`
    const lines = users.map(({ userId, deviceId }, at) =>
      JSON.stringify({ userID: `${userId}`, deviceID: `${deviceId}`, ...results[at] }),
    )
    writeFileSync(proofsFile, lines.join('\n'))
    await registerKey(log.client, 5n, 1n)
    const args = ['audit', '--url', `${log.http}/`, '--state', stateFile, '--proofs', proofsFile]
    const gossip = ['--gossip', log.http, '--gossip', `${log.http}//`]
    const environment = { KT_PUBLIC_KEY: log.vkey, VRF_PUBLIC_KEY: log.vrfPublicKey }
    const { code, findings } = await runAudit([...args, ...gossip], environment, [CALLSIGN])
    t.equal(code, 0, JSON.stringify(findings))
    t.match(findings.find(({ check }) => check === 'proofs')?.detail, '20 proofs hold')
    t.equal(findings.filter(({ check }) => check === 'gossip').length, 2)
  },
)

t.test('a server with rolled-back data is caught, also when it grows past its old size', async t => {
  const folder = t.testdir({ now: {} })
  const data = join(folder, 'now')
  const backup = join(folder, 'backup')
  const stop = async (log: LiveLog) => {
    log.client.close()
    await log.end()
  }
  const young = await startLog(t, data)
  await registerUsers(young.client, 1, 10)
  await stop(young)
  cpSync(data, backup, { recursive: true })
  const grown = await startLog(t, data)
  await registerUsers(grown.client, 100, 10)
  const stateFile = newStateFile(t)
  t.equal((await runAudit(argumentsFor(grown, stateFile))).code, 0)
  const state = readFileSync(stateFile, 'utf8')
  await stop(grown)

  const restored = await startLog(t, backup)
  const shorter = await runAudit(argumentsFor(restored, stateFile))
  t.equal(shorter.code, 3)
  t.strictSame(failuresOf(shorter.findings), ['consistency null'])
  await registerUsers(restored.client, 200, 30)
  const rewritten = await runAudit(argumentsFor(restored, stateFile))
  t.equal(rewritten.code, 1)
  t.strictSame(failuresOf(rewritten.findings), ['consistency false'])
  t.equal(readFileSync(stateFile, 'utf8'), state)
})

/** The command under way: its lines are waited for. */
function follow(t: Test, args: readonly string[]) {
  const child = spawnBound(process.execPath, [AUDIT, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const code = new Promise(resolve => child.once('close', (exitCode, signal) => resolve(exitCode ?? signal)))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  /** Reads on to the first line that is wanted. */
  const until = async (isWanted: (finding: Finding) => boolean): Promise<Finding> => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error('the output ended')
      const finding = JSON.parse(value) as Finding
      if (isWanted(finding)) return finding
    }
  }
  return { child, code, until }
}

t.test('--follow audits the log as it grows, and ends with 0 on SIGTERM', async t => {
  const log = await startLog(t, t.testdir())
  await registerUsers(log.client, 1, 5)
  const { child, code, until } = follow(t, [...argumentsFor(log, newStateFile(t)), '--follow', '0.05'])
  t.match(await until(({ check }) => check === 'entries'), { detail: /^5 entries from 0 on/ })
  await registerUsers(log.client, 100, 7)
  const grown = await until(({ check, treeSize }) => check === 'checkpoint' && treeSize === '12')
  t.equal(grown.ok, true)
  t.match(await until(({ check }) => check === 'state'), { detail: /size 12/ })
  child.kill('SIGTERM')
  t.equal(await code, 0)
})

t.test('--follow goes on over fetch errors, and ends with 1 at the first cheating', async t => {
  const server = await serveFiles(t, logFilesOf(entriesOf(300)))
  const args = ['--url', server.url, '--vkey', formatVerifierKey(SIGNER), '--state', newStateFile(t)]
  const { code, until } = follow(t, [...args, '--follow', '0.05'])
  t.match(await until(({ check }) => check === 'state'), { detail: /size 300/ })
  const files = server.files
  server.files = new Map()
  t.match(await until(({ ok }) => ok !== true), { check: 'fetch', ok: null })
  t.match(await until(({ ok }) => ok !== true), { check: 'fetch', ok: null }, 'again and again')
  server.files = files
  t.match(await until(({ check }) => check === 'consistency'), { ok: true })
  server.files = logFilesOf(entriesOf(400, 200))
  t.match(await until(({ ok }) => ok === false), { check: 'consistency', notes: [String, String] })
  t.equal(await code, 1)
})

t.test('a single audit that is stopped has not checked the log: 2', async t => {
  const server = await serveFiles(t, new Map(), () => child.kill('SIGTERM'))
  const args = ['--url', server.url, '--vkey', formatVerifierKey(SIGNER), '--state', newStateFile(t)]
  const { child, code } = follow(t, args)
  t.equal(await code, 2)
})

t.test('wrong usage: 2, with a sentence and the usage', async t => {
  const stateFile = newStateFile(t)
  const vkey = formatVerifierKey(SIGNER)
  const good = ['--url', 'http://127.0.0.1:1', '--vkey', vkey, '--state', stateFile]
  const wrong: [string[], RegExp][] = [
    [[], /--url is missing/],
    [good.slice(2), /--url is missing/],
    [good.slice(0, 4), /--state is missing/],
    [[...good.slice(0, 2), ...good.slice(4)], /--policy or KT_PUBLIC_KEY is missing/],
    [[...good, '--unknown'], /--unknown/],
    [[...good, 'word'], /word/],
    [[...good, '--url', 'ftp://example.org'], /--url ftp/],
    [[...good, '--url', 'example.org/log'], /--url example/],
    [[...good, '--url', 'https://user:secret@example.org/'], /--url/],
    [[...good, '--gossip', 'nowhere'], /--gossip nowhere/],
    [[...good, '--mirror', 'nowhere'], /--mirror nowhere/],
    [[...good, '--vkey', 'example.org+00000000+AAAA'], /--vkey: verifier key/],
    [[...good, '--vrf-key', 'AAAA'], /--vrf-key: vrf public key/],
    [[...good, '--proofs', 'file'], /--proofs needs --vrf-key/],
    [[...good, '--follow', '0'], /--follow 0 is not/],
    [[...good, '--follow', 'soon'], /--follow soon/],
    [[...good, '--max-age', '-5'], /--max-age/],
    [[...good, '--serve', '8086'], /--serve needs --follow/],
    [[...good, '--follow', '1', '--serve', '70000'], /--serve 70000 is not a port/],
    [[...good, '--follow', '1', '--serve', '0', '--name', 'a b'], /--name a b has spaces/],
  ]
  for (const [args, message] of wrong) t.throws(() => readSettings(args, {}), { message }, args.join(' '))
  t.match(readSettings(good, {}), { stateFile, gossip: [], followMs: undefined })

  const { code, stderr, findings } = await runAudit(good.slice(2))
  t.equal(code, 2)
  t.match(stderr, /^audit: --url is missing\n\nusage: /)
  t.strictSame(findings, [])
  t.equal((await runProgram(process.execPath, [AUDIT, '--help'])).code, 0)
})

t.test('an unusable state file: 2, in one line', async t => {
  const stateFile = newStateFile(t)
  writeFileSync(stateFile, 'not a state')
  const vkey = formatVerifierKey(SIGNER)
  const { code, findings } = await runAudit([
    '--url',
    'http://127.0.0.1:1',
    '--vkey',
    vkey,
    '--state',
    stateFile,
  ])
  t.equal(code, 2)
  t.strictSame(failuresOf(findings), ['state null'])
})

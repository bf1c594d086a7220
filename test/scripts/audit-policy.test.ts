/** `--policy`: the auditor asks for the cosignatures of a quorum of witnesses, and lately, where clients do. */

import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { readSettings } from '../../scripts/audit/settings.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { cosignatureLine, formatWitnessKey, witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import { formatVerifierKey, type SignerKey, signerKeyFromSeed } from '../../src/log/note.ts'
import { audit, newStateFile } from '../support/audit.ts'
import { registerUsers, startLog } from '../support/live-log.ts'
import { runProgram, startedProgram } from '../support/programs.ts'
import { entriesOf, integrate, logFilesOf, SIGNER, serveFiles, setCheckpoint } from '../support/served-log.ts'
import { quorumOf, startWitnessOf, witnessedLog } from '../support/witnessed-log.ts'

const [w2, w3, w4] = [2, 3, 4].map(seed => witnessKeyFromSeed(`w${seed}`, new Uint8Array(32).fill(seed))) as [
  SignerKey,
  SignerKey,
  SignerKey,
]
const WITNESSES = [w2, w3, w4].map(key => `witness ${key.name} ${formatWitnessKey(key)}\n`).join('')
const QUORUM = `${WITNESSES}group two 2 w2 w3 w4\nquorum two\n`
const NEW_KEY = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(8))
const NOW_S = 1_800_000_000

/** The settings of an audit by the policy. */
function settingsOf(t: Test, policy: string) {
  const file = join(t.testdir(), 'policy')
  writeFileSync(file, policy)
  const { verifiers, quorum } = readSettings(
    ['--url', 'http://127.0.0.1', '--state', 'none', '--policy', file],
    {},
  )!
  return { verifiers, quorum, nowMs: () => NOW_S * 1_000 }
}

/** The usual log with its checkpoint cosigned. */
function cosigned(size: number, ...by: readonly (readonly [SignerKey, number])[]) {
  const files = logFilesOf(entriesOf(size))
  const note = Buffer.from(files.get('checkpoint')!).toString()
  const text = note.slice(0, note.indexOf('\n\n') + 1)
  return setCheckpoint(files, note + by.map(([key, at]) => cosignatureLine(text, key, at)).join(''))
}

t.test('a checkpoint with the quorum’s cosignatures holds; without them: witnesses', async t => {
  const settings = settingsOf(t, `log ${formatVerifierKey(SIGNER)}\n${QUORUM}`)
  const log = await serveFiles(t, cosigned(300, [w2, NOW_S - 90], [w4, NOW_S - 30]))
  const good = await audit({ ...settings, url: log.url, stateFile: newStateFile(t) })
  t.strictSame([good.verdict, good.failures], [0, []])
  t.match(good.of('witnesses'), { ok: true, detail: new Date((NOW_S - 90) * 1_000).toISOString() })
  for (const files of [
    cosigned(300),
    cosigned(300, [w2, NOW_S]),
    cosigned(300, [w2, NOW_S], [witnessKeyFromSeed('w3', new Uint8Array(32).fill(7)), NOW_S]),
  ]) {
    log.files = files
    const { verdict, failures, of } = await audit({ ...settings, url: log.url, stateFile: newStateFile(t) })
    t.strictSame([verdict, failures], [3, ['witnesses null']])
    t.match(of('tiles'), { ok: true }, 'the tree is read all the same')
    t.match(of('state'), { detail: /kept in .*pending/ }, 'and not remembered')
  }
})

t.test('a server’s log that two witnesses cosign holds by its own policy, and lately', async t => {
  const log = witnessedLog(t)
  const witnesses = [await startWitnessOf(t, log, 'one.example'), await startWitnessOf(t, log, 'two.example')]
  const policy = log.setPolicy(quorumOf(2, witnesses))
  const server = await startLog(t, log.dataFolder, log.environment)
  await registerUsers(server.client, 1, 20)
  const file = join(dirname(newStateFile(t)), 'policy')
  writeFileSync(file, policy)
  const args = ['--url', server.http, '--policy', file, '--max-age', '600', '--state', newStateFile(t)]
  const good = await runProgram(process.execPath, [startedProgram('scripts/audit'), ...args])
  t.equal(good.code, 0, good.stdout)
  t.match(good.stdout, /"check":"witnesses","ok":true/)
  t.match(good.stdout, /20 entries from 0 on/)
  // Another reader's policy asks for a witness that this log has not.
  const stranger = formatWitnessKey(witnessKeyFromSeed('three.example', new Uint8Array(32).fill(3)))
  writeFileSync(file, `log ${log.vkey}\nwitness three ${stranger}\nquorum three\n`)
  const bad = await runProgram(process.execPath, [startedProgram('scripts/audit'), ...args])
  t.equal(bad.code, 3)
  t.match(bad.stdout, /"check":"witnesses","ok":null/)
})

t.test('with --max-age the quorum must have seen it lately: stale', async t => {
  const settings = settingsOf(t, `log ${formatVerifierKey(SIGNER)}\n${QUORUM}`)
  const log = await serveFiles(t, cosigned(300, [w2, NOW_S - 61], [w3, NOW_S]))
  const stateFile = newStateFile(t)
  const old = await audit({ ...settings, url: log.url, stateFile, maxAgeMs: 60_000 })
  t.strictSame([old.verdict, old.failures], [3, ['stale null']])
  log.files = cosigned(300, [w2, NOW_S - 60], [w3, NOW_S])
  t.equal((await audit({ ...settings, url: log.url, stateFile, maxAgeMs: 60_000 })).verdict, 0)
  // The same tree an hour later, seen again by the witnesses: it has not grown and is not stale.
  log.files = cosigned(300, [w2, NOW_S + 3_600], [w3, NOW_S + 3_600])
  const nowMs = () => (NOW_S + 3_600) * 1_000
  const later = await audit({ ...settings, url: log.url, stateFile, maxAgeMs: 60_000, nowMs })
  t.strictSame([later.verdict, later.failures], [0, []])
})

t.test('without witnesses a fork is a fork', async t => {
  const settings = settingsOf(t, `log ${formatVerifierKey(SIGNER)}\n${QUORUM}`)
  const log = await serveFiles(t, cosigned(300, [w2, NOW_S], [w3, NOW_S]))
  const forked = await serveFiles(t, logFilesOf(entriesOf(300, 50)))
  const stateFile = newStateFile(t)
  const { failures } = await audit({ ...settings, url: log.url, stateFile, gossip: [forked.url] })
  t.strictSame(failures, ['gossip false'])
})

t.test('a policy with two keys of one log takes the notes of either', async t => {
  const keys = [SIGNER, NEW_KEY].map(key => `log ${formatVerifierKey(key)}\n`).join('')
  const settings = settingsOf(t, `${keys}quorum none\n`)
  const stateFile = newStateFile(t)
  const log = await serveFiles(t, logFilesOf(entriesOf(300)))
  t.equal((await audit({ ...settings, url: log.url, stateFile })).verdict, 0)
  log.files = setCheckpoint(logFilesOf(entriesOf(400)), signCheckpoint(integrate(entriesOf(400)), NEW_KEY))
  t.equal((await audit({ ...settings, url: log.url, stateFile })).verdict, 0)
  t.equal((await audit({ ...settings, url: log.url, stateFile })).verdict, 0, 'also as the one remembered')
  t.match(await audit({ url: log.url, stateFile: newStateFile(t) }), { failures: ['checkpoint null'] })
})

t.test('a policy that is none, or is of no log or of two, or beside --vkey: wrong usage', t => {
  const vkey = formatVerifierKey(SIGNER)
  const other = formatVerifierKey(signerKeyFromSeed('other.example', new Uint8Array(32).fill(3)))
  for (const [policy, message] of [
    [QUORUM, /policy has no log/],
    [`log ${vkey}\nlog ${other}\nquorum none\n`, /2 logs, not one/],
    [`log ${vkey}\n`, /no quorum line/],
    ['hello', /line 1/],
  ] as const)
    t.throws(() => settingsOf(t, policy), { message }, policy)
  const file = join(t.testdir(), 'policy')
  const args = ['--url', 'http://127.0.0.1', '--state', 'none', '--policy', file]
  t.throws(() => readSettings(args, {}), { message: /--policy .*policy: / }, 'no such file')
  t.throws(() => readSettings([...args, '--vkey', vkey], {}), { message: /place of --vkey/ })
  t.end()
})

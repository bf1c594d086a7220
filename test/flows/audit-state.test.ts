/** The auditor's state, and the states it refuses to build on. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { formatCheckpoint, signCheckpoint } from '../../src/log/checkpoint.ts'
import { signerKeyFromSeed, signNote } from '../../src/log/note.ts'
import { audit, newStateFile, refusalOf } from '../support/audit.ts'
import { entriesOf, integrate, logFilesOf, SIGNER, serveFiles, setCheckpoint } from '../support/served-log.ts'

const HOUR_MS = 3_600_000

t.test('a state file that is not one, or is of another log or key: 2, and it stays as it is', async t => {
  const server = await serveFiles(t, logFilesOf(entriesOf(10)))
  const good = newStateFile(t)
  await audit({ url: server.url, stateFile: good })
  const text = readFileSync(good, 'utf8')
  const stateFile = newStateFile(t)
  const unusable = {
    'nothing in it': '',
    'no JSON': 'hello',
    'cut off': text.slice(0, -40),
    'another form': '{"treeSize":10}',
    'another origin': text.replaceAll('example.org/log', 'other.example/log'),
    'another signature': text.replace(/.{8}=\\n"/, 'AAAAAAA=\\n"'),
    'a size unlike its note': text.replace('"treeSize": 10', '"treeSize": 9'),
    'a root unlike its note': text.replace(/"rootHash": "..../, '"rootHash": "AAAA'),
    'a time that is none': text.replace(/"verifiedAt": "[^"]*/, '"verifiedAt": "lately'),
    'another program': text.replace('"audit"', '"verify-proof"'),
  }
  for (const [what, content] of Object.entries(unusable)) {
    writeFileSync(stateFile, content)
    t.match(await refusalOf(audit({ url: server.url, stateFile })), { check: 'state', ok: null }, what)
    t.equal(readFileSync(stateFile, 'utf8'), content, what)
  }
  t.strictSame(new Set(Object.values(unusable)).size, Object.keys(unusable).length, 'each differs')
  const otherKey = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(9))
  const rekeyed = audit({ url: server.url, stateFile: good, verifier: otherKey })
  t.match(await refusalOf(rekeyed), { check: 'state', ok: null }, 'another key of the same origin')
  server.requests.length = 0
  const noFolder = join(dirname(stateFile), 'none', 'state.json')
  for (const path of [dirname(stateFile), noFolder]) {
    t.match(await refusalOf(audit({ url: server.url, stateFile: path })), { check: 'state', ok: null }, path)
  }
  t.strictSame(server.requests, [], 'nothing was asked of the log')
})

t.test('a state file that cannot be written: 2', async t => {
  const server = await serveFiles(t, logFilesOf(entriesOf(10)))
  const stateFile = newStateFile(t)
  server.misbehave = path => {
    // In the way only once the audit is under way.
    if (path === 'checkpoint') mkdirSync(stateFile)
    return false
  }
  const { verdict, failures } = await audit({ url: server.url, stateFile })
  t.equal(verdict, 2)
  t.strictSame(failures, ['state null'])
})

t.test('progress that is of no use, or not of this history, is not built on', async t => {
  const server = await serveFiles(t, logFilesOf(entriesOf(600)))
  const foreign = integrate(entriesOf(512, 0))
  const rootHash = Buffer.from(foreign.rootHash).toString('base64')
  for (const progress of [
    'hello',
    '{}',
    JSON.stringify({ treeSize: '512', rootHash }),
    JSON.stringify({ treeSize: '900', rootHash }),
    JSON.stringify({ treeSize: 512, rootHash }),
    JSON.stringify({ treeSize: '512', rootHash: 'AAAA' }),
  ]) {
    const stateFile = newStateFile(t)
    writeFileSync(`${stateFile}.progress`, progress)
    const { verdict, of } = await audit({ url: server.url, stateFile })
    t.equal(verdict, 0)
    t.match(of('entries'), { detail: /^600 entries from 0 on/ }, progress)
  }
})

t.test('a log without a new checkpoint for longer than --max-age is stale', async t => {
  const server = await serveFiles(t, logFilesOf(entriesOf(10)))
  const stateFile = newStateFile(t)
  let nowMs = Date.UTC(2026, 0, 1)
  const poll = () => audit({ url: server.url, stateFile, maxAgeMs: HOUR_MS, nowMs: () => nowMs })
  t.equal((await poll()).verdict, 0, 'seen for the first time')
  nowMs += HOUR_MS
  t.equal((await poll()).verdict, 0, 'an hour old')
  nowMs += 1_000
  const stale = await poll()
  t.equal(stale.verdict, 3)
  t.match(stale.of('stale'), {
    ok: null,
    alarm: true,
    detail: /^no new checkpoint since 2026-01-01T00:00:00/,
  })
  server.files = logFilesOf(entriesOf(11))
  t.equal((await poll()).verdict, 0, 'it grew')
  nowMs += 2 * HOUR_MS
  t.equal((await poll()).verdict, 3, 'and is stale again')
})

t.test(
  'the same tree signed anew is a new checkpoint; another signature beside the old one is none',
  async t => {
    const { treeSize, rootHash } = integrate(entriesOf(10))
    const textWith = (extension: string) =>
      formatCheckpoint({ origin: SIGNER.name, treeSize, rootHash, extensions: [extension] })
    const server = await serveFiles(t, logFilesOf(entriesOf(10)))
    setCheckpoint(server.files, signNote(textWith('monday'), [SIGNER]))
    const stateFile = newStateFile(t)
    let nowMs = Date.UTC(2026, 0, 1)
    const poll = () => audit({ url: server.url, stateFile, maxAgeMs: HOUR_MS, nowMs: () => nowMs })
    await poll()
    nowMs += 2 * HOUR_MS
    const witness = signerKeyFromSeed('witness.example', new Uint8Array(32).fill(7))
    setCheckpoint(server.files, signNote(textWith('monday'), [SIGNER, witness]))
    t.equal((await poll()).verdict, 3)
    setCheckpoint(server.files, signNote(textWith('tuesday'), [SIGNER]))
    t.equal((await poll()).verdict, 0)
    nowMs += HOUR_MS
    t.equal((await poll()).verdict, 0)
  },
)

t.test('an audit that is stopped rejects at once', async t => {
  const stop = new AbortController()
  const server = await serveFiles(t, logFilesOf(entriesOf(600)), path => {
    if (path === 'tile/entries/001') stop.abort()
    return path === 'tile/entries/001'
  })
  await t.rejects(audit({ url: server.url, stateFile: newStateFile(t), stop: stop.signal }), {
    name: 'AbortError',
  })
})

t.test('a checkpoint is remembered only after its tree was read', async t => {
  const files = logFilesOf(entriesOf(600))
  const server = await serveFiles(t, files)
  const stateFile = newStateFile(t)
  setCheckpoint(files, signCheckpoint(integrate(entriesOf(600)), SIGNER))
  const state = () => {
    try {
      return JSON.parse(readFileSync(stateFile, 'utf8')).checkpoints.at(-1).treeSize
    } catch {
      return undefined
    }
  }
  server.misbehave = path => {
    if (state() !== undefined) t.fail(`remembered before ${path} was read`)
    return false
  }
  await audit({ url: server.url, stateFile })
  t.equal(state(), 600)
})

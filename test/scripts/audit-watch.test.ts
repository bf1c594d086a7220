/** `--watch`: new entries under hashes that a person looks after, and the index that finds them. */

import { appendFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Finding } from '../../scripts/audit/finding.ts'
import { HashIndex } from '../../scripts/audit/hash-index.ts'
import { parseEntry } from '../../src/log/entry.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { audit, newStateFile } from '../support/audit.ts'
import { registerKey, registerUsers, startLog } from '../support/live-log.ts'
import { entriesOf, entryOf, logFilesOf, serveFiles } from '../support/served-log.ts'

function hashOf(entry: Uint8Array): string {
  return Buffer.from(parseEntry(entry).vrfHash).toString('base64')
}

function watchFile(t: Test, ...lines: readonly string[]): string {
  const file = join(t.testdir(), 'watch')
  writeFileSync(file, lines.map(line => `${line}\n`).join(''))
  return file
}

/** The findings of `watch`: entries that are new, and sentences for the rest. */
function watchedIn(findings: readonly Finding[]): string[] {
  return findings
    .filter(({ check }) => check === 'watch')
    .map(({ index, label, detail }) => (index === undefined ? detail : `${label} ${index}`))
}

t.test('a server’s new entry under a watched hash is reported once, with 0', async t => {
  const log = await startLog(t, t.testdir())
  const ann = await registerKey(log.client, 1n, 1n)
  await registerUsers(log.client, 100, 300)
  const file = watchFile(t, '# Ann', `${ann.vrfHash} Ann's phone`)
  const settings = {
    url: log.http,
    verifier: parseVerifierKey(log.vkey),
    stateFile: newStateFile(t),
    watchFile: file,
  }
  const first = await audit(settings)
  t.equal(first.verdict, 0)
  t.match(watchedIn(first.findings), [
    /^the watch of Ann's phone begins: 1 entries, the newest is entry \d+$/,
  ])
  t.strictSame(watchedIn((await audit(settings)).findings), [], 'nothing is new')
  await registerUsers(log.client, 1_000, 50)
  const added = await registerKey(log.client, 1n, 1n)
  t.equal(added.vrfHash, ann.vrfHash)
  const second = await audit(settings)
  t.equal(second.verdict, 0)
  t.strictSame(watchedIn(second.findings), [`Ann's phone ${added.index}`])
  t.strictSame(watchedIn((await audit(settings)).findings), [])
})

t.test('each of several new entries is reported, across rounds and without a label', async t => {
  const hash = hashOf(entryOf(7))
  const entries = entriesOf(300)
  const log = await serveFiles(t, logFilesOf(entries))
  const settings = { url: log.url, stateFile: newStateFile(t), watchFile: watchFile(t, hash) }
  await audit(settings)
  log.files = logFilesOf([...entries, entryOf(7), entryOf(600), entryOf(7)])
  t.strictSame(watchedIn((await audit(settings)).findings), [`${hash} 300`, `${hash} 302`])
  appendFileSync(settings.watchFile, `${hashOf(entryOf(8))} other\n`)
  t.strictSame(watchedIn((await audit(settings)).findings), [
    'the watch of other begins: 1 entries, the newest is entry 8',
  ])
  appendFileSync(settings.watchFile, `${hashOf(entryOf(900))} none\n`)
  t.strictSame(watchedIn((await audit(settings)).findings), ['the watch of none begins: 0 entries'])
})

t.test(
  'an index that is not there, or is behind what other runs read, is made from the whole log',
  async t => {
    const entries = entriesOf(300)
    const log = await serveFiles(t, logFilesOf(entries))
    const settings = { url: log.url, stateFile: newStateFile(t) }
    const watching = { ...settings, watchFile: watchFile(t, `${hashOf(entryOf(7))} seven`) }
    await audit(settings)
    t.match(watchedIn((await audit(watching)).findings), [/newest is entry 7$/])
    log.files = logFilesOf([...entries, entryOf(7)])
    await audit(settings)
    t.strictSame(watchedIn((await audit(watching)).findings), ['seven 300'], 'which the other run has read')
    rmSync(`${settings.stateFile}.hashes`)
    log.files = logFilesOf([...entries, entryOf(7), entryOf(7)])
    t.strictSame(watchedIn((await audit(watching)).findings), ['seven 301'])
  },
)

t.test('entries of a tree that does not hold are not reported, nor believed later', async t => {
  const hash = hashOf(entryOf(7))
  const honest = logFilesOf(entriesOf(800))
  const forged = logFilesOf(entriesOf(800).with(600, entryOf(7)))
  const log = await serveFiles(t, new Map(forged).set('checkpoint', honest.get('checkpoint')!))
  const settings = { url: log.url, stateFile: newStateFile(t), watchFile: watchFile(t, `${hash} seven`) }
  const lying = await audit(settings)
  t.strictSame([lying.failures, watchedIn(lying.findings)], [['tiles null'], []])
  log.files = honest
  const { verdict, findings } = await audit(settings)
  t.strictSame(
    [verdict, watchedIn(findings)],
    [0, ['the watch of seven begins: 1 entries, the newest is entry 7']],
  )
})

t.test('a watch file that is none: 2', async t => {
  const log = await serveFiles(t, logFilesOf(entriesOf(10)))
  for (const line of ['hello', hashOf(entryOf(1)).slice(0, -4), `${hashOf(entryOf(1))}=`]) {
    const { verdict, failures, of } = await audit({
      url: log.url,
      stateFile: newStateFile(t),
      watchFile: watchFile(t, '', line),
    })
    t.strictSame([verdict, failures], [2, ['watch null']], line)
    t.match(of('watch'), { detail: /line 2: not a VRF hash/, line: 2 })
  }
  const stateFile = newStateFile(t)
  t.strictSame((await audit({ url: log.url, stateFile, watchFile: `${stateFile}.none` })).failures, [
    'watch null',
  ])
})

/** A bundle of entries, as the crawl hands it over. */
function bundleOf(entries: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    entries.flatMap(entry => [Uint8Array.of(entry.length >> 8, entry.length & 255), entry]),
  )
}

t.test(
  'the index finds the newest entry of each hash, also after it was opened again or went back',
  async t => {
    const path = join(t.testdir(), 'hashes')
    const hashes = (index: HashIndex, numbers: readonly number[]) =>
      numbers.map(number => index.newest(hashOf(entryOf(number))))
    const entries = entriesOf(20_000)
    const index = HashIndex.open(path, 'example.org/log')
    for (let first = 0; first < entries.length; first += 256) {
      index.append(first, bundleOf(entries.slice(first, first + 256)))
    }
    t.strictSame(hashes(index, [0, 19_999]), [undefined, undefined], 'not before the tree is verified')
    index.verify()
    t.ok(entries.every((entry, at) => index.newest(hashOf(entry)) === at))
    t.equal(index.newest(hashOf(entryOf(20_000))), undefined)
    index.startAfter(20_000)
    // A partial bundle comes again from its first entry.
    index.append(19_968, bundleOf([...entries.slice(19_968), entryOf(5), entryOf(20_000)]))
    index.verify()
    t.strictSame(hashes(index, [4, 5, 19_999, 20_000]), [4, 20_000, 19_999, 20_001])
    index.close()
    const again = HashIndex.open(path, 'example.org/log')
    t.equal(again.verifiedSize, 20_002)
    t.strictSame(hashes(again, [4, 5, 20_000]), [4, 20_000, 20_001])
    again.startAfter(20_000)
    again.append(20_000, bundleOf([entryOf(6)]))
    again.verify()
    t.strictSame(hashes(again, [5, 6, 20_000]), [5, 20_000, undefined])
    again.append(20_001, bundleOf([entryOf(7)]))
    again.close()
    const killed = HashIndex.open(path, 'example.org/log')
    t.equal(killed.verifiedSize, 20_001, 'an entry of a tree that was not verified does not count')
    killed.startAfter(100)
    killed.append(100, bundleOf([entryOf(8), entryOf(8)]))
    killed.close()
    const wentBack = HashIndex.open(path, 'example.org/log')
    t.equal(wentBack.verifiedSize, 100, 'nor one in the place of an older one')
    wentBack.close()
    HashIndex.open(path, 'other.example').close()
    t.equal(statSync(path).size, 56, 'another log begins anew')
    writeFileSync(path, readFileSync(path).subarray(0, 20))
    const cut = HashIndex.open(path, 'other.example')
    t.equal(cut.verifiedSize, 0)
    cut.close()
  },
)

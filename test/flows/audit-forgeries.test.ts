/**
 * Each way to tamper with a log, built as a forger would build it, and what the auditor says of it: an accusation where the
 * log's own signatures prove it, else a wait for the files that were signed, as behind a broken cache.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { Finding } from '../../scripts/audit/finding.ts'
import { formatCheckpoint, signCheckpoint } from '../../src/log/checkpoint.ts'
import { signerKeyFromSeed, signNote } from '../../src/log/note.ts'
import { type AuditOutcome, audit, newStateFile } from '../support/audit.ts'
import {
  changeByte,
  entriesOf,
  entryOf,
  integrate,
  type LogFiles,
  logFilesOf,
  SIGNER,
  serveFiles,
  setCheckpoint,
} from '../support/served-log.ts'
import { formatBundle } from '../support/tiles.ts'

/** The usual log has two full bundles and a partial one. */
const SIZE = 600
const ENTRY_BYTES = 134
const BUNDLED_BYTES = 2 + ENTRY_BYTES

async function auditFiles(t: Test, files: LogFiles): Promise<AuditOutcome> {
  const server = await serveFiles(t, files)
  return audit({ url: server.url, stateFile: newStateFile(t) })
}

/** An audit of the usual log at `size`, then one of the files in `next`. */
async function auditTwice(t: Test, size: number, next: LogFiles) {
  const server = await serveFiles(t, logFilesOf(entriesOf(size)))
  const stateFile = newStateFile(t)
  t.equal((await audit({ url: server.url, stateFile })).verdict, 0)
  const before = readFileSync(stateFile, 'utf8')
  server.files = next
  const outcome = await audit({ url: server.url, stateFile })
  t.equal(readFileSync(stateFile, 'utf8'), before, 'the good state stays')
  return { ...outcome, server, stateFile }
}

/** Exit 1 for one reason; returns the finding. */
function caught(
  t: Test,
  { verdict, failures, findings }: AuditOutcome,
  check: string,
  detail: RegExp,
): Finding {
  t.equal(verdict, 1)
  t.strictSame(failures, [`${check} false`])
  const finding = findings.find(({ ok }) => ok === false)
  t.match(finding?.detail, detail)
  return finding!
}

/** Exit 3 for one reason, without an accusation; returns the finding. */
function unshown(
  t: Test,
  { verdict, failures, findings }: AuditOutcome,
  check: string,
  detail: RegExp,
): Finding {
  t.equal(verdict, 3)
  t.strictSame(failures, [`${check} null`])
  const finding = findings.find(({ ok }) => ok === null)
  t.match(finding, { detail, pending: true, notes: undefined })
  return finding!
}

function noteOf(files: LogFiles): string {
  return Buffer.from(files.get('checkpoint')!).toString()
}

const entryForgeries: [string, number, string][] = [
  ['the first entry', 0, 'tile/entries/000'],
  ['an entry in the middle of a full bundle', 300, 'tile/entries/001'],
  ['the last entry, in the partial bundle', 599, 'tile/entries/002.p/88'],
]
for (const [what, index, path] of entryForgeries) {
  t.test(`${what} is changed: entries, with its index`, async t => {
    const files = logFilesOf(entriesOf(SIZE))
    // A letter of the public key.
    const outcome = await auditFiles(t, changeByte(files, path, (index % 256) * BUNDLED_BYTES + 100))
    const finding = unshown(t, outcome, 'entries', /entry \d+ is not the one in the tree/)
    t.equal(finding.index, String(index))
  })
}

t.test('an entry is changed and the hash in its tile with it: tiles', async t => {
  const files = logFilesOf(entriesOf(SIZE))
  const forged = logFilesOf(entriesOf(SIZE).with(300, entryOf(300, 1)))
  for (const path of ['tile/entries/001', 'tile/0/001']) files.set(path, forged.get(path)!)
  unshown(t, await auditFiles(t, files), 'tiles', /tile\/1\/000\.p\/2 has another hash at position 1/)
})

t.test('an entry is changed and every hash above it, but not the checkpoint: tiles', async t => {
  const forged = logFilesOf(entriesOf(SIZE).with(300, entryOf(300, 1)))
  setCheckpoint(forged, noteOf(logFilesOf(entriesOf(SIZE))))
  unshown(t, await auditFiles(t, forged), 'tiles', /root of all 600 entries is not the one/)
})

for (const [path, position] of [
  ['tile/0/000', 255],
  ['tile/0/001', 44],
  ['tile/0/002.p/88', 87],
  ['tile/1/000.p/2', 0],
] as const) {
  t.test(`a hash in ${path} is changed: tiles, not the entry`, async t => {
    const files = changeByte(logFilesOf(entriesOf(SIZE)), path, position * 32 + 5)
    const finding = unshown(t, await auditFiles(t, files), 'tiles', new RegExp(`position ${position}`))
    t.match(finding.detail, path)
  })
}

t.test('a hash in any tile of any level is noticed', async t => {
  const files = logFilesOf(entriesOf(66_000))
  const server = await serveFiles(t, files)
  const unnoticed: string[] = []
  for (const path of ['tile/0/256', 'tile/0/257.p/208', 'tile/1/000', 'tile/1/001.p/1', 'tile/2/000.p/1']) {
    const bytes = files.get(path)!
    changeByte(files, path, bytes.length - 1)
    const { failures } = await audit({ url: server.url, stateFile: newStateFile(t) })
    if (failures.join() !== 'tiles null') unnoticed.push(`${path}: ${failures}`)
    files.set(path, bytes)
  }
  t.strictSame(unnoticed, [])
})

t.test('the checkpoint is signed again, with another root: tiles', async t => {
  const files = logFilesOf(entriesOf(SIZE))
  const { rootHash } = integrate(entriesOf(SIZE, 10))
  setCheckpoint(files, signCheckpoint({ treeSize: SIZE, rootHash }, SIGNER))
  unshown(
    t,
    await auditFiles(t, files),
    'tiles',
    /root of all 600 entries is not the one that the log signed/,
  )
})

t.test('an empty log signs a root that is not the empty one: tiles', async t => {
  const { rootHash } = integrate(entriesOf(1))
  const text = formatCheckpoint({ origin: SIGNER.name, treeSize: 0, rootHash, extensions: [] })
  const files = setCheckpoint(new Map(), signNote(text, [SIGNER]))
  caught(t, await auditFiles(t, files), 'tiles', /root of all 0 entries/)
})

t.test('the checkpoint of a known size is signed again, with another root: consistency', async t => {
  const files = logFilesOf(entriesOf(SIZE))
  const { rootHash } = integrate(entriesOf(SIZE, 10))
  setCheckpoint(files, signCheckpoint({ treeSize: SIZE, rootHash }, SIGNER))
  const outcome = await auditTwice(t, SIZE, files)
  caught(t, outcome, 'consistency', /size 600 has two roots/)
})

for (const [from, forkedAt] of [
  [600, 0],
  [600, 599],
  [512, 300],
  [1, 0],
] as const) {
  t.test(
    `history is rewritten from entry ${forkedAt} on, grown from ${from} and signed: consistency`,
    async t => {
      const forged = logFilesOf(entriesOf(900, forkedAt))
      const outcome = await auditTwice(t, from, forged)
      const finding = caught(
        t,
        outcome,
        'consistency',
        new RegExp(`size 900 does not begin with that of size ${from}`),
      )
      t.strictSame(
        finding.notes,
        [noteOf(logFilesOf(entriesOf(from))), noteOf(forged)],
        'both notes are printed',
      )
    },
  )
}

t.test('both notes of a rewritten history are kept in a file of their own, once', async t => {
  const forged = logFilesOf(entriesOf(900, 0))
  const { server, stateFile } = await auditTwice(t, SIZE, forged)
  const evidence = () =>
    readdirSync(dirname(stateFile))
      .filter(name => name.includes('evidence'))
      .map(name => readFileSync(join(dirname(stateFile), name), 'utf8'))
  const [kept, ...others] = evidence()
  t.strictSame(others, [])
  t.strictSame(JSON.parse(kept!).notes, [noteOf(logFilesOf(entriesOf(SIZE))), noteOf(forged)])
  await audit({ url: server.url, stateFile })
  t.strictSame(evidence(), [kept], 'with the time it was found')
})

t.test(
  'a log that grew shows tiles that do not lead to its new root: consistency, with both notes pending',
  async t => {
    const files = logFilesOf(entriesOf(900))
    const { rootHash } = integrate(entriesOf(900, 0))
    setCheckpoint(files, signCheckpoint({ treeSize: 900, rootHash }, SIGNER))
    unshown(t, await auditTwice(t, SIZE, files), 'consistency', /do not lead to the root of size 900/)
  },
)

t.test('the log is shorter than it was, and the beginning of what it was: stale', async t => {
  const shorter = logFilesOf(entriesOf(599))
  // The tiles of the known tree are there, as behind a cache, or the shown size is one that was verified before.
  for (const [path, bytes] of logFilesOf(entriesOf(SIZE))) if (!shorter.has(path)) shorter.set(path, bytes)
  const finding = unshown(
    t,
    await auditTwice(t, SIZE, shorter),
    'stale',
    /size 599 is a beginning of the known 600/,
  )
  t.equal(finding.treeSize, '599')
})

t.test('a size that was verified before needs no tiles: stale, or consistency', async t => {
  const server = await serveFiles(t, logFilesOf(entriesOf(370)))
  const settings = { url: server.url, stateFile: newStateFile(t) }
  await audit(settings)
  server.files = logFilesOf(entriesOf(SIZE))
  await audit(settings)
  server.files = setCheckpoint(new Map(), noteOf(logFilesOf(entriesOf(370))))
  unshown(t, await audit(settings), 'stale', /size 370 is a beginning of the known 600/)
  const forked = noteOf(logFilesOf(entriesOf(370, 369)))
  server.files = setCheckpoint(new Map(), forked)
  const finding = caught(t, await audit(settings), 'consistency', /size 370 has two roots/)
  t.strictSame(finding.notes, [noteOf(logFilesOf(entriesOf(370))), forked])
})

t.test('an old entry is changed in the bundle that the next run goes on with: entries', async t => {
  const files = changeByte(logFilesOf(entriesOf(900)), 'tile/entries/002', (520 - 512) * BUNDLED_BYTES + 100)
  const finding = unshown(
    t,
    await auditTwice(t, SIZE, files),
    'entries',
    /entry 520 is not the one in the tree/,
  )
  t.equal(finding.index, '520')
})

t.test('the last entry is removed from its bundle: entries', async t => {
  const files = logFilesOf(entriesOf(SIZE))
  files.set('tile/entries/002.p/88', formatBundle(entriesOf(SIZE).slice(512, 599)))
  const finding = unshown(t, await auditFiles(t, files), 'entries', /cut off/)
  t.equal(finding.index, '599')
})

t.test('an entry is removed and all that follow move up: entries', async t => {
  const files = logFilesOf(entriesOf(SIZE))
  const without = entriesOf(SIZE).toSpliced(300, 1)
  files.set('tile/entries/001', formatBundle(without.slice(256, 512)))
  files.set('tile/entries/002.p/88', formatBundle(without.slice(512)))
  const finding = unshown(t, await auditFiles(t, files), 'entries', /entry 300 is not the one in the tree/)
  t.equal(finding.index, '300')
})

t.test(
  'an entry is removed from the whole log, which is signed again: pending, and consistency once it grew',
  async t => {
    const without = entriesOf(SIZE + 50).toSpliced(300, 1)
    unshown(t, await auditTwice(t, SIZE, logFilesOf(without.slice(0, SIZE - 1))), 'consistency', /missing/)
    caught(t, await auditTwice(t, SIZE, logFilesOf(without)), 'consistency', /does not begin with/)
  },
)

t.test(
  'a second key under one user’s hash is a legal tree, which the owner and not the auditor notices',
  async t => {
    const injected = entryOf(42)
    injected.set(Buffer.from('QUJD'), 89)
    const { verdict } = await auditFiles(t, logFilesOf([...entriesOf(SIZE), injected]))
    t.equal(verdict, 0)
  },
)

const brokenEntries: [string, string | Uint8Array][] = [
  ['an empty key', `${'A'.repeat(86)}==\n\n`],
  ['one line', `${'A'.repeat(86)}==\n`],
  ['three lines', `${'A'.repeat(86)}==\nAAAA\nAAAA\n`],
  ['no newline at its end', `${'A'.repeat(86)}==\nAAAA`],
  ['a carriage return', `${'A'.repeat(86)}==\r\nAAAA\n`],
  ['a hash of 63 bytes', `${'A'.repeat(84)}\nAAAA\n`],
  ['a hash of 65 bytes', `${'A'.repeat(87)}=\nAAAA\n`],
  ['a hash that is not canonical', `${'A'.repeat(85)}B==\nAAAA\n`],
  ['a key that is not canonical', `${'A'.repeat(86)}==\nAB==\n`],
  ['a key in the URL alphabet', `${'A'.repeat(86)}==\n__-_\n`],
  ['bytes that are no text', Uint8Array.of(0xff, 0xfe)],
  ['no bytes at all', ''],
]
for (const [what, text] of brokenEntries) {
  t.test(`an entry in the tree has ${what}: entries, with its index`, async t => {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    const files = logFilesOf(entriesOf(SIZE).with(257, bytes))
    const finding = caught(t, await auditFiles(t, files), 'entries', /^entry 257: /)
    t.equal(finding.index, '257')
  })
}

t.test('a key longer than Register takes is not the auditor’s business', async t => {
  const long = Buffer.from(`${'A'.repeat(86)}==\n${'A'.repeat(60_000)}\n`)
  t.equal((await auditFiles(t, logFilesOf(entriesOf(300).with(299, long)))).verdict, 0)
})

t.test('a bundle that goes on after its last entry: entries', async t => {
  const files = logFilesOf(entriesOf(SIZE))
  files.set('tile/entries/002.p/88', formatBundle(entriesOf(SIZE + 1).slice(512)))
  unshown(t, await auditFiles(t, files), 'entries', /goes on after 88 entries/)
})

t.test('signed by another key, or for another origin: checkpoint', async t => {
  const files = logFilesOf(entriesOf(SIZE))
  const otherKey = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(9))
  const otherName = signerKeyFromSeed('other.example/log', new Uint8Array(32).fill(1))
  const { treeSize, rootHash } = integrate(entriesOf(SIZE))
  const otherOrigin = formatCheckpoint({ origin: 'other.example/log', treeSize, rootHash, extensions: [] })
  const notes = {
    'another key of the same name': signCheckpoint({ treeSize, rootHash }, otherKey),
    'another log': signCheckpoint({ treeSize, rootHash }, otherName),
    'another origin, signed by this log': signNote(otherOrigin, [SIGNER]),
    'a changed size': noteOf(files).replace('\n600\n', '\n601\n'),
    'a changed signature': noteOf(files).replace(/.{8}\n$/, 'AAAAAAA=\n'),
    'no signature': noteOf(files).split('\n\n')[0]!,
    'an empty file': '',
  }
  for (const [what, note] of Object.entries(notes)) {
    const outcome = await auditFiles(t, setCheckpoint(new Map(files), note))
    t.strictSame([what, outcome.verdict, ...outcome.failures], [what, 3, 'checkpoint null'])
  }
})

t.test('extension lines and foreign signatures are accepted', async t => {
  const { treeSize, rootHash } = integrate(entriesOf(SIZE))
  const text = formatCheckpoint({ origin: SIGNER.name, treeSize, rootHash, extensions: ['extra line'] })
  const witness = signerKeyFromSeed('witness.example', new Uint8Array(32).fill(7))
  const files = setCheckpoint(logFilesOf(entriesOf(SIZE)), signNote(text, [witness, SIGNER]))
  t.equal((await auditFiles(t, files)).verdict, 0)
})

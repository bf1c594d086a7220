/** `--index`: the map is rebuilt from the entries, and every leaf of the output log compared. */

import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { AuditServer } from '../../scripts/audit/audit-server.ts'
import { explain } from '../../scripts/audit/explain.ts'
import { readSettings } from '../../scripts/audit/settings.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { hashLeaf } from '../../src/log/hash.ts'
import { indexKeyOfEntry } from '../../src/log/index-leaf.ts'
import { formatVerifierKey, openNote, signerKeyFromSeed } from '../../src/log/note.ts'
import { type AuditSettings, audit, newStateFile, openAuditor } from '../support/audit.ts'
import { entryUnder, INDEX_KEYS, INDEX_SIGNER, IndexedLog, keysOf } from '../support/indexed-log.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { type FileServer, integrate, SIGNER, serveFiles, setCheckpoint } from '../support/served-log.ts'
import { formatBundle } from '../support/tiles.ts'

const DAY_MS = 86_400_000

/** An audit with the index. */
function auditOf(server: FileServer, stateFile: string, more: Partial<AuditSettings> = {}) {
  return audit({ url: server.url, stateFile, index: INDEX_KEYS, ...more })
}

/** The judgement on the evidence file beside the state, or undefined where there is none. */
function explained(stateFile: string, vkeys: readonly string[] = []) {
  const file = evidenceOf(stateFile)
  if (file === undefined) return undefined
  let text = ''
  const flags = vkeys.flatMap(vkey => ['--vkey', vkey])
  const code = explain([file, ...flags], part => {
    text += part
  })
  return { file, code, text }
}

function evidenceOf(stateFile: string): string | undefined {
  const folder = dirname(stateFile)
  const [name] = readdirSync(folder).filter(each => each.includes('.evidence-'))
  return name && join(folder, name)
}

t.test('an honest index holds, leaf by leaf, and a later run reads only new files', async t => {
  const log = new IndexedLog(keysOf(300)).addLeaf({ size: 0 }).addLeaf({ size: 7 }).addLeaf().addLeaf()
  const server = await serveFiles(t, log.files)
  const stateFile = newStateFile(t)
  const { verdict, failures, of, findings } = await auditOf(server, stateFile)
  t.strictSame([verdict, failures], [0, []])
  t.equal(server.requests[0], 'index/checkpoint', 'before that of the log, which a leaf may be of')
  t.equal(new Set(server.requests).size, server.requests.length, 'each file is asked for once')
  t.match(of('index'), {
    origin: INDEX_SIGNER.name,
    detail: /^4 leaves from 0 on have the root of the map, rebuilt from 300 entries/,
  })
  t.strictSame(
    findings.filter(({ origin }) => origin !== undefined).map(({ check }) => check),
    ['checkpoint', 'fetch', 'entries', 'tiles', 'state', 'index'],
  )
  log.entries.push(...keysOf(400, 300))
  log.addLeaf({ size: 500 }).addLeaf()
  server.files = log.files
  server.requests.length = 0
  const later = await auditOf(server, stateFile)
  t.strictSame([later.verdict, later.failures], [0, []])
  t.match(later.of('index')?.detail, /^2 leaves from 4 on .* 700 entries/)
  t.notOk(server.requests.includes('tile/entries/000'), 'entries of the map are not read again')
  server.requests.length = 0
  t.equal((await auditOf(server, stateFile)).verdict, 0)
  t.strictSame(server.requests.sort(), ['checkpoint', 'index/checkpoint'], 'nothing new costs two requests')
})

t.test('an index of any growth holds, however often the auditor looks and starts anew', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const log = new IndexedLog([])
  const server = await serveFiles(t, log.addLeaf().files)
  const stateFile = newStateFile(t)
  const { auditor } = openAuditor({ url: server.url, stateFile: newStateFile(t), index: INDEX_KEYS })
  t.teardown(() => auditor.close())
  for (let round = 0; round < 8; round++) {
    const start = log.entries.length
    log.entries.push(...keysOf(Math.floor(random() * 300), start))
    for (let size = start; size < log.entries.length; size += 1 + Math.floor(random() * 99))
      log.addLeaf({ size })
    if (random() < 0.5) log.addLeaf()
    server.files = log.files
    t.equal(await auditor.run(), 0, `seed ${seed}`)
    t.equal((await auditOf(server, stateFile)).verdict, 0, `seed ${seed}`)
  }
})

const otherLog = signerKeyFromSeed('other.example/log', new Uint8Array(32).fill(1))
const stranger = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(9))

/** Each adds leaves to an index of 300 entries with one good leaf. One of them is a lie. */
const lies: Readonly<Record<string, (log: IndexedLog) => unknown>> = {
  'an entry left out': log => log.addLeaf({ mapOf: log.entries.slice(0, -1) }),
  'one key changed': log => log.addLeaf({ mapOf: log.entries.with(100, entryUnder(9_999, 1)) }),
  'an entry moved': log =>
    log.addLeaf({ mapOf: log.entries.with(5, log.entries[6]!).with(6, log.entries[5]!) }),
  'an entry too many': log => log.addLeaf({ mapOf: [...log.entries, entryUnder(1, 1)] }),
  'a wrong leaf with good ones behind it': log =>
    log.addLeaf({ size: 250, mapOf: log.entries }).addLeaf().addLeaf(),
  'a smaller tree than before': log => log.addLeaf().addLeaf({ size: 200 }).addLeaf(),
  'a leaf of another log': log =>
    log.addLeaf({ checkpoint: signCheckpoint(integrate(log.entries), otherLog) }).addLeaf(),
  'a leaf of another form': log => {
    log.leaves.push(Buffer.from('{"input_log_cp":"","index_root":[]}'))
  },
  'a tree of another history that a stranger signed': log =>
    log.addLeaf({ checkpoint: signCheckpoint(integrate(keysOf(300, 1)), stranger) }).addLeaf(),
}

for (const [name, lie] of Object.entries(lies))
  t.test(`${name} is proven, by one file without a network`, async t => {
    const log = new IndexedLog(keysOf(300)).addLeaf({ size: 100 })
    lie(log)
    const server = await serveFiles(t, log.files)
    const stateFile = newStateFile(t)
    for (const _ of ['first', 'again']) {
      const { verdict, of } = await auditOf(server, stateFile)
      t.equal(verdict, 1)
      t.match(of('index'), { ok: false, origin: INDEX_SIGNER.name })
    }
    const found = explained(stateFile)
    t.equal(found?.code, 0, `${found?.text}`)
    t.match(found?.text, /^Proven: the owner of the index's key signed what is not so\. Compare/m)
    t.equal(explained(stateFile, [SIGNER, INDEX_SIGNER].map(formatVerifierKey))?.code, 0)
    t.equal(explained(stateFile, [formatVerifierKey(stranger)])?.code, 1, 'not of the key that is named')

    // Another auditor needs only the file.
    const others = newStateFile(t)
    const good = await serveFiles(t, new IndexedLog(keysOf(300)).addLeaf().files)
    const told = await auditOf(good, others, { notesFiles: [found!.file] })
    t.equal(told.verdict, 1)
    t.ok(told.failures.includes('notes false'), told.failures.join())

    const text = readFileSync(found!.file, 'utf8')
    const random = randomFrom(seedOf())
    for (let edit = 0; edit < 40; edit++) {
      const at = Math.floor(random() * text.length)
      const letter = text[at] === 'A' ? 'B' : 'A'
      writeFileSync(found!.file, text.slice(0, at) + letter + text.slice(at + 1))
      const edited = explained(stateFile)
      if (edited?.code === 0) t.match(edited.text, /Proven/, 'only what says nothing of the leaf may change')
      t.ok([0, 1].includes(edited!.code))
    }
  })

t.test('evidence of an honest leaf proves nothing, whatever its proof says', async t => {
  const lying = new IndexedLog(keysOf(40)).addLeaf({ size: 10 })
  lying.addLeaf({ mapOf: lying.entries.slice(1) })
  const server = await serveFiles(t, lying.files)
  const stateFile = newStateFile(t)
  await auditOf(server, stateFile)
  const file = evidenceOf(stateFile)!
  const evidence = JSON.parse(readFileSync(file, 'utf8'))
  t.equal(evidence.proof.kind, 'entries')
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
  // The first leaf is good: all that can be said of it by its tree of ten entries.
  const first = { index: '0', leaf: base64(lying.leaves[0]!), path: [base64(hashLeaf(lying.leaves[1]!))] }
  const second = { ...evidence.leaf }
  for (const [name, changed] of Object.entries({
    'the entries of another tree': { leaf: first },
    'its own entries': {
      leaf: first,
      proof: { kind: 'entries', bundles: [base64(formatBundle(lying.entries.slice(0, 10)))] },
    },
    'of its form': { leaf: first, proof: { kind: 'leaf' } },
    'a later leaf as an earlier one': { leaf: first, proof: { kind: 'earlier', ...second } },
    'an earlier leaf of a smaller tree': { proof: { kind: 'earlier', ...first } },
    'a tree that goes on from it': {
      proof: {
        kind: 'tree',
        note: lying.checkpoint(),
        oldRoot: base64(integrate(lying.entries).rootHash),
        hashes: [],
      },
    },
    'no proof': { proof: null },
    'a proof of no kind': { proof: { kind: 'other' } },
    'a leaf that is not in the tree': { leaf: { ...first, leaf: second.leaf } },
    'another origin': {
      indexVkey: [formatVerifierKey(signerKeyFromSeed('a/index', new Uint8Array(32).fill(2)))],
    },
    'no keys': { vkey: [] },
  })) {
    writeFileSync(file, JSON.stringify({ ...evidence, ...changed }))
    t.equal(explained(stateFile)?.code, 1, name)
  }
  writeFileSync(file, JSON.stringify({ ...evidence, proof: null }))
  t.match(explained(stateFile)?.text, /An auditor with --index and a new state file rebuilds/)
})

t.test('of too many entries for a file, what the server answers under the wrong root proves it', async t => {
  const large = Array.from({ length: 130 }, (_, index) => entryUnder(index, index, 49_000))
  const log = new IndexedLog(large).addLeaf({ size: 100 })
  log.addLeaf({ mapOf: large.slice(0, -3) })
  const server = await serveFiles(t, log.files)
  log.answerLookups(server)
  const stateFile = newStateFile(t)
  t.equal((await auditOf(server, stateFile)).verdict, 1)
  const found = explained(stateFile)
  t.equal(found?.code, 0, `${found?.text}`)
  t.match(found?.text, /^Entry 129 of the tree that the leaf names .* that hash has not entry 129\.$/m)
  t.ok(statSync(found!.file).size < 200_000)
  const evidence = JSON.parse(readFileSync(found!.file, 'utf8'))
  const { proof } = evidence
  for (const [name, changed] of Object.entries({
    'an entry that is not in the tree': { leaf: Buffer.from(entryUnder(129, 7)).toString('base64') },
    'an entry of another hash': { key: Buffer.from(indexKeyOfEntry(large[3]!)).toString('base64') },
    'another value': { value: [1] },
  })) {
    writeFileSync(found!.file, JSON.stringify({ ...evidence, proof: { ...proof, ...changed } }))
    t.equal(explained(stateFile)?.code, 1, name)
  }

  // A server that answers nothing leaves a file that says how it can be seen.
  server.misbehave = () => false
  const other = newStateFile(t)
  t.equal((await auditOf(server, other)).verdict, 1, 'it was seen all the same')
  t.equal(explained(other)?.code, 1)
  t.match(explained(other)?.text, /the entries are too many for it/)
})

t.test('a leaf with a fork of the log is proven by both notes', async t => {
  const log = new IndexedLog(keysOf(300)).addLeaf({ size: 100 })
  const fork = new IndexedLog([...log.entries.slice(0, 200), ...keysOf(100, 1_000)])
  log.addLeaf({ size: 250, checkpoint: fork.checkpoint(250), mapOf: fork.entries.slice(0, 250) }).addLeaf()
  const server = await serveFiles(t, log.files)
  const stateFile = newStateFile(t)
  const { verdict, findings } = await auditOf(server, stateFile)
  t.equal(verdict, 1)
  const ofLog = findings.find(({ check, origin }) => check === 'index' && origin === undefined)
  t.match(ofLog, { ok: false, notes: [/\n300\n/, /\n250\n/] })
  t.ok(findings.some(({ check, origin, ok }) => check === 'index' && origin !== undefined && ok === false))
})

t.test('a leaf of a tree that the log has not shown waits, and is held against it later', async t => {
  const whole = new IndexedLog(keysOf(300)).addLeaf({ size: 100 }).addLeaf()
  const late = new IndexedLog(keysOf(200))
  late.leaves.push(...whole.leaves)
  const server = await serveFiles(t, late.files)
  const stateFile = newStateFile(t)
  const { verdict, findings } = await auditOf(server, stateFile)
  t.equal(verdict, 3)
  t.match(
    findings.find(({ ok }) => ok !== true),
    { check: 'index', ok: null, pending: true },
  )
  server.files = whole.files
  t.equal((await auditOf(server, stateFile)).verdict, 0)

  const fork = new IndexedLog([...keysOf(250), ...keysOf(100, 1_000)])
  const other = newStateFile(t)
  server.files = late.files
  t.equal((await auditOf(server, other)).verdict, 3)
  fork.leaves.push(...whole.leaves)
  server.files = fork.files
  t.equal((await auditOf(server, other)).verdict, 1, 'the log went on from another tree')
})

t.test('two output logs are found out at one place, at two, and by notes', async t => {
  const log = new IndexedLog(keysOf(300)).addLeaf({ size: 100 })
  const fork = log.fork().addLeaf({ size: 90, mapOf: [] }).addLeaf()
  log.addLeaf({ size: 150 }).addLeaf()
  const [server, forked] = [await serveFiles(t, log.files), await serveFiles(t, fork.files)]
  const gossip = await auditOf(server, newStateFile(t), { gossip: [forked.url] })
  t.equal(gossip.verdict, 1)
  t.match(gossip.of('gossip'), { ok: false, origin: INDEX_SIGNER.name, url: `${forked.url}/index` })

  const stateFile = newStateFile(t)
  t.equal((await auditOf(server, stateFile)).verdict, 0)
  const notesFile = `${stateFile}.notes`
  const note = Buffer.from(forked.files.get('index/checkpoint')!).toString()
  writeFileSync(notesFile, `${log.checkpoint(200)}\n${note}`)
  const told = await auditOf(server, newStateFile(t), { notesFiles: [notesFile] })
  t.equal(told.verdict, 1)
  t.match(told.of('notes'), { ok: false, origin: INDEX_SIGNER.name })
  const blind = await audit({ url: server.url, stateFile: newStateFile(t), notesFiles: [notesFile] })
  t.equal(blind.verdict, 0, 'an auditor without --index ignores notes of the index')

  server.files = forked.files
  const later = await auditOf(server, stateFile)
  t.equal(later.verdict, 1)
  t.match(later.of('consistency'), { ok: false })
  t.equal(explained(stateFile)?.code, 0)
  t.match(explained(stateFile)?.text, INDEX_SIGNER.name)
})

t.test('leaves that were taken out or are not shown wait; changed ones are a fork', async t => {
  const log = new IndexedLog(keysOf(300)).addLeaf({ size: 100 }).addLeaf({ size: 200 }).addLeaf()
  const server = await serveFiles(t, log.files)
  const stateFile = newStateFile(t)
  await auditOf(server, stateFile)
  const shorter = log.fork()
  shorter.leaves.length = 2
  server.files = log.files
  server.files.set('index/checkpoint', shorter.files.get('index/checkpoint')!)
  const old = await auditOf(server, stateFile)
  t.equal(old.verdict, 3)
  t.match(old.of('stale'), { origin: INDEX_SIGNER.name, pending: true })
  server.files = shorter.addLeaf({ size: 250 }).files
  t.equal((await auditOf(server, stateFile)).verdict, 1)

  const missing = log.files
  missing.delete('index/tile/entries/000.p/3')
  server.files = missing
  t.match(await auditOf(server, newStateFile(t)), { verdict: 3, failures: ['fetch null'] })
  server.files = log.files
  server.files.delete('index/checkpoint')
  t.match(await auditOf(server, newStateFile(t)), { verdict: 2, failures: ['fetch null'] })
})

t.test('an index that stopped alarms after a day, or earlier where it is asked to', async t => {
  const log = new IndexedLog(keysOf(30)).addLeaf()
  const server = await serveFiles(t, log.files)
  for (const maxAgeMs of [undefined, 60_000]) {
    const ageMs = maxAgeMs ?? DAY_MS
    let nowMs = 1_800_000_000_000
    const stateFile = newStateFile(t)
    server.files = new IndexedLog(keysOf(30)).addLeaf().files
    const { auditor, findings } = openAuditor({
      ...{ url: server.url, stateFile, index: INDEX_KEYS, nowMs: () => nowMs },
      maxAgeMs,
    })
    const staleOf = () => findings.findLast(({ check, origin }) => check === 'stale' && origin !== undefined)
    t.equal(await auditor.run(), 0)
    nowMs += ageMs
    t.equal(await auditor.run(), 0)
    // The log goes on, its index does not.
    const grown = new IndexedLog(keysOf(40)).addLeaf({ size: 30 })
    server.files = grown.files
    nowMs += 1
    t.equal(await auditor.run(), 3)
    t.match(staleOf(), { alarm: true, detail: /^no new checkpoint since/ })
    // Nor does it where its leaves stay at the same entries.
    findings.length = 0
    server.files = grown.addLeaf({ size: 30 }).files
    t.equal(await auditor.run(), 0)
    nowMs += ageMs + 1
    server.files = setCheckpoint(grown.addLeaf({ size: 30 }).files, grown.checkpoint())
    grown.entries.push(...keysOf(5, 40))
    server.files = grown.files
    t.equal(await auditor.run(), 3)
    t.match(staleOf(), { alarm: true, detail: /^the index has not taken entries up to 40 since/ })
    server.files = grown.addLeaf().files
    findings.length = 0
    t.equal(await auditor.run(), 0)
    auditor.close()
  }
})

t.test('a map that is damaged, cut off or of another log is rebuilt', async t => {
  const log = new IndexedLog(keysOf(300)).addLeaf({ size: 100 }).addLeaf()
  const server = await serveFiles(t, log.files)
  const [stateFile, other] = [newStateFile(t), newStateFile(t)]
  await auditOf(server, stateFile)
  const file = `${stateFile}.index.map`
  const good = readFileSync(file)
  // Another log with the same name and keys.
  const twin = await serveFiles(t, new IndexedLog(keysOf(500, 7)).addLeaf().files)
  await auditOf(twin, other)
  const maps: Buffer[] = [
    readFileSync(`${other}.index.map`),
    good.subarray(0, -1),
    Buffer.alloc(0),
    Buffer.from('{}\n'),
  ]
  const random = randomFrom(seedOf())
  for (let edit = 0; edit < 20; edit++) {
    const bytes = Buffer.from(good)
    bytes[Math.floor(random() * bytes.length)]! ^= 1 << Math.floor(random() * 8)
    maps.push(bytes)
  }
  for (const map of maps) {
    writeFileSync(file, map)
    const { verdict, of } = await auditOf(server, stateFile)
    t.equal(verdict, 0)
    t.match(of('index')?.detail, /^2 leaves from 0 on have .* 300 entries/)
    t.strictSame(readFileSync(file), good)
  }
})

t.test('stopped in the middle it goes on, and a garbled file is got round by a mirror', async t => {
  const log = new IndexedLog(keysOf(700)).addLeaf({ size: 300 }).addLeaf({ size: 600 }).addLeaf()
  const server = await serveFiles(t, log.files)
  const stateFile = newStateFile(t)
  server.misbehave = (path, response) =>
    path.startsWith('index/tile/') && Boolean(response.writeHead(404).end())
  t.equal((await auditOf(server, stateFile)).verdict, 3)
  server.misbehave = () => false
  const { verdict, of } = await auditOf(server, stateFile)
  t.equal(verdict, 0)
  t.match(of('index')?.detail, /^3 leaves from 0 on/)

  const garbled = log.files
  garbled.set('index/tile/entries/000.p/3', Buffer.alloc(10))
  const broken = await serveFiles(t, garbled)
  t.equal((await auditOf(broken, newStateFile(t))).verdict, 3)
  t.equal((await auditOf(broken, newStateFile(t), { mirrors: [server.url] })).verdict, 0)
  t.notOk(existsSync(`${stateFile}.index.map.tmp`))
})

t.test('leaves with a former key of the log hold where their trees are the log’s', async t => {
  const old = new IndexedLog(keysOf(200), { signer: stranger }).addLeaf({ size: 50 }).addLeaf()
  const log = new IndexedLog(keysOf(300))
  log.leaves.push(...old.leaves)
  const server = await serveFiles(t, log.files)
  const newest = await auditOf(server, newStateFile(t))
  t.match(newest, { verdict: 3, failures: ['index null'] }, 'the newest is of a key that is known')
  server.files = log.addLeaf().files
  t.equal((await auditOf(server, newStateFile(t))).verdict, 0)
})

t.test('the auditor’s server tells of the index, and another auditor compares with it', async t => {
  const log = new IndexedLog(keysOf(300)).addLeaf({ size: 100 }).addLeaf()
  const server = await serveFiles(t, log.files)
  const { auditor } = openAuditor({ url: server.url, stateFile: newStateFile(t), index: INDEX_KEYS })
  t.teardown(() => auditor.close())
  const key = signerKeyFromSeed('auditor', new Uint8Array(32).fill(5))
  const audits = await AuditServer.listen({ port: 0, host: '127.0.0.1', key, view: auditor, nowMs: Date.now })
  t.teardown(() => audits.close())
  const get = async (path: string) => (await fetch(`${audits.url}${path}`)).text()
  t.equal((await fetch(`${audits.url}/index/checkpoint`)).status, 503)
  t.equal(await auditor.run(), 0)
  t.match(
    await get('/'),
    `${INDEX_SIGNER.name}</b>: 2 leaves have the root of the map, rebuilt from 300 entries`,
  )
  t.match(await get('/metrics'), /^callsign_audit_index_leaves 2$/m)
  t.match(await get('/metrics'), /^callsign_audit_index_entries 300$/m)
  t.equal(openNote(await get('/index/checkpoint'), [INDEX_SIGNER, key]).signatures.length, 2)
  const gossip = [audits.url]
  const other = await auditOf(server, newStateFile(t), { gossip })
  t.strictSame([other.verdict, other.of('gossip')?.origin], [0, INDEX_SIGNER.name])
  const fork = await serveFiles(t, new IndexedLog(log.entries).addLeaf().addLeaf().files)
  t.equal((await auditOf(fork, newStateFile(t), { gossip })).verdict, 1)
  // An auditor without the index shows none, which says nothing.
  const plain = openAuditor({ url: server.url, stateFile: newStateFile(t) }).auditor
  t.teardown(() => plain.close())
  await plain.run()
  const plainServer = await AuditServer.listen({
    port: 0,
    host: '127.0.0.1',
    key,
    view: plain,
    nowMs: Date.now,
  })
  t.teardown(() => plainServer.close())
  t.equal((await auditOf(server, newStateFile(t), { gossip: [plainServer.url] })).verdict, 0)
})

t.test('the key of the index comes from a flag, the environment or the policy', async t => {
  const [vkey, indexVkey] = [SIGNER, INDEX_SIGNER].map(formatVerifierKey) as [string, string]
  const base = ['--url', 'http://127.0.0.1', '--state', 'none']
  const policy = join(t.testdir(), 'policy')
  const keyOf = (flags: readonly string[], environment = {}) => {
    const index = readSettings([...base, ...flags], environment)?.index
    return index && formatVerifierKey(index.verifier)
  }
  writeFileSync(policy, `log ${vkey}\nlog ${indexVkey}\nquorum none\n`)
  t.equal(keyOf(['--vkey', vkey, '--index', '--index-vkey', indexVkey]), indexVkey)
  t.equal(keyOf(['--vkey', vkey, '--index'], { KT_INDEX_PUBLIC_KEY: indexVkey }), indexVkey)
  t.equal(keyOf(['--policy', policy, '--index']), indexVkey)
  t.equal(keyOf(['--policy', policy]), undefined, 'the index is audited where it is asked for')
  t.equal(keyOf(['--vkey', vkey], { KT_INDEX_PUBLIC_KEY: indexVkey }), undefined)
  t.throws(() => keyOf(['--vkey', vkey, '--index']), /--index-vkey or KT_INDEX_PUBLIC_KEY is missing/)
  t.throws(() => keyOf(['--vkey', vkey, '--index-vkey', indexVkey]), /needs --index/)
  t.throws(() => keyOf(['--policy', policy, '--index', '--index-vkey', indexVkey]), /takes the place/)
  t.throws(() => keyOf(['--vkey', vkey, '--index', '--index-vkey', vkey]), /key of the index/)
  writeFileSync(policy, `log ${vkey}\nquorum none\n`)
  t.throws(() => keyOf(['--policy', policy, '--index']), /does not name the index/)
})

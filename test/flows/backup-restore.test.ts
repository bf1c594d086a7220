/** Backup beside a working server, restore, and the questions a restored log must answer before it signs on. */

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseEnv } from 'node:util'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { backUp, restore as restoreCopy } from '../../src/check/backup.ts'
import { checkStore } from '../../src/check/store-check.ts'
import { INDEX_TABLES } from '../../src/keyserver/index/index-tables.ts'
import { LOG_TABLES } from '../../src/keyserver/log-store.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { parseEntry } from '../../src/log/entry.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { formatTilePath, parseBundle, TILE_WIDTH, tileWidth } from '../../src/log/tile.ts'
import { indexKey } from '../../src/store/engine/keys.ts'
import { runScript } from '../support/commands.ts'
import { RawTables } from '../support/damage.ts'
import { putIndex } from '../support/index-in-folder.ts'
import { registerKey, registerUsers, startLog } from '../support/live-log.ts'
import { until } from '../support/nodes.ts'
import { type OpenInProcess, openRefused, openServer } from '../support/open-server.ts'
import { spawnBound, startedProgram } from '../support/programs.ts'
import { freshPublicKey, type OpenServer, startRefused, startServer } from '../support/server.ts'
import { bySize, long } from '../support/size.ts'

const QUIET = { CALLSIGN_LOG_LEVEL: 'error' }
const KEYS_FILE = 'development-keys.env'
const PAUSE_MS = 5

interface Answered {
  readonly index: number
  readonly publicKey: string
}

/** Registers from eight sides until stopped; keeps the answers. */
function load(server: OpenServer): { answered: Answered[]; stop(): Promise<void> } {
  const client = new RegisterClient(server.grpc)
  const answered: Answered[] = []
  let isDone = false
  const work = async (user: number) => {
    for (let next = user; !isDone; next += 8) {
      const { index, publicKey } = await registerKey(client, BigInt(next), 1n)
      answered.push({ index, publicKey })
    }
  }
  const workers = Array.from({ length: 8 }, (_, user) => work(user))
  return {
    answered,
    async stop() {
      isDone = true
      await Promise.all(workers)
      client.close()
    },
  }
}

async function fetchEntries({ http }: OpenServer, treeSize: number): Promise<Uint8Array[]> {
  const entries: Uint8Array[] = []
  for (let index = 0; index * TILE_WIDTH < treeSize; index++) {
    const path = formatTilePath({ level: 'entries', index, width: tileWidth('entries', index, treeSize) })
    const answer = await fetch(`${http}/${path}`)
    entries.push(...parseBundle(new Uint8Array(await answer.arrayBuffer())))
  }
  return entries
}

function digestOf(entries: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const entry of entries) hash.update(`${entry.length} `).update(entry)
  return hash.digest('hex')
}

async function checkpointOf(server: Pick<OpenServer, 'http'>): Promise<string> {
  return (await fetch(`${server.http}/checkpoint`)).text()
}

function sizeOf(note: string, vkey: string): number {
  return openCheckpoint(note, parseVerifierKey(vkey)).treeSize
}

const backup = (dataFolder: string, to: string) => runScript('backup', ['--data-dir', dataFolder, '--to', to])
const restore = (from: string, dataFolder: string) =>
  runScript('restore', ['--from', from, '--data-dir', dataFolder])

/** Puts the development keys beside a restored log, as an operator has to. */
function putKeys(keysFrom: string, dataFolder: string): void {
  cpSync(join(keysFrom, KEYS_FILE), join(dataFolder, KEYS_FILE))
}

/** The restored log with its keys, made in the test's process. */
async function restoreWithKeys(from: string, dataFolder: string, keysFrom: string): Promise<void> {
  await restoreCopy(from, dataFolder)
  putKeys(keysFrom, dataFolder)
}

/** Fills the folder with a stopped log of twenty, its head file, its backup when it had ten, and the checkpoints of both. */
async function makeLogWithOlderBackup(folder: string): Promise<string> {
  const { dataFolder, copy, newest, older, headFile } = filesOf(folder)
  const environment = { ...QUIET, CALLSIGN_LOG_HEAD_FILE: headFile }
  const server = await openServer({ dataFolder, environment })
  const client = new RegisterClient(server.grpc)
  await registerUsers(client, 0, 10)
  const { lines } = await backup(dataFolder, copy)
  await registerUsers(client, 100, 10)
  writeFileSync(newest, await checkpointOf(server))
  writeFileSync(older, String(lines[0]!.checkpoint))
  client.close()
  await server.end()
  return server.vkey
}

const original = t.testdir()
const vkey = await makeLogWithOlderBackup(original)

/** A copy of the fixture, which is made once. */
function logWithOlderBackup(t: Test) {
  const folder = t.testdir()
  cpSync(original, folder, { recursive: true })
  return filesOf(folder)
}

function filesOf(folder: string) {
  return {
    folder,
    dataFolder: join(folder, 'data'),
    copy: join(folder, 'backup'),
    newest: join(folder, 'newest-checkpoint'),
    older: join(folder, 'older-checkpoint'),
    headFile: join(folder, 'head'),
  }
}

t.test(
  'a backup under load holds all that was answered before it began, and is restored byte for byte',
  async t => {
    const folder = t.testdir()
    const [dataFolder, copy, restored] = ['data', 'backup', 'restored'].map(name => join(folder, name))
    const log = await startLog(t, dataFolder!, QUIET)
    await registerUsers(log.client, 1_000_000, 500)
    const { answered, stop } = load(log)
    while (answered.length < 100) await setTimeout(PAUSE_MS)
    const before = [...answered]
    const { code, lines, stderr } = await backup(dataFolder!, copy!)
    const during = answered.length - before.length
    await stop()

    t.same([code, stderr, lines.length], [0, '', 1])
    t.ok(during > 0, `${during} registrations were answered meanwhile`)
    t.same(readdirSync(copy!), ['store'])
    t.same(readdirSync(join(copy!, 'store')), ['data.mdb'])
    const line = lines[0]!
    t.match(line, { event: 'backup', folder: copy, vkey: log.vkey, vrfPublicKey: log.vrfPublicKey })
    const checkpoint = String(line.checkpoint)
    const size = sizeOf(checkpoint, log.vkey)
    t.equal(line.treeSize, `${size}`)

    const again = await restore(copy!, restored!)
    t.match([again.code, again.lines], [0, [{ ...line, event: 'restore', folder: restored }]])
    putKeys(dataFolder!, restored!)
    const known = join(folder, 'known')
    writeFileSync(known, checkpoint)
    const second = await openServer({
      dataFolder: restored!,
      knownCheckpoint: known,
      environment: QUIET,
    })
    t.teardown(() => second.end())
    t.equal(await checkpointOf(second), checkpoint, 'the checkpoint is the one that was signed then')
    const entries = await fetchEntries(second, size)
    t.equal(digestOf(entries), digestOf(await fetchEntries(log, size)))
    const missing = before.filter(
      ({ index, publicKey }) =>
        entries[index] === undefined || parseEntry(entries[index]).publicKey !== publicKey,
    )
    t.same(missing, [], `${before.length} registrations were answered before`)
  },
)

t.test('backup --compact has the next start compact the store, once, and serve the same log', async t => {
  const folder = t.testdir()
  const [dataFolder, copy] = ['data', 'backup'].map(name => join(folder, name)) as [string, string]
  const mark = join(dataFolder, 'compact')
  const server = await startServer({ dataFolder })
  const client = new RegisterClient(server.grpc)
  await registerUsers(client, 0, 10)
  client.close()
  const checkpoint = await checkpointOf(server)
  const args = ['--data-dir', dataFolder, '--to', copy, '--compact']
  t.match(await runScript('backup', args), { code: 0, lines: [{ event: 'backup' }] })
  t.ok(existsSync(mark))
  await server.end()
  const second = await startServer({ dataFolder })
  t.equal(await checkpointOf(second), checkpoint)
  await second.end()
  t.match(second.stderr(), /"event":"store-compacted","bytesBefore":\d+,"bytesAfter":\d+,"ms":\d+/)
  t.notOk(existsSync(mark))
})

t.test(
  'a backup is taken after kills, with the pages they left, and holds no private key',
  long(),
  async t => {
    const folder = t.testdir()
    const dataFolder = join(folder, 'data')
    for (let kill = 0; kill < bySize({ short: 1, long: 3 }); kill++) {
      const server = await startServer({ dataFolder, environment: QUIET })
      const { answered, stop } = load(server)
      while (answered.length < 150) await setTimeout(PAUSE_MS)
      server.process.kill('SIGKILL')
      await stop().catch(() => {})
      const copy = join(folder, `backup-${kill}`)
      const { code, stderr } = await backup(dataFolder, copy)
      t.same([code, stderr], [0, ''])
      const bytes = readFileSync(join(copy, 'store', 'data.mdb')).toString('latin1')
      const keys = parseEnv(readFileSync(join(dataFolder, KEYS_FILE), 'utf8'))
      for (const name of ['KT_PRIVATE_KEY', 'VRF_PRIVATE_KEY', 'CALLSIGN_SECRET']) {
        const secret = keys[name]!.slice(-44)
        const raw = Buffer.from(secret, 'base64').toString('latin1')
        if (bytes.includes(secret) || bytes.includes(raw.slice(-31))) t.fail(`${name} is in the copy`)
      }
    }
  },
)

t.test('an older copy can’t sign a second history: the head file refuses it', async t => {
  const { folder, dataFolder, copy, older, headFile } = logWithOlderBackup(t)
  const environment = { CALLSIGN_LOG_HEAD_FILE: headFile }
  const restored = join(folder, 'restored')
  await restoreWithKeys(copy, restored, dataFolder)
  for (const knownCheckpoint of [undefined, older]) {
    const { code, stderr } = await openRefused({
      dataFolder: restored,
      environment,
      ...(knownCheckpoint && { knownCheckpoint }),
    })
    t.equal(code, 1)
    t.match(
      stderr,
      /has 10 entries, but CALLSIGN_LOG_HEAD_FILE .* of 20: put a newer copy of the data directory/,
    )
  }
  const newest = join(folder, 'newest')
  await backUp(dataFolder, newest)
  const good = join(folder, 'good')
  await restoreWithKeys(newest, good, dataFolder)
  const server = await openServer({ dataFolder: good, environment })
  t.teardown(() => server.end())
  t.notOk(existsSync(join(good, 'restored.json')), 'the head file answers for the newest one')
})

t.test(
  'an older copy can’t sign a second history: nor does it start unasked or against a newer checkpoint',
  async t => {
    const { folder, dataFolder, copy, newest, older } = logWithOlderBackup(t)
    const restored = join(folder, 'restored')
    await restoreWithKeys(copy, restored, dataFolder)
    const refusal = async (knownCheckpoint?: string) => {
      const { code, stderr } = await openRefused({
        dataFolder: restored,
        ...(knownCheckpoint && { knownCheckpoint }),
      })
      t.equal(code, 1)
      t.notMatch(stderr, /\n {4}at /)
      return stderr
    }
    t.match(await refusal(), /was restored at 2\d.* from .*backup: start once with --known-checkpoint FILE/)
    t.match(await refusal(newest), /has 10 entries, but --known-checkpoint .* of 20: put a newer/)
    t.match(await refusal(join(folder, 'none')), /none is not a file with a checkpoint/)
    t.match(await refusal(join(dataFolder, KEYS_FILE)), /is not a file with a checkpoint/)
    const unknown = await startRefused({ dataFolder: restored, args: ['--unknown'] })
    t.equal(unknown.code, 2)
    t.notMatch(unknown.stderr, /\n {4}at /)
    t.match(unknown.stderr, /unknown/i)

    const frozen = await openServer({ dataFolder: restored, environment: { CALLSIGN_LOG_FROZEN: '1' } })
    t.equal(sizeOf(await checkpointOf(frozen), vkey), 10, 'frozen, it may be shown')
    await frozen.end()
    t.match(await refusal(), /was restored at/, 'and asks again')

    const state = join(folder, 'auditor-state')
    const note = readFileSync(older, 'utf8')
    writeFileSync(state, JSON.stringify({ program: 'audit', checkpoints: [{ note: 'older' }, { note }] }))
    const server = await openServer({ dataFolder: restored, knownCheckpoint: state })
    t.equal(sizeOf(await checkpointOf(server), vkey), 10, 'an auditor’s state file answers too')
    await server.end()
    const next = await openServer({ dataFolder: restored })
    t.teardown(() => next.end())
    t.notOk(existsSync(join(restored, 'restored.json')), 'asked once')
  },
)

t.test('a log that went on differently is refused by the checkpoint signed first', async t => {
  const { folder, dataFolder, copy, newest, older } = logWithOlderBackup(t)
  const restored = join(folder, 'restored')
  await restoreWithKeys(copy, restored, dataFolder)
  // An operator who knew only the older checkpoint let it sign on.
  const server = await openServer({
    dataFolder: restored,
    knownCheckpoint: older,
    environment: QUIET,
  })
  const client = new RegisterClient(server.grpc)
  await registerUsers(client, 500, 30)
  client.close()
  await server.end()
  const { code, stderr } = await openRefused({ dataFolder: restored, knownCheckpoint: newest })
  t.equal(code, 1)
  t.match(stderr, /is not the one of --known-checkpoint .*: their first 20 entries differ/)
})

/** A data directory with an index of two leaves and its backup; the index has gone on to five since. */
async function indexWithOlderBackup(t: Test) {
  const files = logWithOlderBackup(t)
  const { folder, dataFolder } = files
  const copy = join(folder, 'backup-with-index')
  await putIndex(dataFolder, 2)
  const { index } = await backUp(dataFolder, copy)
  const [olderIndex, newestIndex] = [join(folder, 'older-index'), join(folder, 'newest-index')]
  writeFileSync(olderIndex, index!.checkpoint)
  await putIndex(dataFolder, 5)
  const later = await backUp(dataFolder, join(folder, 'later'))
  writeFileSync(newestIndex, later.index!.checkpoint)
  return { ...files, copy, index: index!, olderIndex, newestIndex, restored: join(folder, 'restored') }
}

async function indexRowsOf(dataFolder: string): Promise<string[]> {
  const tables = RawTables.open(dataFolder)
  const rows = Object.values(INDEX_TABLES).flatMap(table =>
    tables
      .keys(table)
      .map(key => `${table} ${Buffer.from(key).toString('hex')} ${tables.get(table, key)!.toString('hex')}`),
  )
  await tables.close()
  return rows
}

t.test('an index goes along with its log, and is asked about on its own', async t => {
  const { dataFolder, copy, index, newest, olderIndex, restored } = await indexWithOlderBackup(t)
  t.match(index, { leaves: 2, vkey: /^localhost\/callsign-dev\/index\+/ })
  await restoreWithKeys(copy, restored, dataFolder)
  const rows = await indexRowsOf(restored)
  t.ok(rows.length > 5)
  const args = ['--known-checkpoint', newest, '--known-index-checkpoint', olderIndex]
  const server = await startServer({ dataFolder: restored, args, environment: QUIET })
  await until(async () => (await fetch(`${server.http}/index/checkpoint`)).status === 200)
  t.equal(await (await fetch(`${server.http}/index/checkpoint`)).text(), index.checkpoint)
  await until(async () => !existsSync(join(restored, 'restored-index.json')))
  await server.end()
  t.same(await indexRowsOf(restored), rows)
  const again = await openServer({ dataFolder: restored, environment: QUIET })
  t.equal((await fetch(`${again.http}/index/checkpoint`)).status, 200, 'asked once')
  await again.end()
  t.notMatch(again.stderr(), /index-held/)
})

t.test('an older copy of an index is held, and its log goes on', async t => {
  const { folder, dataFolder, copy, newest, older, olderIndex, newestIndex, restored } =
    await indexWithOlderBackup(t)
  await restoreWithKeys(copy, restored, dataFolder)
  const headFile = join(folder, 'other-head')
  cpSync(newestIndex, `${headFile}.index`)
  cpSync(newest, headFile)
  const known = { knownCheckpoint: newest }
  const cases: [Partial<OpenInProcess>, RegExp][] = [
    [
      known,
      /was restored at 2\d.*: start once with --known-index-checkpoint FILE, the newest checkpoint of the/,
    ],
    [
      { ...known, knownIndexCheckpoint: newestIndex },
      /has 2 leaves, but --known-index-checkpoint .* is its signed checkpoint of 5: put a newer copy/,
    ],
    [
      { ...known, knownIndexCheckpoint: older },
      /--known-index-checkpoint .* is not a file with a checkpoint of/,
    ],
    [
      { environment: { CALLSIGN_LOG_HEAD_FILE: headFile }, knownIndexCheckpoint: olderIndex },
      /has 2 leaves, but CALLSIGN_LOG_HEAD_FILE .*other-head\.index is its signed checkpoint of 5/,
    ],
  ]
  for (const [options, sentence] of cases) {
    const server = await openServer({ dataFolder: restored, ...options })
    await until(async () => server.stderr().includes('index-held'))
    const held = server
      .stderr()
      .split('\n')
      .find(line => line.includes('index-held'))!
    t.match(JSON.parse(held).reason, sentence)
    await until(async () => (await fetch(`${server.http}/index/checkpoint`)).status === 503)
    t.equal(sizeOf(await checkpointOf(server), vkey), 20, 'the log is served')
    await server.end()
    t.ok(existsSync(join(restored, 'restored-index.json')), 'it asks again')
    t.notOk(existsSync(join(restored, 'restored.json')), 'the log was answered')
  }
  const { log } = await checkStore({ dataFolder: restored })
  t.same(
    log.outcomes.filter(({ ok }) => ok === false),
    [],
    'a held index is not damaged',
  )
})

t.test('a copy with a damaged index does not count', async t => {
  const { folder, dataFolder } = logWithOlderBackup(t)
  await putIndex(dataFolder)
  const tables = RawTables.open(dataFolder)
  await tables.change(INDEX_TABLES.rows, indexKey(1), 40, 1)
  await tables.close()
  await t.rejects(backUp(dataFolder, join(folder, 'copy')), {
    code: 'CHECKPOINT_INVALID',
    message:
      /^the copy does not hold: index-map: row is not as the entries make it \(table index-rows, key 1\); run fsck/,
  })
})

t.test('a restored development log without its keys says which file is missing', async t => {
  const { folder, copy, older } = logWithOlderBackup(t)
  const restored = join(folder, 'restored')
  await restoreCopy(copy, restored)
  const { code, stderr } = await openRefused({ dataFolder: restored, knownCheckpoint: older })
  t.equal(code, 1)
  t.match(stderr, /development-keys\.env is missing: put back the keys that this log was made with/)
  t.notOk(existsSync(join(restored, KEYS_FILE)), 'no new keys are made')
})

t.test('files in the way, missing or damaged are refused with a sentence, and nothing is left', async t => {
  const { folder, dataFolder, copy } = logWithOlderBackup(t)
  const full = join(folder, 'full')
  mkdirSync(full)
  writeFileSync(join(full, 'file'), '')
  const none = join(folder, 'none')
  const link = join(folder, 'link')
  symlinkSync(dataFolder, link)
  await backUp(dataFolder, `${dataFolder}-copy`)
  const held = readdirSync(dataFolder)
  const inside = /is inside the data directory .*name a folder elsewhere$/
  const refused = [
    [() => backUp(none, join(folder, 'a')), /^there is no store in /],
    [() => backUp(dataFolder, `${dataFolder}/new/..`), inside],
    [() => backUp(dataFolder, join(link, 'copy')), inside],
    [() => backUp(link, join(dataFolder, 'copy')), inside],
    [() => restoreCopy(copy, full), /full is not empty$/],
    [() => restoreCopy(none, join(folder, 'b')), /^there is no backup in /],
  ] as const
  for (const [attempt, message] of refused) {
    await t.rejects(attempt, { code: 'STORE_UNAVAILABLE', message })
  }
  const outcomes = [
    [await backup(dataFolder, full), /^backup: .*full is not empty$/m],
    [await backup(dataFolder, join(dataFolder, 'new', 'copy')), /^backup: .* is inside the data directory /m],
    [await restore(copy, dataFolder), /^restore: .*data is not empty$/m],
    [await runScript('backup', ['--to', full]), /^backup: --data-dir is missing\n\nusage: /m],
    [await runScript('restore', ['--data-dir', full, 'more']), /^restore: .*\n\nusage: /m],
  ] as const
  for (const [{ code, stderr }, sentence] of outcomes) {
    t.equal(code, 2)
    t.match(stderr, sentence)
  }
  t.same(readdirSync(full), ['file'])
  t.same(readdirSync(dataFolder), held)

  const cut = join(folder, 'cut')
  cpSync(copy, cut, { recursive: true })
  truncateSync(join(cut, 'store', 'data.mdb'), 5 * 4096)
  const altered = join(folder, 'altered')
  cpSync(copy, altered, { recursive: true })
  const tables = RawTables.open(altered)
  await tables.change(LOG_TABLES.bundles, indexKey(0), 70, 1)
  await tables.close()
  const target = join(folder, 'target')
  const damage = /^restore: page \d+ of .*data.mdb is damaged: the file ends before it; /m
  t.match(await restore(cut, target), { code: 1, stderr: damage })
  t.same(readdirSync(target), [])
  await t.rejects(restoreCopy(altered, target), {
    code: 'CHECKPOINT_INVALID',
    message: /^the copy does not hold: entries: .*\(table log-bundles, key 0\)/,
  })
  t.same(readdirSync(target), [])
  const damaged = join(folder, 'backup-of-damaged')
  const outcome = await backup(altered, damaged)
  t.same([outcome.code, readdirSync(damaged)], [1, []], 'a damaged log has no backup')
  t.match(outcome.stderr, /run fsck on the original/)
  writeFileSync(join(altered, 'store', 'data.mdb'), 'not a store'.repeat(1_000))
  const overwritten = await backup(altered, damaged)
  t.same([overwritten.code, readdirSync(damaged)], [1, []])
  t.match(overwritten.stderr, /^backup: .* does not begin as a store does/m)
})

t.test('a backup that was killed is not taken for one', async t => {
  const folder = t.testdir({ target: {} })
  const dataFolder = join(folder, 'data')
  const log = await startLog(t, dataFolder, QUIET)
  await registerUsers(log.client, 0, 400)
  const target = join(folder, 'target')
  const watcher = watch(target)
  const begun = once(watcher, 'change')
  const script = startedProgram('scripts/backup')
  const child = spawnBound(process.execPath, [script, '--data-dir', dataFolder, '--to', target], {
    stdio: 'ignore',
  })
  const exit = once(child, 'close')
  await begun
  watcher.close()
  child.kill('SIGKILL')
  await exit
  t.same(readdirSync(target), ['unfinished'])
  await t.rejects(restoreCopy(target, join(folder, 'restored')), { message: /there is no backup in/ })
  const { index } = await log.client.register(9_000n, 1n, freshPublicKey())
  t.equal(index, 400n, 'the server did not notice')
})

t.test('a restore that was cut off does not start as a new log', async t => {
  const { folder, dataFolder, copy, older } = logWithOlderBackup(t)
  const restored = join(folder, 'restored')
  await restoreWithKeys(copy, restored, dataFolder)
  mkdirSync(join(restored, 'unfinished'))
  cpSync(join(restored, 'store'), join(restored, 'unfinished', 'store'), { recursive: true })
  rmSync(join(restored, 'store'), { recursive: true })
  const { code, stderr } = await openRefused({ dataFolder: restored, knownCheckpoint: older })
  t.equal(code, 1)
  t.match(stderr, /the restore into .* did not finish: empty the directory and restore again/)
})

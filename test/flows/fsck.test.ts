/** fsck as an operator runs it: beside the server, over damaged data, and as a repair. */

import { randomBytes } from 'node:crypto'
import { cpSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t, { type Test } from 'tap'
import { examine, type Line } from '../../scripts/fsck/examination.ts'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import type { CheckRequest } from '../../src/check/check-process.ts'
import { checkStore } from '../../src/check/store-check.ts'
import { INDEX_TABLES } from '../../src/keyserver/index/index-tables.ts'
import { LOG_TABLES } from '../../src/keyserver/log-store.ts'
import { generateKeys } from '../../src/log/keys.ts'
import { indexKey, tileKey, userInKey } from '../../src/store/engine/keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { type CommandOutcome, runScript } from '../support/commands.ts'
import { RawTables } from '../support/damage.ts'
import { fillStore } from '../support/filled-store.ts'
import { putIndex } from '../support/index-in-folder.ts'
import { lookUp, type RegisteredKey, registerKey, registerUsers, startLog } from '../support/live-log.ts'
import { openServer } from '../support/open-server.ts'
import { freshPublicKey } from '../support/server.ts'
import { bySize, sized } from '../support/size.ts'
import { storedTable } from '../support/stored-table.ts'

const CHECKS = ['maker', 'checkpoint', 'entries', 'tiles', 'identities', 'lookup', 'vrf', 'rows']

async function fsck(
  dataFolder: string,
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandOutcome> {
  return withoutIndex(await runScript('fsck', ['--data-dir', dataFolder, ...args], environment))
}

/** Drops the index’s lines: so young a server may or may not have begun it. Its faults still set the exit code. */
function withoutIndex<Outcome extends Examination>(outcome: Outcome): Outcome {
  return { ...outcome, lines: outcome.lines.filter(line => !isOfIndex(line)) }
}

function isOfIndex({ check }: Examination['lines'][number]): boolean {
  return String(check).startsWith('index')
}

type Examination = Pick<CommandOutcome, 'code' | 'lines'>

/** The same in the test's process, where the store's file can be read. */
async function examination(
  dataFolder: string,
  { repairs = false, ...known }: Partial<Omit<CheckRequest, 'dataFolder'>> & { repairs?: boolean } = {},
): Promise<Examination> {
  const lines: Line[] = []
  const request = { dataFolder, withRows: true, ...known }
  const code = await examine(request, { repairs, check: checkStore, print: line => lines.push(line) })
  return withoutIndex({ code, lines: lines.map(line => ({ ...line })) })
}

function oks({ lines }: Examination): unknown[] {
  return lines.map(({ ok }) => ok)
}

/** The lines of checks that found something. */
function damageIn({ lines }: Examination): Examination['lines'] {
  return lines.filter(({ ok, check }) => ok === false && check !== 'repair')
}

const folder = t.testdir({ original: {}, filled: {} })
const [original, filled] = [join(folder, 'original'), join(folder, 'filled')]
const keys = await makeLog(original)
await fillStore(filled)

/** Fills the folder with the log of a development server that was stopped: 300 users, one of them with three keys. */
async function makeLog(dataFolder: string): Promise<RegisteredKey[]> {
  const server = await openServer({ dataFolder, environment: { CALLSIGN_LOG_LEVEL: 'error' } })
  const client = new RegisterClient(server.grpc)
  const keys = await registerUsers(client, 0, 300)
  keys.push(await registerKey(client, 7n, 1n), await registerKey(client, 7n, 1n))
  client.close()
  await server.end()
  return keys
}

/** A copy of a data directory that was made once. */
function loggedFolder(t: Test, from = original): string {
  const dataFolder = t.testdir()
  cpSync(from, dataFolder, { recursive: true })
  return dataFolder
}

async function damage(dataFolder: string, act: (tables: RawTables) => Promise<unknown>): Promise<void> {
  const tables = RawTables.open(dataFolder)
  await act(tables)
  await tables.close()
}

function keysIn(dataFolder: string): Record<string, string> {
  return parseEnv(readFileSync(join(dataFolder, 'development-keys.env'), 'utf8')) as Record<string, string>
}

t.test(
  'beside a server that is being written to it finds a whole log, each time a larger one',
  sized(),
  async t => {
    const dataFolder = t.testdir()
    const log = await startLog(t, dataFolder, { CALLSIGN_LOG_LEVEL: 'error' })
    let isDone = false
    let registered = 0
    const load = async (user: number) => {
      for (let next = user; !isDone; next += 8) {
        await log.client.register(BigInt(next), 1n, freshPublicKey())
        registered++
      }
    }
    const loads = Array.from({ length: 8 }, (_, user) => load(user))
    const sizes: number[] = []
    for (let round = 0; round < bySize({ short: 2, long: 3 }); round++) {
      const before = registered
      const outcome = await fsck(dataFolder)
      t.same([outcome.code, damageIn(outcome), outcome.stderr], [0, [], ''])
      t.same(
        outcome.lines.map(({ check }) => check),
        CHECKS,
      )
      const size = Number(outcome.lines[1]!.treeSize)
      t.ok(size >= before, `${size} entries were checked, ${before} had been answered`)
      sizes.push(size)
    }
    isDone = true
    await Promise.all(loads)
    t.same(
      sizes,
      sizes.toSorted((a, b) => a - b),
    )
    t.ok(sizes.at(-1)! > sizes[0]!, 'registrations went on')
  },
)

t.test('a changed entry is named, and never repaired', async t => {
  const dataFolder = loggedFolder(t)
  await damage(dataFolder, tables => tables.change(LOG_TABLES.bundles, indexKey(0), 136 * 5 + 60, 1))
  const outcome = await examination(dataFolder, { repairs: true })
  t.equal(outcome.code, 1)
  t.match(damageIn(outcome), [
    { check: 'entries', table: 'log-bundles', key: '0', offset: '682', faults: '1', repairable: false },
  ])
  t.match(outcome.lines.at(-1), { check: 'repair', ok: false, detail: /nothing was written: entries can't/ })
  t.equal((await examination(dataFolder)).code, 1, 'it is as it was')
})

t.test('damage to derived rows is named, repaired, and the server goes on', async t => {
  const dataFolder = loggedFolder(t)
  await damage(dataFolder, async tables => {
    await tables.change(LOG_TABLES.tiles, tileKey(0, 0), 1_000, 1)
    await tables.change(LOG_TABLES.identities, indexKey(1), 24 * 130 + 21, 1)
    await tables.remove(LOG_TABLES.lookup, indexKey(0))
  })
  const found = await examination(dataFolder)
  t.equal(found.code, 1)
  t.match(damageIn(found), [
    { check: 'tiles', table: 'log-tiles', key: '0/0', offset: '1000', repairable: true },
    { check: 'identities', table: 'log-identities', key: '1', offset: '3141', repairable: true },
    { check: 'lookup', table: 'log-lookup', key: '0', repairable: true },
  ])
  const repaired = await fsck(dataFolder, ['--repair'])
  t.equal(repaired.code, 0)
  t.match(repaired.lines[CHECKS.length], { check: 'repair', ok: true })
  t.same(oks(repaired).slice(CHECKS.length + 1), [true, true, true, true, true, true, null, true])
  const again = await examination(dataFolder, { repairs: true })
  t.same([(await examination(dataFolder)).code, again.lines.length], [0, 8])

  const log = await startLog(t, dataFolder)
  const newest = keys.filter(({ userId }, at) => userId !== 7n || at === keys.length - 1)
  const results = await lookUp(
    log.http,
    newest.slice(-64).map(({ vrfHash }) => vrfHash),
  )
  t.same(
    results.map(({ publicKey }) => publicKey),
    newest.slice(-64).map(({ publicKey }) => publicKey),
  )
})

t.test('an index’s derived rows are repaired, and its signed rows named', async t => {
  const dataFolder = loggedFolder(t)
  await putIndex(dataFolder)
  const ofIndex = async (...args: string[]) => {
    const { code, lines } = await runScript('fsck', ['--data-dir', dataFolder, ...args])
    return { code, lines: lines.filter(isOfIndex) }
  }
  const whole = await ofIndex()
  t.equal(whole.code, 0)
  t.match(whole.lines, [
    { check: 'index', ok: true, detail: /the map of 3 leaves, over 302 of 302 entries$/ },
    { check: 'index-checkpoint', ok: true },
    { check: 'index-leaves', ok: true, detail: /^3 leaves: / },
    { check: 'index-tiles', ok: true },
    { check: 'index-map', ok: true, detail: /^\d+ rows of the map over 302 entries, made anew$/ },
  ])
  await damage(dataFolder, async tables => {
    await tables.change(INDEX_TABLES.rows, indexKey(0x13), 90, 1)
    await tables.change(INDEX_TABLES.tiles, tileKey(0, 0), 33, 1)
  })
  const found = await ofIndex()
  t.equal(found.code, 1)
  t.match(damageIn(found), [
    { check: 'index-tiles', table: 'index-tiles', key: '0/0', offset: '33', repairable: true },
    { check: 'index-map', table: 'index-rows', key: '13', offset: '90', repairable: true },
  ])
  const repaired = await ofIndex('--repair')
  t.equal(repaired.code, 0)
  t.same(oks(repaired).slice(-5), [true, true, true, true, true])
  t.equal((await ofIndex()).code, 0)
  await damage(dataFolder, tables => tables.change(INDEX_TABLES.bundles, indexKey(0), 40, 1))
  const signed = await runScript('fsck', ['--data-dir', dataFolder, '--repair'])
  t.equal(signed.code, 1)
  t.match(damageIn(signed), [{ check: 'index-leaves', table: 'index-bundles', key: '0', repairable: false }])
  t.match(signed.lines.at(-1), {
    check: 'repair',
    detail:
      /^nothing was written: what is damaged of the index is signed: restore a backup, or begin another/,
  })
})

t.test('a damaged row is named by table and key, and never repaired', async t => {
  const dataFolder = loggedFolder(t, filled)
  const database = LmdbStore.open(dataFolder)
  const [users, byUser] = [storedTable('users'), storedTable('sessions-by-user')]
  const user = await database.change(change => {
    const [user] = change.keys(users, { limit: 1 })
    const [session] = change.keys(byUser, { limit: 1 })
    change.put(users, user!, Buffer.of(0xc1))
    change.remove(byUser, session!)
    return user!
  })
  await database.close()
  const outcome = await examination(dataFolder, { repairs: true })
  t.equal(outcome.code, 1)
  const byTable = damageIn(outcome).toSorted((one, other) =>
    String(one.table) < String(other.table) ? -1 : 1,
  )
  t.match(byTable, [
    { check: 'rows', table: 'sessions', key: /^[0-9a-f]{6}…$/, detail: /^sessions-by-user does not have it/ },
    {
      check: 'rows',
      table: 'users',
      key: `${userInKey(user)}`,
      detail: /^the row is not one of its table; the user/,
    },
  ])
  t.match(outcome.lines.at(-1), { check: 'repair', ok: false, detail: /^nothing was written: rows can’t/ })
})

t.test('a start names a damaged row, and serves the rest', async t => {
  const dataFolder = loggedFolder(t, filled)
  const database = LmdbStore.open(dataFolder)
  const sessions = storedTable('sessions')
  await database.change(change => {
    const [session] = change.keys(sessions, { limit: 1 })
    change.put(sessions, session!, Buffer.of(0xc1))
  })
  await database.close()
  const server = await openServer({ dataFolder, environment: { CALLSIGN_LOG_LEVEL: 'error' } })
  t.equal((await fetch(`${server.http}/app/api/meta`)).status, 200)
  await server.end()
  const logged = server
    .stderr()
    .split('\n')
    .filter(line => line.includes('store-row-damaged'))
  t.match(
    logged.map(line => JSON.parse(line)),
    [
      {
        event: 'store-row-damaged',
        table: 'sessions',
        detail: /^the row is not one of its table; its device has/,
      },
    ],
  )
})

t.test('a repair needs the server stopped', async t => {
  const dataFolder = loggedFolder(t)
  // A hash in the middle of a full tile, which a start does not look at.
  await damage(dataFolder, tables => tables.change(LOG_TABLES.identities, indexKey(0), 24 * 9 + 23, 1))
  const server = await openServer({ dataFolder })
  const refused = await fsck(dataFolder, ['--repair'])
  t.equal(refused.code, 2)
  t.match(refused.stderr, /^fsck: data directory .* is in use by process \d+ on host \S+ since \S+Z$/m)
  await server.end()
  t.equal((await examination(dataFolder, { repairs: true })).code, 0)
})

t.test('with the VRF key the identities are hashed again', async t => {
  const dataFolder = loggedFolder(t)
  const { VRF_PRIVATE_KEY } = keysIn(dataFolder)
  const environment = { VRF_PRIVATE_KEY: VRF_PRIVATE_KEY! }
  const whole = await fsck(dataFolder, ['--vrf-sample', '1000'], environment)
  t.equal(whole.code, 0)
  t.match(whole.lines.at(-2), { check: 'vrf', ok: true, detail: /^302 identities/ })
  const vrf = { secret: VRF_PRIVATE_KEY!, sampleMax: 1_000 }
  const sample = await examination(dataFolder, { vrf: { ...vrf, sampleMax: 10 } })
  t.match(sample.lines.at(-2), { detail: /^10 / })

  await damage(dataFolder, tables => tables.change(LOG_TABLES.identities, indexKey(1), 24 * 20 + 7, 1))
  t.equal((await examination(dataFolder)).code, 0, 'without it nobody can tell')
  const found = await examination(dataFolder, { vrf })
  t.equal(found.code, 1)
  t.match(damageIn(found), [
    { check: 'vrf', table: 'log-identities', key: '1', offset: '480', repairable: false },
  ])

  const secret = Buffer.alloc(32, 1).toString('base64')
  const foreign = await examination(dataFolder, { vrf: { ...vrf, secret } })
  t.equal(foreign.code, 1)
  t.match(damageIn(foreign)[0], { check: 'maker', detail: /another VRF key/ })
})

t.test('the verifier key may be given, and then counts', async t => {
  const dataFolder = loggedFolder(t)
  const { KT_PUBLIC_KEY } = keysIn(dataFolder)
  t.equal((await examination(dataFolder, { vkey: KT_PUBLIC_KEY! })).code, 0)
  const other = generateKeys('localhost/callsign-dev', randomBytes).ktPublicKey
  const foreign = await fsck(dataFolder, [], { KT_PUBLIC_KEY: other })
  t.equal(foreign.code, 1)
  t.match(damageIn(foreign), [{ check: 'maker' }, { check: 'checkpoint' }])
  t.equal((await fsck(dataFolder, ['--vkey', 'no key'])).code, 2)
})

t.test('a file that is cut short or overwritten is damage, said in a sentence', sized(), async t => {
  const dataFolder = loggedFolder(t)
  const path = join(dataFolder, 'store', 'data.mdb')
  const whole = readFileSync(path)
  const broken: Record<string, () => void> = {
    'cut to a third': () => truncateSync(path, Math.floor(whole.length / 3)),
    'cut to its first pages': () => truncateSync(path, 3 * 4096),
    'overwritten from the start': () =>
      writeFileSync(path, Buffer.concat([Buffer.alloc(9_000, 7), whole.subarray(9_000)])),
  }
  for (const [what, act] of Object.entries(broken)) {
    act()
    // A repair checks first.
    for (const args of [['--repair'], []].slice(0, bySize({ short: 1, long: 2 }))) {
      const { code, lines, stderr } = await fsck(dataFolder, args)
      t.equal(code, 1, what)
      // LMDB's remaining finds in such a file depend on the pages of its last commits.
      t.equal(lines[0]?.ok, false, what)
      t.notMatch(stderr, /\n {4}at /, what)
    }
    writeFileSync(path, whole)
  }
  t.equal((await examination(dataFolder)).code, 0)
})

t.test('what can’t be checked is exit 2 with a sentence', async t => {
  const folder = t.testdir({ empty: {} })
  for (const dataFolder of [join(folder, 'empty'), join(folder, 'none')]) {
    const { code, lines, stderr } = await fsck(dataFolder)
    t.equal(code, 2)
    t.match(lines, [{ check: 'store', ok: null }])
    t.match(stderr, /^fsck: there is no store in /)
  }
  for (const args of [
    [],
    ['--data-dir'],
    ['--data-dir', folder, '--fix'],
    ['--data-dir', folder, '--vrf-sample', '5'],
  ]) {
    const { code, stderr } = await runScript('fsck', args)
    t.equal(code, 2, args.join(' '))
    t.match(stderr, /^fsck: .*\n\nusage: /s)
  }
  const help = await runScript('callsign', ['fsck', '--help'])
  t.equal(help.code, 0, 'it is also a command of callsign')
})

/** A server moves from one machine to several and back, by the command as an operator runs it. */

import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { LOG_TABLES } from '../../src/keyserver/log-store.ts'
import { tileKey } from '../../src/store/engine/keys.ts'
import type { CopyState } from '../../src/store/engine/ledger-copy.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { type CommandOutcome, runScript } from '../support/commands.ts'
import { RawTables } from '../support/damage.ts'
import { fillStore } from '../support/filled-store.ts'
import { freePort } from '../support/free-port.ts'
import { putIndex } from '../support/index-in-folder.ts'
import { lookUp, registerUsers, startLog } from '../support/live-log.ts'
import { until } from '../support/nodes.ts'
import { PASSWORD, type Postgres, sharedPostgres, skipWithoutPostgres } from '../support/postgres.ts'
import { spawnBound, startedProgram } from '../support/programs.ts'
import { acquireNext, openLedger, rowsIn } from '../support/record.ts'
import { type OpenServer, type RunningServer, startRefused, startServer } from '../support/server.ts'
import { long, sized } from '../support/size.ts'
import { storedTable } from '../support/stored-table.ts'

t.test('moving between one machine and several', sized({ skip: skipWithoutPostgres }), async t => {
  const postgres = await sharedPostgres(t)
  const { folder: original, shown } = await makeStore(t)

  t.test('there and back, byte for byte, with the same log', async t => {
    const folder = copyOf(t, original)
    const before = await rowsOf(folder)
    const url = await postgres.newDatabase()
    const moved = await migrate('postgres', folder, url)
    t.same(moved, { code: 0, stderr: '', lines: moved.lines })
    t.match(moved.lines, [
      { event: 'migrate', to: 'postgres', folder, rows: before.length, treeSize: shown.treeSize },
    ])
    t.same(await rowsIn(postgres, url), before)
    t.same(await rowsOf(folder), before, 'the store is as it was')

    const alone = await startRefused({ dataFolder: folder })
    t.equal(alone.code, 1)
    t.match(alone.stderr, /has a copy of the ledger .*CALLSIGN_DATABASE_URL is not set: .*migrate --to lmdb/)
    refused(t, await migrate('postgres', folder, url), /the database is not empty/)

    const node = await startNode(t, folder, url)
    t.notMatch(node.stderr(), 'copy-filled', 'the store was its copy already')
    t.same(await shownBy(node), shown)
    const other = newFolder(t)
    refused(
      t,
      await migrate('lmdb', join(other, 'busy'), url),
      /^migrate: one at 127\.0\.0\.1:\d+ writes to the/m,
    )
    t.equal(await node.end(), 0)

    const back = join(other, 'back')
    const returned = await migrate('lmdb', back, url)
    t.same(returned, { code: 0, stderr: '', lines: returned.lines })
    t.match(returned.lines, [{ to: 'lmdb', folder: back, treeSize: shown.treeSize }])
    const after = await rowsOf(back)
    t.same(after, await rowsIn(postgres, url))
    t.same(after.filter(isOfIndex), before.filter(isOfIndex), 'its index, too')
    t.ok(before.filter(isOfIndex).length > 20)
    t.equal(returned.lines[0]!.rows, after.length)

    const left = await startRefused({ dataFolder: folder, environment: await nodeSettings(url) })
    t.equal(left.code, 1)
    t.match(left.stderr, /it has moved to the store of one machine; to go back, stop that server and run/)
    refused(t, await migrate('lmdb', join(other, 'twice'), url), /has moved to the store of one machine/)
    refused(t, await migrate('postgres', back, url), /has moved to the store of one machine/)

    keepKeys(original, back)
    const server = await startServer({ dataFolder: back, environment: QUIET })
    t.same(await shownBy(server), shown)
    t.equal(await server.end(), 0)
  })

  const points = [
    { table: 'rows', query: 'with lease as' },
    { table: 'changes', query: 'with opened as' },
  ]
  for (const { table, query } of points) {
    t.test(`to PostgreSQL, killed before it has written to ${table}`, long(), async t => {
      const folder = copyOf(t, original)
      const url = await postgres.newDatabase()
      await openLedger(t, url)
      const lock = `lock table callsign.${table} in share row exclusive mode`
      const args = ['--to', 'postgres', '--data-dir', folder]
      await killWaiting(postgres, url, { lock, query, args, isExecuted: false })
      t.equal(await stateOf(folder), undefined)
      const other = newFolder(t)
      const node = await startRefused({ dataFolder: other, environment: await nodeSettings(url) })
      t.equal(node.code, 1)
      t.match(node.stderr, /a store moves into it, and has not ended/)
      refused(t, await migrateOnceFree(t, 'lmdb', join(other, 'back'), url), /has not ended: run/)
      const again = await migrateOnceFree(t, 'postgres', folder, url)
      t.equal(again.code, 0)
      t.equal(again.stderr, 'migrate: an earlier move into this database did not end; it starts over\n')
      t.same(await rowsIn(postgres, url), await rowsOf(folder))
    })
  }

  t.test('to PostgreSQL, killed before the store is marked', long(), async t => {
    const folder = copyOf(t, original)
    const url = await postgres.newDatabase()
    await openLedger(t, url)
    const lock = 'lock table callsign.changes in share row exclusive mode'
    const args = ['--to', 'postgres', '--data-dir', folder]
    await killWaiting(postgres, url, { lock, query: 'with opened as', args, isExecuted: true })
    t.equal(await stateOf(folder), undefined)
    const again = await migrateOnceFree(t, 'postgres', folder, url)
    t.same(again, { code: 0, stderr: '', lines: again.lines })
    const record = await openLedger(t, url)
    const { number, epoch } = await record.snapshot(() => {})
    t.match(await stateOf(folder), { number, epoch, isFilling: false })
  })

  t.test('to LMDB, killed as it fills, and as the ledger is left', long(), async t => {
    const folder = copyOf(t, original)
    const url = await postgres.newDatabase()
    t.equal((await migrate('postgres', folder, url)).code, 0)
    const back = join(newFolder(t), 'back')
    const args = ['--to', 'lmdb', '--data-dir', back]
    await killWaiting(postgres, url, {
      lock: 'lock table callsign.rows',
      query: 'declare all_rows',
      args,
      isExecuted: false,
    })
    t.match(await stateOf(back), { isFilling: true })
    keepKeys(original, back)
    t.match((await startRefused({ dataFolder: back })).stderr, /has a copy of the ledger/)

    await acquireNext(await openLedger(t, url)).then(lease => lease.release())
    await postgres.query(url, HOLD_LEAVING)
    const lock = `select pg_advisory_lock(${LEAVING})`
    const query = "update callsign.writer set state = 'left'"
    await killWaiting(postgres, url, { lock, query, args, isExecuted: false })
    t.match(await openLedger(t, url).then(record => record.writer()), { state: 'open' })
    t.not((await stateOf(back))!.epoch, 0, 'the store was marked')
    await acquireNext(await openLedger(t, url)).then(lease => lease.release())
    await killWaiting(postgres, url, { lock, query, args, isExecuted: true })
    t.match((await startRefused({ dataFolder: back })).stderr, /has a copy of the ledger/)
    refused(t, await migrate('lmdb', folder, url), /has the copy of a node: name an empty folder/)
    refused(t, await migrate('lmdb', newFolder(t), url), /has moved to the store of one machine/)
    const again = await migrate('lmdb', back, url)
    t.same(again, { code: 0, stderr: '', lines: again.lines })
    t.equal(await stateOf(back), undefined)
    t.same(await rowsOf(back), await rowsIn(postgres, url))
  })

  t.test('a node that follows ends when the ledger is left', long(), async t => {
    const folder = copyOf(t, original)
    const url = await postgres.newDatabase()
    t.equal((await migrate('postgres', folder, url)).code, 0)
    const record = await openLedger(t, url, { leaseMs: 600_000 })
    const lease = await acquireNext(record)
    const node = await startNode(t, folder, url)
    t.same(await shownBy(node), shown)
    const ended = new Promise(resolve => node.process.once('close', resolve))
    await record.leave(lease)
    t.equal(await ended, 1)
    t.match(node.stderr(), /it has moved to the store of one machine/)
    await lease.release()
    t.equal(await record.acquire(), undefined, 'no node is its writer any more')
  })

  t.test('a copy that was filled before the move is filled anew', long(), async t => {
    const url = await postgres.newDatabase()
    const record = await openLedger(t, url)
    t.same(await record.snapshot(() => {}), { number: 0, epoch: 0 })
    const follower = record.follow({
      after: { number: 0, epoch: 0 },
      onChanges: () => void t.fail('applied'),
    })
    t.equal((await migrate('postgres', copyOf(t, original), url)).code, 0)
    t.match(await follower.ended, { kind: 'startAnew' })
  })

  t.test('data that must not move is refused, and no message has the password', async t => {
    const folder = copyOf(t, original)
    const url = await postgres.newDatabase()
    const run = (to: string, dataFolder: string) => migrate(to, dataFolder, url)
    refused(t, await run('oracle', folder), /--to oracle is neither postgres nor lmdb/)
    refused(
      t,
      await runScript('migrate', ['--to', 'postgres', '--data-dir', folder]),
      /CALLSIGN_DATABASE_URL is missing/,
    )
    refused(t, await run('postgres', join(folder, 'nothing')), /there is no store in/)
    refused(t, await run('lmdb', folder), /has a store: name an empty folder/)
    refused(t, await run('lmdb', newFolder(t)), /the database has no log/)
    refused(t, await migrate('postgres', folder, postgres.urlOf('nothing')), /nothing/)

    const server = await startServer({ dataFolder: folder, environment: QUIET })
    refused(t, await run('postgres', folder), /is in use by process/)
    await server.end()

    const marked = copyOf(t, original)
    writeFileSync(join(marked, 'restored.json'), '{}')
    refused(t, await run('postgres', marked), /start the server once with --known-checkpoint FILE/)
    const markedIndex = copyOf(t, original)
    writeFileSync(join(markedIndex, 'restored-index.json'), '{}')
    refused(t, await run('postgres', markedIndex), /start the server once with --known-index-checkpoint FILE/)
    const older = copyOf(t, original)
    cpSync(join(older, 'newer-index'), join(older, 'shown-index-head'))
    refused(
      t,
      await run('postgres', older),
      /it has 300 leaves, and this node has shown its checkpoint of 301/,
      1,
    )

    const tampered = copyOf(t, original)
    await alterTile(tampered)
    refused(t, await run('postgres', tampered), /the log in .* does not hold: tiles/, 1)
    const torn = copyOf(t, original)
    tearPages(join(torn, 'store/data.mdb'))
    refused(t, await run('postgres', torn), /is damaged/, 1)
    t.same(await rowsIn(postgres, url), [], 'nothing was written')

    t.equal((await run('postgres', folder)).code, 0)
    const other = copyOf(t, original)
    const grown = await startLog(t, other, QUIET)
    await registerUsers(grown.client, 900, 1)
    await grown.end()
    refused(
      t,
      await run('postgres', other),
      /the database is not empty, and its rows are not those of the store/,
    )
  })

  t.test("a node's folder: fsck, backup and restore", long(), async t => {
    const folder = copyOf(t, original)
    const url = await postgres.newDatabase()
    t.equal((await migrate('postgres', folder, url)).code, 0)
    t.equal((await runScript('fsck', ['--data-dir', folder])).code, 0)
    const backup = join(newFolder(t), 'backup')
    t.equal((await runScript('backup', ['--data-dir', folder, '--to', backup])).code, 0)

    const node = await startNode(t, folder, url)
    const client = new RegisterClient(node.grpc)
    await registerUsers(client, 900, 1)
    client.close()
    const now = await shownBy(node)
    t.not(now.checkpoint, shown.checkpoint)
    t.equal(await node.end(), 0)

    const restored = join(newFolder(t), 'restored')
    t.equal((await runScript('restore', ['--from', backup, '--data-dir', restored])).code, 0)
    keepKeys(original, restored)
    const again = await startNode(t, restored, url)
    t.same(await shownBy(again), now, 'it has caught up, and the head in PostgreSQL answers for it')
    t.equal((await fetch(`${again.http}/index/checkpoint`)).status, 200)
    t.equal(await again.end(), 0)
    t.notMatch(again.stderr(), /index-held/, 'nor is its index held')

    await alterTile(folder)
    const repair = await runScript('fsck', ['--data-dir', folder, '--repair'])
    t.equal(repair.code, 2)
    t.match(repair.stderr, /nothing was written: the store is a node’s copy of the ledger/)
  })
})

/** A log as its clients see it. */
interface Shown {
  readonly treeSize: string
  readonly checkpoint: string
  readonly results: unknown
}

const QUIET = { CALLSIGN_LOG_LEVEL: 'error' }
const KEYS_FILE = 'development-keys.env'
const APPLICATION = 'callsign migrate'
let vrfHashes: readonly string[] = []

async function makeStore(t: Test): Promise<{ folder: string; shown: Shown }> {
  const folder = newFolder(t)
  await fillStore(folder)
  const log = await startLog(t, folder, QUIET)
  const keys = await registerUsers(log.client, 500, 300)
  vrfHashes = keys.slice(0, 5).map(({ vrfHash }) => vrfHash)
  const shown = await shownBy(log)
  await log.end()
  writeFileSync(join(folder, 'newer-index'), await putIndex(folder, 301))
  await putIndex(folder, 300)
  await withStore(folder, addRows)
  return { folder, shown }
}

/** More rows than a portion of either side has, with keys and values of any octets and of none. */
async function addRows(database: LmdbStore): Promise<void> {
  const table = storedTable<Uint8Array>('many-rows', 'bytes')
  await database.change(change => {
    for (let at = 0; at < 3_000; at++) change.put(table, randomBytes(1 + (at % 300)), randomBytes(at % 4_000))
  })
}

async function shownBy({ http }: Pick<OpenServer, 'http'>): Promise<Shown> {
  const checkpoint = await (await fetch(`${http}/checkpoint`)).text()
  return { treeSize: checkpoint.split('\n')[1]!, checkpoint, results: await lookUp(http, vrfHashes) }
}

function newFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'callsign-migrate-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function copyOf(t: Test, original: string): string {
  const folder = join(newFolder(t), 'data')
  cpSync(original, folder, { recursive: true })
  return folder
}

function keepKeys(from: string, to: string): void {
  cpSync(join(from, KEYS_FILE), join(to, KEYS_FILE))
}

async function nodeSettings(url: string): Promise<Record<string, string>> {
  return {
    CALLSIGN_DATABASE_URL: url,
    CALLSIGN_NODE_HOST: '127.0.0.1',
    CALLSIGN_NODE_NAME: 'one',
    CALLSIGN_NODE_PORT: String(await freePort()),
    CALLSIGN_FRONTS: '1',
  }
}

async function startNode(t: Test, dataFolder: string, url: string): Promise<RunningServer> {
  const node = await startServer({ dataFolder, environment: await nodeSettings(url) })
  t.teardown(() => node.end('SIGKILL'))
  return node
}

function migrate(to: string, folder: string, url: string): Promise<CommandOutcome> {
  return runScript('migrate', ['--to', to, '--data-dir', folder], { CALLSIGN_DATABASE_URL: url })
}

/** After the lease of a command that was killed has run out. */
async function migrateOnceFree(t: Test, to: string, folder: string, url: string): Promise<CommandOutcome> {
  const record = await openLedger(t, url)
  await until(async () => (await record.writer()).holder === undefined)
  return migrate(to, folder, url)
}

function refused(t: Test, outcome: CommandOutcome, reason: RegExp, code = 2): void {
  t.match(outcome, { code, lines: [], stderr: reason })
  t.notMatch(outcome.stderr, PASSWORD)
}

/** Kills the command as a statement of it that begins so waits for what `lock` has locked. */
async function killWaiting(
  postgres: Postgres,
  url: string,
  stop: {
    readonly lock: string
    readonly query: string
    readonly args: readonly string[]
    /** Whether PostgreSQL does what it was asked for, though its client is gone. */
    readonly isExecuted: boolean
  },
): Promise<void> {
  const release = await postgres.hold(url, stop.lock)
  const command = spawnMigrate(url, stop.args)
  await postgres.waitsForLock(url, APPLICATION, stop.query)
  await kill(command)
  const ofCommand = `from pg_stat_activity where application_name = '${APPLICATION}'`
  if (!stop.isExecuted) await postgres.query(url, `select pg_terminate_backend(pid) ${ofCommand}`)
  else await release()
  await until(async () => (await postgres.query(url, `select ${ofCommand}`)).length === 0)
  await release()
}

function spawnMigrate(url: string, args: readonly string[]): ChildProcess {
  return spawnBound(process.execPath, [startedProgram('scripts/migrate'), ...args], {
    stdio: 'ignore',
    env: { PATH: process.env.PATH, CALLSIGN_DATABASE_URL: url },
  })
}

async function kill(command: ChildProcess): Promise<void> {
  const ended = once(command, 'close')
  command.kill('SIGKILL')
  await ended
}

/** Every row but the state of a copy: table, key and value, as `rowsIn` has them. */
function rowsOf(folder: string): Promise<string[]> {
  return withStore(folder, database => {
    const names = database.tableNames().filter(name => name !== 'copy-state')
    const tables = names.map(name => ({ name, stored: database.storedRows(name) }))
    const moment = database.snapshot()
    const rows = tables.flatMap(({ name, stored }) =>
      Array.from(moment.rows(stored), ({ key, value }) => `${name} ${hexOf(key)} ${hexOf(value)}`),
    )
    moment.end()
    return rows.toSorted()
  })
}

function isOfIndex(row: string): boolean {
  return row.startsWith('index-')
}

function hexOf(bytes: Uint8Array | string): string {
  return Buffer.from(bytes as Uint8Array).toString('hex')
}

function stateOf(folder: string): Promise<CopyState | undefined> {
  return withStore(folder, database => database.copyState)
}

async function withStore<Result>(
  folder: string,
  act: (database: LmdbStore) => Result | Promise<Result>,
): Promise<Result> {
  const database = LmdbStore.open(folder)
  try {
    return await act(database)
  } finally {
    await database.close()
  }
}

async function alterTile(folder: string): Promise<void> {
  const tables = RawTables.open(folder)
  await tables.change(LOG_TABLES.tiles, tileKey(0, 0), 100, 1)
  await tables.close()
}

/** The first pages behind the two that LMDB begins with become nonsense. */
function tearPages(path: string): void {
  const bytes = readFileSync(path)
  bytes.fill(0x5a, 2 * PAGE_BYTES)
  writeFileSync(path, bytes)
}

const PAGE_BYTES = 4_096
const LEAVING = 7
/** The statement that leaves the ledger waits for this lock. */
const HOLD_LEAVING = `
  create function hold() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(${LEAVING});
      return new;
    end
  $$;
  create trigger hold before update on callsign.writer for each row when (new.state = 'left')
    execute function hold()`

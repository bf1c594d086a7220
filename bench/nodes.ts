/**
 * What a call costs when two nodes share one PostgreSQL, and how long it takes from one node to the other. One process over
 * LMDB is the limit, in turns, with the same people. Also how long a new node is filled.
 */

import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fillRows } from '../src/server/node/copy-follower.ts'
import { LmdbStore } from '../src/store/engine/lmdb-store.ts'
import { PostgresLedger } from '../src/store/postgres/ledger.ts'
import { encodeRows } from '../src/store/postgres/written-rows.ts'
import { freePort } from '../test/support/free-port.ts'
import { type PostgresServer, skipWithoutPostgres, startPostgres } from '../test/support/postgres.ts'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { CallGroup, CallLoadFigures, CallLoadProtocol } from './support/call-load.ts'
import { settle, startLoad } from './support/call-street.ts'
import { childrenOf, cpuSeconds } from './support/machine.ts'
import type { Program } from './support/program.ts'
import { interleaved, type Turns } from './support/rounds.ts'
import { startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'

const LIMIT = 'one process over LMDB'
const NOT_SHOWN =
  'Both nodes, PostgreSQL and the clients share two cores and one disk. Callers are at the node that writes, callees at the other one. No TLS.'
const COST: Row = {
  name: 'nodes-call',
  project:
    'a call to ten that its caller gives up, all acknowledged, over two nodes: processor time of both and of PostgreSQL',
  limit: LIMIT,
  unit: 'µs',
  goal: { of: 'ratio', is: 'at most', value: 2 },
  notShown: NOT_SHOWN,
}
const START: Row = {
  name: 'nodes-call-start',
  project: 'from POST call/start at one node to the invitation of the tenth callee at the other, p50',
  limit: LIMIT,
  unit: 'ms',
  goal: { of: 'ratio', is: 'at most', value: 3 },
  notShown: `${NOT_SHOWN} Ten calls a second.`,
}

const FILL: Row = {
  name: 'nodes-fill',
  project: 'a new node is filled with a million rows of 160 bytes',
  limit: 'PostgreSQL alone writes them to /dev/null, in the same order (COPY)',
  unit: 's',
  goal: { of: 'ratio', is: 'at most', value: 3 },
  notShown:
    'PostgreSQL and the node share two cores. The rows are in the page cache, and nothing else is done.',
}

const PLAN = { groups: 16, callersEach: 2, calleesEach: 10, devices: 1 }
const PLAN_SMOKE = { ...PLAN, groups: 2 }
const CALLS_IN_FLIGHT = 16
const CALLS_PER_SECOND = 10
/** A turn at a rate has few calls otherwise. */
const RATE_TURNS = 3

export const nodes: Benchmark = { name: 'nodes', run }

interface Side {
  readonly load: Program<CallLoadProtocol>
  /** Seconds of processor time so far, by process or group of processes. */
  readonly cpuSeconds: () => Readonly<Record<string, number>>
}

interface Turn {
  readonly figure: CallLoadFigures
  readonly cpuSeconds: Readonly<Record<string, number>>
}

async function run(context: BenchmarkContext): Promise<void> {
  if (skipWithoutPostgres !== false) {
    process.stderr.write(`nodes: ${skipWithoutPostgres}\n`)
    return
  }
  const { folder, scale } = context
  const settled = join(folder, 'settled')
  const groups = await settle(settled, scale.isSmoke ? PLAN_SMOKE : PLAN)
  const postgres = await startPostgres({
    teardown: after => void context.after(async () => void (await after())),
  })
  const databaseUrl = await postgres.newDatabase()
  await moveToRecord(settled, databaseUrl)
  const project = await openNodes(context, { settled, groups, postgres, databaseUrl })
  const limit = await openAlone(context, settled, groups)

  const inFlight = { kind: 'in-flight', calls: CALLS_IN_FLIGHT } as const
  await compare(
    context,
    { limit, project },
    (side, seconds) => side.load.ask({ ...inFlight, seconds }),
    (round, turns) =>
      context.record(COST, round, {
        limit: sum(Object.values(costsOf(turns.limit))),
        project: sum(Object.values(costsOf(turns.project))),
        parameters: { people: PLAN.calleesEach + 1, inFlight: CALLS_IN_FLIGHT },
        details: {
          ...costsOf(turns.project),
          limitCalls: sum(turns.limit.map(({ figure }) => figure.calls)),
          calls: sum(turns.project.map(({ figure }) => figure.calls)),
        },
      }),
  )
  const rate = { kind: 'rate', callsPerSecond: CALLS_PER_SECOND, ends: 'meanwhile' } as const
  await compare(
    context,
    { limit, project },
    (side, seconds) => side.load.ask({ ...rate, seconds: RATE_TURNS * seconds }),
    (round, turns) => {
      const latency = (of: readonly Turn[], which: 'p50' | 'p99') =>
        rounded(mean(of.map(({ figure }) => figure.latency[which])))
      context.record(START, round, {
        limit: latency(turns.limit, 'p50'),
        project: latency(turns.project, 'p50'),
        parameters: { people: PLAN.calleesEach + 1, callsPerSecond: CALLS_PER_SECOND },
        details: { limitP99Ms: latency(turns.limit, 'p99'), projectP99Ms: latency(turns.project, 'p99') },
      })
    },
  )
  await compareFill(context, postgres)
}

async function compareFill(context: BenchmarkContext, postgres: PostgresServer): Promise<void> {
  const url = await postgres.newDatabase()
  const record = await openRecord(url)
  context.after(() => record.close())
  const rows = context.scale.isSmoke ? ROWS_SMOKE : ROWS_FILLED
  await postgres.query(
    url,
    `insert into callsign.rows
     select 'filled', sha256(n::text::bytea), decode(repeat(md5(n::text), 8), 'hex') from generate_series(1, ${rows}) n`,
  )
  await postgres.query(url, 'vacuum analyze callsign.rows')
  for (const round of context.rounds()) {
    const limitAtMs = performance.now()
    await postgres.query(
      url,
      `set enable_sort = off; copy (select * from callsign.rows order by tbl, k) to '/dev/null' (format binary)`,
    )
    const [startedAtMs, own] = [performance.now(), cpuSeconds(process.pid)]
    const dataFolder = join(context.folder, `filled-${round}`)
    const database = LmdbStore.open(dataFolder, { hasLedger: true })
    database.writeUnsynced()
    const { count } = await fillRows(database, record)
    if (count !== rows) throw new Error(`${count} of ${rows} rows came`)
    context.record(FILL, round, {
      limit: (startedAtMs - limitAtMs) / 1e3,
      project: (performance.now() - startedAtMs) / 1e3,
      parameters: { rows },
      details: { nodeCpuSeconds: rounded(cpuSeconds(process.pid) - own) },
    })
    await database.close()
    rmSync(dataFolder, { recursive: true })
  }
}

async function openAlone(
  context: BenchmarkContext,
  settled: string,
  groups: readonly CallGroup[],
): Promise<Side> {
  const dataFolder = join(context.folder, 'alone')
  cpSync(settled, dataFolder, { recursive: true })
  const server = await startServer({ dataFolder, environment: { CALLSIGN_FRONTS: '0' } })
  context.after(() => server.end())
  const load = await startLoad(context, server.http, 'project', groups)
  return { load, cpuSeconds: () => ({ all: cpuSeconds(server.pid) }) }
}

async function openNodes(
  context: BenchmarkContext,
  {
    settled,
    groups,
    postgres,
    databaseUrl,
  }: { settled: string; groups: readonly CallGroup[]; postgres: PostgresServer; databaseUrl: string },
): Promise<Side> {
  const open = async (name: string) => {
    const dataFolder = join(context.folder, name)
    // The keys of the log, which all nodes share; the node fills its store by itself.
    cpSync(settled, dataFolder, { recursive: true, filter: path => !/\/(store|lock)$/.test(path) })
    const server = await startServer({
      dataFolder,
      environment: {
        CALLSIGN_FRONTS: '1',
        CALLSIGN_DATABASE_URL: databaseUrl,
        CALLSIGN_NODE_HOST: '127.0.0.1',
        CALLSIGN_NODE_PORT: String(await freePort()),
        CALLSIGN_NODE_NAME: name,
      },
    })
    context.after(() => server.end())
    return server
  }
  const [writer, other] = [await open('one'), await open('two')]
  const load = await startLoad(context, writer.http, 'project', groups, other.http)
  const ofAll = (pids: readonly number[]) => sum(pids.map(cpuSeconds))
  return {
    load,
    cpuSeconds: () => ({
      writer: cpuSeconds(writer.pid),
      itsFront: ofAll(childrenOf(writer.pid)),
      other: cpuSeconds(other.pid),
      othersFront: ofAll(childrenOf(other.pid)),
      postgres: ofAll([postgres.pid, ...childrenOf(postgres.pid)]),
    }),
  }
}

function openRecord(url: string): Promise<PostgresLedger> {
  return PostgresLedger.open({
    url,
    node: { name: 'bench', address: '127.0.0.1:1', version: '0' },
    monotonicMs: () => performance.now(),
    random: Math.random,
    onFailure: error => process.stderr.write(`${String(error)}\n`),
  })
}

/** The rows of a store, as changes of a writer. */
async function moveToRecord(dataFolder: string, url: string): Promise<void> {
  const database = LmdbStore.open(dataFolder)
  const record = await openRecord(url)
  const lease = await record.acquire()
  if (lease === undefined) throw new Error('the record has a writer already')
  let number = lease.last
  for (const table of database.tableNames().filter(name => name !== 'copy-state')) {
    const rows = Array.from(database.storedRows(table).getRange(), ({ key, value }) => ({
      table,
      key: Uint8Array.from(key as Uint8Array),
      value: Uint8Array.from(value),
    }))
    for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
      const portion = rows.slice(at, at + ROWS_AT_ONCE)
      number += 1
      await lease.append(number, [encodeRows(portion)])
      lease.rowsBehind.add(number, portion)
    }
  }
  await lease.release()
  await record.close()
  await database.close()
}

/** Runs the load on both in turn, after a warm-up. */
async function compare(
  context: BenchmarkContext,
  { limit, project }: { readonly limit: Side; readonly project: Side },
  load: (side: Side, seconds: number) => Promise<CallLoadFigures>,
  record: (round: number, turns: Turns<Turn>) => void,
): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  for (const side of isSmoke ? [] : [limit, project]) await load(side, WARM_UPS * Math.ceil(warmUpSeconds))
  const turnOf = async (side: Side): Promise<Turn> => {
    const before = side.cpuSeconds()
    const figure = await load(side, turnSeconds)
    const after = Object.entries(side.cpuSeconds())
    return {
      figure,
      cpuSeconds: Object.fromEntries(after.map(([name, each]) => [name, each - before[name]!])),
    }
  }
  for (const round of context.rounds()) {
    record(
      round,
      await interleaved(
        round,
        turns,
        () => turnOf(limit),
        () => turnOf(project),
      ),
    )
  }
}

/** Microseconds of processor time of a call, by process. */
function costsOf(turns: readonly Turn[]): Readonly<Record<string, number>> {
  const calls = sum(turns.map(({ figure }) => figure.calls))
  const names = Object.keys(turns[0]!.cpuSeconds)
  const costOf = (name: string) => (1e6 * sum(turns.map(turn => turn.cpuSeconds[name]!))) / calls
  return Object.fromEntries(names.map(name => [name, rounded(costOf(name))]))
}

/** As in `call-start`: V8 compiles what calls need for ten seconds and more, in four processes here. */
const WARM_UPS = 6
const ROWS_AT_ONCE = 500
const ROWS_FILLED = 1_000_000
const ROWS_SMOKE = 10_000

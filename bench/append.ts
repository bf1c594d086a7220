/**
 * How fast the log appender takes entries, as the log grows: the real actor over the real store on the real disk, with
 * 2,048 appends in flight, in a process of its own without sockets and VRF. Once with the log's own tables only and
 * once with all; held against LMDB alone, committing the same bytes in the same batches, and SHA-256 alone of the same
 * bytes. The size of the store's file is taken on the way.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { AppendLimitsProtocol, LimitFigures } from './support/append-limits.ts'
import type { AppendFigures, AppendProtocol } from './support/append-program.ts'
import type { Benchmark, BenchmarkContext, Cost, Measurement, Row } from './support/benchmark.ts'
import type { Tables } from './support/log-engine.ts'
import { Program } from './support/program.ts'
import { profileArguments } from './support/server.ts'
import { mean, median, rounded } from './support/statistics.ts'
import { costOf, type Usage, withUsage } from './support/usage.ts'

const NOT_SHOWN =
  'No socket, no VRF, and hashes are random; it is what remains of Register when these cost nothing.'
const GROWTH_NOT_SHOWN = 'All sizes fit in memory, so no page comes back from the disk.'
const LMDB = 'LMDB alone, same bytes, same batches'
const LOG_TABLES = 'append, log tables only'
const ALL_TABLES = 'append, all tables'
const LOG_BESIDE_LMDB: Row = {
  name: 'append-log-tables',
  project: LOG_TABLES,
  limit: LMDB,
  unit: 'entries/s',
  notShown: NOT_SHOWN,
}
const LOG_BESIDE_SHA256: Row = {
  name: 'append-log-tables-sha256',
  project: LOG_TABLES,
  limit: 'SHA-256 alone, same bytes',
  unit: 'entries/s',
  goal: { of: 'ratio', is: 'at least', value: 0.1 },
  notShown: NOT_SHOWN,
}
const ALL_BESIDE_LMDB: Row = {
  name: 'append-all-tables',
  project: ALL_TABLES,
  limit: LMDB,
  unit: 'entries/s',
  goal: { of: 'project', is: 'at least', value: 20_000 },
  notShown: NOT_SHOWN,
}
const LOG_GROWTH: Row = {
  name: 'append-log-tables-growth',
  project: LOG_TABLES,
  limit: 'the same at the smaller size',
  unit: 'entries/s',
  goal: { of: 'ratio', is: 'at least', value: 0.9 },
  notShown: GROWTH_NOT_SHOWN,
}
const ALL_GROWTH: Row = {
  name: 'append-all-tables-growth',
  project: ALL_TABLES,
  limit: LOG_GROWTH.limit,
  unit: 'entries/s',
  notShown: GROWTH_NOT_SHOWN,
}
const BYTES_NOT_SHOWN =
  'Entries have keys of 32 bytes; the file also holds pages that LMDB will use again, so it is not the least it could be.'
const LOG_BYTES: Row = {
  name: 'disk-log-tables',
  project: 'bytes on disk per entry, log tables',
  limit: 'entry + 32',
  unit: 'bytes',
  goal: { of: 'ratio', is: 'at most', value: 1.2 },
  notShown: BYTES_NOT_SHOWN,
}
const ALL_BYTES: Row = {
  ...LOG_BYTES,
  name: 'disk-all-tables',
  project: 'bytes on disk per entry, all tables',
  goal: { of: 'ratio', is: 'at most', value: 2 },
}

const IN_FLIGHT = 2_048
const ENTRY_BYTES = 134
/** Limits are done with a log's entries within a tenth of a second. */
const LIMIT_TIMES = 2

export const append: Benchmark = { name: 'append', run }

/** Two engines of one size, and the limits beside them. */
interface SizedLogs {
  readonly entries: number
  readonly log: Program<AppendProtocol>
  readonly all: Program<AppendProtocol>
  readonly limits: Program<AppendLimitsProtocol>
}

async function run(context: BenchmarkContext): Promise<void> {
  const { scale } = context
  const sizes: SizedLogs[] = []
  for (const entries of scale.sizes) sizes.push(await growTo(context, entries))
  for (const round of context.rounds()) {
    let smaller: { entries: number; log: AppendFigures; all: AppendFigures } | undefined
    for (const logs of sizes) {
      const figures = await measureSize(context, logs, round)
      const { entries } = logs
      if (smaller !== undefined) {
        const parameters = { entries, than: smaller.entries, inFlight: IN_FLIGHT }
        context.record(LOG_GROWTH, round, { ...growth(smaller.log, figures.log), parameters })
        context.record(ALL_GROWTH, round, { ...growth(smaller.all, figures.all), parameters })
      }
      smaller = { entries, ...figures }
    }
  }
}

function growth(smaller: AppendFigures, larger: AppendFigures): Omit<Measurement, 'parameters'> {
  return {
    limit: smaller.entriesPerSecond,
    project: larger.entriesPerSecond,
    cpuRatio: smaller.cpuMicrosecondsPerEntry / larger.cpuMicrosecondsPerEntry,
  }
}

async function growTo(context: BenchmarkContext, entries: number): Promise<SizedLogs> {
  const log = await startEngine(context, entries, 'log')
  const all = await startEngine(context, entries, 'all')
  const limits = await Program.start<AppendLimitsProtocol>('append-limits', {
    folder: makeFolder(context, `lmdb-${entries}`),
  })
  context.after(() => limits.end())
  const grownLog = await log.ask({ entries, inFlight: IN_FLIGHT })
  const grownAll = await all.ask({ entries, inFlight: IN_FLIGHT })
  await limits.ask({ kind: 'lmdb', batchSizes: grownLog.batchSizes })
  recordBytes(context, LOG_BYTES, entries, grownLog)
  recordBytes(context, ALL_BYTES, entries, grownAll)
  return { entries, log, all, limits }
}

/** The rate of each engine at this size, with the limits measured after each. */
async function measureSize(
  context: BenchmarkContext,
  { entries, log, all, limits }: SizedLogs,
  round: number,
): Promise<{ log: AppendFigures; all: AppendFigures }> {
  // A small log must not become a large one while it is measured.
  const count = Math.min(context.scale.appendedEntries, entries)
  const limitEntries = LIMIT_TIMES * count
  const lmdb: LimitTurn[] = []
  const sha256: LimitTurn[] = []
  const askLimit = (request: AppendLimitsProtocol['request']) =>
    withUsage(limits.pid, () => limits.ask(request))
  const appendTo = async (engine: Program<AppendProtocol>) => {
    const turn = await withUsage(engine.pid, () => engine.ask({ entries: count, inFlight: IN_FLIGHT }))
    const batchSizes = Array.from({ length: LIMIT_TIMES }, () => turn.figure.batchSizes).flat()
    lmdb.push(await askLimit({ kind: 'lmdb', batchSizes }))
    sha256.push(await askLimit({ kind: 'sha256', entries: limitEntries }))
    return turn
  }
  const logTurn = await appendTo(log)
  const allTurn = await appendTo(all)
  const record = (row: Row, limitTurns: readonly LimitTurn[], turn: Usage & { figure: AppendFigures }) => {
    const { figure: figures } = turn
    const limit = means(limitTurns.map(({ figure }) => figure))
    context.record(goalAt(context, row, entries), round, {
      limit: limit.entriesPerSecond,
      project: figures.entriesPerSecond,
      cpuRatio: limit.cpuMicrosecondsPerEntry / figures.cpuMicrosecondsPerEntry,
      costs: {
        limit: costOfEntry(limitTurns, limitEntries * limitTurns.length, limit),
        project: costOfEntry([turn], count, figures),
      },
      parameters: { entries, inFlight: IN_FLIGHT },
      details: {
        appended: count,
        batchMedian: median(figures.batchSizes),
        residentMegabytes: Math.round(figures.residentBytes / 1e6),
      },
    })
  }
  record(LOG_BESIDE_LMDB, lmdb, logTurn)
  record(LOG_BESIDE_SHA256, sha256, logTurn)
  record(ALL_BESIDE_LMDB, lmdb, allTurn)
  return { log: logTurn.figure, all: allTurn.figure }
}

type LimitTurn = Usage & { readonly figure: LimitFigures }

/** The system counts processor time too coarsely for one turn, so the program counts its own. */
function costOfEntry(
  turns: readonly Usage[],
  entries: number,
  { cpuMicrosecondsPerEntry }: Pick<LimitFigures, 'cpuMicrosecondsPerEntry'>,
): Cost {
  return { ...costOf(turns, entries), cpuMicroseconds: rounded(cpuMicrosecondsPerEntry) }
}

function means(turns: readonly LimitFigures[]): LimitFigures {
  return {
    entriesPerSecond: mean(turns.map(({ entriesPerSecond }) => entriesPerSecond)),
    cpuMicrosecondsPerEntry: mean(turns.map(({ cpuMicrosecondsPerEntry }) => cpuMicrosecondsPerEntry)),
  }
}

async function startEngine(
  context: BenchmarkContext,
  entries: number,
  tables: Tables,
): Promise<Program<AppendProtocol>> {
  const folder = makeFolder(context, `${tables}-${entries}`)
  const profile = profileArguments(context.profilesFolder)
  const engine = await Program.start<AppendProtocol>('append-program', { folder, tables }, profile)
  context.after(() => engine.end())
  return engine
}

function recordBytes(context: BenchmarkContext, row: Row, entries: number, figures: AppendFigures): void {
  context.record(goalAt(context, row, entries), 1, {
    limit: ENTRY_BYTES + 32,
    project: figures.storeBytes / entries,
    parameters: { entries },
  })
}

function makeFolder(context: BenchmarkContext, name: string): string {
  const folder = join(context.folder, name)
  mkdirSync(folder)
  return folder
}

/** A log much smaller than elsewhere has no goal: its measurement is short, and mostly of first pages. */
function goalAt({ scale }: BenchmarkContext, row: Row, entries: number): Row {
  const { goal: _goal, ...shown } = row
  return entries < scale.appendedEntries ? shown : row
}

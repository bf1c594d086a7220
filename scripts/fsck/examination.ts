/** A check of the store, line by line, and the repair of tables derived from its entries. */

import type { CheckRequest, StoreReport } from '../../src/check/check-process.ts'
import type { CheckOutcome, LogReport } from '../../src/check/log/fault.ts'
import { reasonAgainstRepair, repairLog } from '../../src/check/log/repair.ts'
import type { RowReport } from '../../src/check/rows/row-check.ts'
import { SignalError } from '../../src/errors.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'

export interface ExaminationOptions {
  readonly repairs: boolean
  readonly check: (request: CheckRequest) => Promise<StoreReport>
  readonly print: (line: Line) => void
}

/** One line of the report. */
export interface Line {
  readonly check: string
  readonly ok: boolean | null
  readonly detail: string
  readonly treeSize?: string
  readonly rootHash?: string
  readonly table?: string
  readonly key?: string
  readonly offset?: string
  /** How many faults there are in all. */
  readonly faults?: string
  readonly repairable?: boolean
}

/** Resolves with the exit code: 0 nothing is wrong, or not any more, 1 something is. Throws for what can't be checked. */
export async function examine(request: CheckRequest, options: ExaminationOptions): Promise<0 | 1> {
  const { repairs, print } = options
  const found = await check(request, options)
  if (!repairs || isClean(found)) return isClean(found) ? 0 : 1
  const reason = reasonAgainstRepair(found.log) ?? (isWhole(found.log) ? NOT_DERIVED : undefined)
  if (reason !== undefined) {
    print({ check: 'repair', ok: false, detail: `nothing was written: ${reason}` })
    return 1
  }
  await repair(request.dataFolder, found.log)
  print({ check: 'repair', ok: true, detail: 'what is derived was written anew; checked again:' })
  return isClean(await check(request, options)) ? 0 : 1
}

async function check(
  request: CheckRequest,
  { check, print }: Omit<ExaminationOptions, 'repairs'>,
): Promise<StoreReport> {
  try {
    const report = await check(request)
    for (const outcome of report.log.outcomes) print(lineOf(outcome, report.log))
    if (report.rows !== undefined) for (const line of linesOf(report.rows)) print(line)
    return report
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    print({ check: 'store', ok: error.code === 'CHECKPOINT_INVALID' ? false : null, detail: error.message })
    throw error
  }
}

async function repair(dataFolder: string, found: LogReport): Promise<void> {
  const database = LmdbStore.open(dataFolder)
  try {
    if (database.copyState !== undefined) throw new SignalError('STORE_UNAVAILABLE', NOT_OF_A_COPY)
    await repairLog(database, found)
  } finally {
    await database.close()
  }
}

function isClean({ log, rows }: StoreReport): boolean {
  return isWhole(log) && (rows?.faults ?? 0) === 0
}

function isWhole({ outcomes }: LogReport): boolean {
  return outcomes.every(({ ok }) => ok !== false)
}

function lineOf({ check, ok, detail, faults, lasting, first }: CheckOutcome, report: LogReport): Line {
  const tree = { treeSize: `${report.treeSize}`, rootHash: report.rootHash }
  if (first === undefined) return { check, ok, detail, ...(check === 'checkpoint' ? tree : {}) }
  const { table, key, offset } = first
  return {
    check,
    ok,
    detail: first.detail,
    table,
    key,
    ...(offset === undefined ? {} : { offset: `${offset}` }),
    faults: `${faults}`,
    repairable: lasting === 0,
  }
}

/** One for each reported row, or one for the whole examination. */
function linesOf({ tables, rows, faults, told }: RowReport): Line[] {
  const looked = `${rows} rows of ${tables} tables: whether each can be read, and its indexes agree`
  if (faults === 0) return [{ check: 'rows', ok: true, detail: looked }]
  const lines = told.map(fault => ({ check: 'rows', ok: false, ...fault, repairable: false }))
  const untold = faults - told.length
  if (untold === 0) return lines
  return [
    ...lines,
    { check: 'rows', ok: false, detail: `${untold} more rows are damaged`, faults: `${untold}` },
  ]
}

const NOT_DERIVED = 'rows can’t be derived from anything: restore a backup'
const NOT_OF_A_COPY =
  'nothing was written: the store is a node’s copy of the ledger; stop the node and remove the folder `store`, and its next start fills it anew'

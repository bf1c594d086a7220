#!/usr/bin/env node
/** Checks the store in a data directory, and repairs what is derived from its entries: `fsck --data-dir DIR`. */

import { SignalError } from '../src/errors.ts'
import { type CheckRequest, checkInProcess, type StoreReport } from '../src/keyserver/check/check-process.ts'
import type { CheckOutcome, LogReport } from '../src/keyserver/check/fault.ts'
import { reasonAgainstRepair, repairLog } from '../src/keyserver/check/repair.ts'
import { Database } from '../src/store/engine/database.ts'
import type { RowReport } from '../src/store/row-check.ts'
import { type Flags, optional, required, runCommand, secret, UsageError } from './support/command.ts'

const USAGE = `usage: node dist/scripts/fsck.js --data-dir DIR [--vkey KEY] [--vrf-sample N] [--repair]

Checks everything that is stored of the log: the form of every entry, every hash tile computed anew, the signed
checkpoint, the identity records and the lookup table. Names the first wrong byte of each (table, key, offset) and goes
on. Then reads every row of all other tables (accounts, devices, contacts, calls, messages): each has to be one, and
each index has to agree with what it points to, both ways. It only reads, at one moment, and may run beside the server.

  --data-dir DIR    the server's data directory (else CALLSIGN_DATA_DIR)
  --vkey KEY        the log's verifier key, which the store must have been made with (else KT_PUBLIC_KEY)
  --vrf-sample N    with VRF_PRIVATE_KEY set: hash the user and device of N entries again (1000 unless given)
  --repair          derive tiles, lookup table and earlier keys of identities from the entries again; the server must be
                    stopped. Entries and signed checkpoints are never written

Prints a line per check: JSON unless at a terminal.
Exit code: 0 nothing is wrong, 1 something is, 2 it could not be checked.
`

async function fsck(flags: Flags): Promise<number> {
  const request = requestOf(flags)
  const found = await check(request)
  if (flags.repair !== true || isClean(found)) return isClean(found) ? 0 : 1
  const reason = reasonAgainstRepair(found.log) ?? (isWhole(found.log) ? NOT_DERIVED : undefined)
  if (reason !== undefined) {
    print({ check: 'repair', ok: false, detail: `nothing was written: ${reason}` })
    return 1
  }
  await repair(request.dataFolder, found.log)
  print({ check: 'repair', ok: true, detail: 'what is derived was written anew; checked again:' })
  return isClean(await check(request)) ? 0 : 1
}

async function check(request: CheckRequest): Promise<StoreReport> {
  try {
    const report = await checkInProcess(request, showProgress)
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
  const database = Database.open(dataFolder)
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

function requestOf(flags: Flags): CheckRequest {
  const vkey = optional(flags, 'vkey') ?? process.env.KT_PUBLIC_KEY
  const vrfSecret = secret('VRF_PRIVATE_KEY')
  const sample = optional(flags, 'vrf-sample')
  if (sample !== undefined && vrfSecret === undefined)
    throw new UsageError('--vrf-sample needs VRF_PRIVATE_KEY')
  const sampleMax = sample === undefined ? SAMPLE_USUAL : Number(sample)
  if (!Number.isSafeInteger(sampleMax) || sampleMax < 1) {
    throw new UsageError(`--vrf-sample ${sample} is not a number of entries`)
  }
  return {
    withRows: true,
    dataFolder: required(flags, 'data-dir', 'CALLSIGN_DATA_DIR'),
    ...(vkey ? { vkey } : {}),
    ...(vrfSecret === undefined ? {} : { vrf: { secret: vrfSecret, sampleMax } }),
  }
}

/** One line of the report. */
interface Line {
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

function print(line: Line): void {
  const text = process.stdout.isTTY ? readable(line) : JSON.stringify(line)
  process.stdout.write(`${text}\n`)
}

function readable({ check, ok, detail, table, key, offset, faults }: Line): string {
  const mark = ok === true ? 'ok     ' : ok === false ? 'DAMAGED' : '-      '
  const byte = offset === undefined ? '' : `, byte ${offset}`
  const place = table === undefined ? '' : `${table}, ${key}${byte}: `
  const others = faults === undefined || faults === '1' ? '' : ` (the first of ${faults})`
  return `${CLEAR_LINE}${mark}  ${check.padEnd(CHECK_CHARS)}  ${place}${detail}${others}`
}

function showProgress(done: number): void {
  if (process.stderr.isTTY)
    process.stderr.write(`${CLEAR_LINE}${Math.floor(done * 100)} %${done < 1 ? '' : CLEAR_LINE}`)
}

const NOT_DERIVED = 'rows can’t be derived from anything: restore a backup'
const NOT_OF_A_COPY =
  'nothing was written: the store is a node’s copy of the record; stop the node and remove the folder `store`, and its next start fills it anew'
const SAMPLE_USUAL = 1_000
const CLEAR_LINE = '\r\u001b[K'
const CHECK_CHARS = 'identities'.length

await runCommand({
  name: 'fsck',
  usage: USAGE,
  flags: { 'data-dir': 'value', vkey: 'value', 'vrf-sample': 'value', repair: 'alone' },
  run: fsck,
})

/**
 * The one row that says who may append, and the statements on it. PostgreSQL's own clock judges the lease, and each
 * statement that writes names the lease's epoch, so the holder of a lost lease changes nothing.
 */

import { SignalError } from '../../errors.ts'
import { textArray } from './array-value.ts'
import type { Connection, Statement } from './connection.ts'

/** A node as the ledger names it. */
export interface NodeIdentity {
  readonly name: string
  /** Where its fellows reach it. */
  readonly address: string
  /** The version of its program. */
  readonly version: string
}

/**
 * `open`: nodes work on it. `filling`: a store is moving into it. `left`: it has moved to the store of one
 * machine, which goes on from it.
 */
export type LedgerState = 'open' | 'filling' | 'left'

/** The writer as every node sees it. */
export interface WriterState {
  readonly state: LedgerState
  /** The last lease's. */
  readonly epoch: number
  /** The number of the last change. */
  readonly last: number
  /** Undefined where no lease lasts. */
  readonly holder: NodeIdentity | undefined
  /** The log's head that is shown, or is about to be. */
  readonly head: Buffer | undefined
}

/** The row as a new lease finds it. */
export interface Acquired {
  readonly epoch: number
  readonly last: number
  /** The log's head. */
  readonly head: Buffer | undefined
}

/** The row as a new connection of the lease finds it. */
export interface Claimed {
  readonly last: number
  readonly head: Buffer | undefined
}

interface WriterRow {
  readonly state: LedgerState
  readonly epoch: number
  readonly last: number
  readonly isHeld: boolean
  readonly node: string
  readonly address: string
  readonly version: string
  readonly head: Buffer | null
}

interface HeadRow {
  readonly head: Buffer | null
}

/** A lease with a new epoch, or undefined where one lasts, or the ledger is in none of these states. */
export async function acquireLease(
  connection: Connection,
  node: NodeIdentity,
  leaseMs: number,
  states: readonly LedgerState[],
): Promise<Acquired | undefined> {
  const [row] = await connection.run<{ epoch: number }>(ACQUIRE, [
    node.name,
    node.address,
    node.version,
    leaseMs,
    textArray(states),
  ])
  if (row === undefined) return undefined
  return { epoch: row.epoch, ...(await readEnd(connection)) }
}

/** False where the lease is lost. One that has run out, and that no node has acquired, is renewed too. */
export async function renewLease(connection: Connection, epoch: number, leaseMs: number): Promise<boolean> {
  return (await connection.run(RENEW, [epoch, leaseMs])).length > 0
}

/** The lease runs out, and followers hear of it. */
export async function releaseLease(connection: Connection, epoch: number): Promise<void> {
  await connection.run(RELEASE, [epoch])
}

/**
 * Binds the lease to its connection of this number: statements of an earlier one that are not executed yet are refused.
 * So the returned row decides their outcome. Undefined where the lease is lost.
 */
export async function claimRow(
  connection: Connection,
  epoch: number,
  connectionNumber: number,
): Promise<Claimed | undefined> {
  const claimed = await connection.run(CLAIM, [epoch, connectionNumber])
  return claimed.length === 0 ? undefined : await readEnd(connection)
}

/** In a statement of its own: one that waited for an append to end would not see what that has appended. */
async function readEnd(connection: Connection): Promise<Claimed> {
  const [row] = await connection.run<HeadRow & { last: number }>(READ_END)
  return { last: row!.last, head: row!.head ?? undefined }
}

/** No node acquires a lease any more. False where the lease is lost, or the ledger does not end with change `last`. */
export async function leaveLedger(connection: Connection, epoch: number, last: number): Promise<boolean> {
  return (await connection.run(LEAVE, [epoch, last])).length > 0
}

export async function readWriter(connection: Connection): Promise<WriterState> {
  const [row] = await connection.run<WriterRow>(READ_WRITER)
  return writerOf(row)
}

export async function readHead(connection: Connection): Promise<Buffer | undefined> {
  const [row] = await connection.run<HeadRow>(READ_HEAD)
  return row!.head ?? undefined
}

/** The writer, and whether the ledger has the change `number` from the lease of `epoch`. */
export async function readWriterAnd(
  connection: Connection,
  number: number,
  deadlineMs: number,
): Promise<{ readonly writer: WriterState; readonly epochAtNumber: number | undefined }> {
  const [row] = await connection.run<WriterRow & { epochAtNumber: number | null }>(
    READ_WRITER_AND,
    [number],
    deadlineMs,
  )
  return { writer: writerOf(row), epochAtNumber: row?.epochAtNumber ?? undefined }
}

function writerOf(row: WriterRow | undefined): WriterState {
  if (row === undefined)
    throw new SignalError('STORE_UNAVAILABLE', 'the table callsign.writer has lost its row')
  const { state, epoch, last, isHeld, node, address, version, head } = row
  const holder = isHeld ? { name: node, address, version } : undefined
  return { state, epoch, last, holder, head: head ?? undefined }
}

/**
 * Choice: an epoch is the time in milliseconds, and above the one before. A database that was put back to an earlier state
 * does not give out an epoch for the second time, so followers notice that its changes are other ones.
 */
const ACQUIRE: Statement = {
  name: 'acquire',
  text: `
    update callsign.writer set
      epoch = greatest(epoch + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint),
      connection = 0,
      node = $1, address = $2, version = $3,
      lease_ends = clock_timestamp() + $4::integer * interval '1 millisecond'
    where lease_ends <= clock_timestamp() and state = any($5::text[])
    returning epoch`,
}

const RENEW: Statement = {
  name: 'renew',
  text: `
    update callsign.writer set lease_ends = clock_timestamp() + $2::integer * interval '1 millisecond'
    where epoch = $1
    returning true`,
}

const RELEASE: Statement = {
  name: 'release',
  text: `
    with released as (
      update callsign.writer set lease_ends = '-infinity' where epoch = $1 returning true
    )
    select pg_notify('callsign', '') from released`,
}

const CLAIM: Statement = {
  name: 'claim',
  text: `
    update callsign.writer set connection = $2 where epoch = $1 and connection < $2
    returning true`,
}

const LAST = 'coalesce((select max(number) from callsign.changes), 0)'

const READ_END: Statement = { name: 'end', text: `select ${LAST} as last, head from callsign.writer` }

const LEAVE: Statement = {
  name: 'leave',
  text: `
    update callsign.writer set state = 'left' where epoch = $1 and ${LAST} = $2 and state = 'open'
    returning true`,
}

const STATE = `state, writer.epoch, ${LAST} as last, lease_ends > clock_timestamp() as "isHeld", node, address, version, head`

const READ_WRITER: Statement = { name: 'writer', text: `select ${STATE} from callsign.writer` }

const READ_WRITER_AND: Statement = {
  name: 'writer_and',
  text: `
    select ${STATE}, (select epoch from callsign.changes where number = $1) as "epochAtNumber"
    from callsign.writer`,
}

const READ_HEAD: Statement = { name: 'head', text: 'select head from callsign.writer' }

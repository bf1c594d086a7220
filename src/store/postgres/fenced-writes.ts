/**
 * The writes of one lease: appended changes and the log's head, one at a time. Each is done, or refused for good.
 *
 * A connection that fails leaves the outcome unknown. Then a new connection claims the writer row: what the earlier one
 * sent can't be executed any more, and the row says whether it was. If it was not, it is sent again. So no write counts
 * twice, and none is lost that was reported done.
 */

import { setTimeout } from 'node:timers/promises'
import { backOffMs } from '../../back-off.ts'
import { assert, SignalError } from '../../errors.ts'
import { bytesArray } from './array-value.ts'
import type { Connection, ConnectionDeps, Statement } from './connection.ts'
import { type FinalOutcome, LeaseLost } from './failure.ts'
import { BACK_OFF, Reconnecting } from './reconnecting.ts'
import { type Claimed, claimRow } from './writer-row.ts'

export interface FencedWritesDeps {
  readonly connection: ConnectionDeps
  readonly epoch: number
  /** The number of the last change as the lease was acquired. */
  readonly last: number
  readonly leaseMs: number
  readonly random: () => number
  readonly monotonicMs: () => number
  /** When the lease has certainly run out, unless it is renewed. */
  readonly overAtMs: () => number
}

interface FencedWrite {
  /** False where the lease is lost. */
  readonly send: (connection: Connection, connectionNumber: number) => Promise<boolean>
  /** Whether an earlier `send` was executed. */
  readonly isDone: (claimed: Claimed) => boolean
  /** The same where the lease is lost. Undefined where the ledger can't tell. */
  readonly wasDone: (connection: Connection) => Promise<boolean | undefined>
}

export class FencedWrites {
  readonly #deps: FencedWritesDeps
  readonly #reconnecting: Reconnecting
  #connectionNumber = 0
  /** By the newest connection; undefined where the lease is lost. */
  #claimed: Claimed | undefined
  #last: number
  #isAppending = false
  #isClosed = false
  #turn: Promise<unknown> = Promise.resolve()
  #lostBy: string | undefined

  constructor(deps: FencedWritesDeps) {
    this.#deps = deps
    this.#last = deps.last
    this.#reconnecting = new Reconnecting(deps.connection, connection => this.#claim(connection))
  }

  /** Whether the lease writes no more. */
  get isLost(): boolean {
    return this.#lostBy !== undefined
  }

  /** See `WriteLease.append`. */
  async append(first: number, bodies: readonly Uint8Array[]): Promise<void> {
    if (this.#lostBy !== undefined) throw new LeaseLost(this.#lostBy, 'not written')
    assert(!this.#isAppending, 'one append is in flight at a time')
    assert(first === this.#last + 1, 'an append follows the last one')
    assert(bodies.length > 0, 'an append has a change')
    this.#isAppending = true
    const { epoch } = this.#deps
    const last = this.#last + bodies.length
    const values = [epoch, this.#last, bytesArray(bodies)]
    try {
      await this.#write({
        send: async (connection, number) => (await connection.run(APPEND, [...values, number])).length > 0,
        isDone: claimed => claimed.last >= last,
        wasDone: async connection => (await connection.run(FIND_CHANGE, [first, epoch])).length > 0,
      })
      this.#last = last
    } finally {
      this.#isAppending = false
    }
  }

  /** See `WriteLease.setHead`. */
  async setHead(before: Uint8Array | undefined, next: Uint8Array): Promise<void> {
    const values = [this.#deps.epoch, before ?? null, next]
    await this.#write({
      send: async (connection, number) => {
        const [row] = await connection.run<{ isSet: boolean }>(SET_HEAD, [...values, number])
        if (row?.isSet === false) throw new SignalError('CHECKPOINT_INVALID', OTHER_HEAD)
        return row !== undefined
      },
      isDone: ({ head }) => head !== undefined && Buffer.compare(head, next) === 0,
      wasDone: async () => undefined,
    })
  }

  /** The lease writes no more; a write that is under way is resolved. */
  lose(reason: string): void {
    this.#lostBy ??= reason
  }

  /** Resolves when the writes before are settled. */
  async settled(): Promise<void> {
    await this.#turn
  }

  /** The lease writes no more; the outcome of a write that is under way may stay unknown. */
  async close(): Promise<void> {
    this.lose('it was closed')
    this.#isClosed = true
    this.#reconnecting.cut()
    await this.#reconnecting.close()
  }

  #write(write: FencedWrite): Promise<void> {
    const written = this.#turn.then(() => this.#resolve(write))
    this.#turn = written.catch(() => {})
    return written
  }

  async #resolve(write: FencedWrite): Promise<void> {
    // A lease that is renewed while its writes fail, as on a full disk, is given up.
    const givesUpAtMs = this.#deps.monotonicMs() + 2 * this.#deps.leaseMs
    let isUnknown = false
    for (let failures = 1; ; failures++) {
      if (this.#lostBy !== undefined && !isUnknown) throw new LeaseLost(this.#lostBy, 'not written')
      try {
        const connection = await this.#reconnecting.get()
        if (this.#claimed === undefined) return await this.#settleLost(write, isUnknown, connection)
        if (isUnknown && write.isDone(this.#claimed)) return
        // PostgreSQL refuses whatever an earlier connection still has on the way.
        isUnknown = true
        if (await write.send(connection, this.#connectionNumber)) return
        throw this.#lost('another node has acquired one', 'not written')
      } catch (error) {
        if (!isUnavailable(error)) throw error
        if (this.#isOver(givesUpAtMs)) throw this.#lost(error.message, isUnknown ? 'unknown' : 'not written')
      }
      await setTimeout(backOffMs(BACK_OFF, failures, this.#deps.random()))
    }
  }

  async #settleLost(write: FencedWrite, isUnknown: boolean, connection: Connection): Promise<void> {
    const wasDone = isUnknown ? await write.wasDone(connection) : false
    const lost = this.#lost(
      'another node has acquired one',
      wasDone === undefined ? 'unknown' : 'not written',
    )
    if (wasDone !== true) throw lost
  }

  #isOver(givesUpAtMs: number): boolean {
    return this.#isClosed || this.#deps.monotonicMs() >= Math.min(givesUpAtMs, this.#deps.overAtMs())
  }

  #lost(reason: string, outcome: FinalOutcome): LeaseLost {
    this.lose(reason)
    return new LeaseLost(reason, outcome)
  }

  async #claim(connection: Connection): Promise<void> {
    this.#connectionNumber += 1
    this.#claimed = await claimRow(connection, this.#deps.epoch, this.#connectionNumber)
  }
}

/** Whether PostgreSQL could not be asked; a lost lease is not asked again. */
function isUnavailable(error: unknown): error is SignalError {
  return error instanceof SignalError && error.code === 'STORE_UNAVAILABLE' && !(error instanceof LeaseLost)
}

const OTHER_HEAD = "the log's head in PostgreSQL was changed: find the other server that signs for this log"

/**
 * The writer row is locked, not written: PostgreSQL keeps each version of a row for as long as a backup or a snapshot runs
 * that may see it, and would look through all of them for each append.
 */
const APPEND: Statement = {
  name: 'append',
  text: `
    with held as (
      select epoch from callsign.writer
      where epoch = $1 and connection = $4
        and ($2::bigint = 0 or exists (select from callsign.changes where number = $2))
        and not exists (select from callsign.changes where number > $2)
      for share
    ), appended as (
      insert into callsign.changes (number, epoch, body)
      select $2 + body.at, held.epoch, body.bytes
      from held, unnest($3::bytea[]) with ordinality as body (bytes, at)
      returning number
    )
    select pg_notify('callsign', max(number)::text) from appended having count(*) > 0`,
}

const FIND_CHANGE: Statement = {
  name: 'find_change',
  text: 'select from callsign.changes where number = $1 and epoch = $2',
}

const SET_HEAD: Statement = {
  name: 'set_head',
  text: `
    update callsign.writer set head = case when head is not distinct from $2::bytea then $3::bytea else head end
    where epoch = $1 and connection = $4
    returning head is not distinct from $3::bytea as "isSet"`,
}

/**
 * The lease of the one node that writes. Its epoch comes from `PostgresLedger.acquire` alone: a lease that is lost stays
 * lost, and its holder forgets changes that the ledger lacks and starts anew as a follower.
 */

import type { ConnectionDeps } from './connection.ts'
import { LeaseLost } from './failure.ts'
import { FencedWrites } from './fenced-writes.ts'
import type { Reconnecting } from './reconnecting.ts'
import { RowsBehind, type RowsBehindDeps } from './rows-behind.ts'
import { type Acquired, releaseLease, renewLease } from './writer-row.ts'

export interface WriteLeaseDeps {
  readonly acquired: Acquired
  /** Between its sending and its answer the lease was acquired. */
  readonly askedAtMs: number
  readonly answeredAtMs: number
  readonly leaseMs: number
  readonly connection: ConnectionDeps
  /** For what need not wait behind an append. */
  readonly control: Reconnecting
  readonly random: () => number
  readonly monotonicMs: () => number
  readonly rows: Pick<RowsBehindDeps, 'everyMs' | 'keptMs' | 'onFailure'>
}

export class WriteLease {
  readonly epoch: number
  /** The number of the last change as the lease was acquired. */
  readonly last: number
  /** The log's head as the lease was acquired. */
  readonly head: Uint8Array | undefined
  /** Takes the rows of the changes that were appended. */
  readonly rowsBehind: RowsBehind
  readonly #deps: WriteLeaseDeps
  readonly #writes: FencedWrites
  #lastsUntilMs: number
  #overAtMs: number

  constructor(deps: WriteLeaseDeps) {
    const { acquired, leaseMs, connection, random, monotonicMs } = deps
    this.#deps = deps
    this.epoch = acquired.epoch
    this.last = acquired.last
    this.head = acquired.head
    this.#lastsUntilMs = deps.askedAtMs + leaseMs
    this.#overAtMs = deps.answeredAtMs + leaseMs
    const { epoch, last } = acquired
    const overAtMs = () => this.#overAtMs
    this.#writes = new FencedWrites({ connection, epoch, last, leaseMs, random, monotonicMs, overAtMs })
    this.rowsBehind = new RowsBehind({ ...deps.rows, connection, epoch, last })
  }

  /** Until then no other node writes, in the monotonic clock. */
  get lastsUntilMs(): number {
    return this.#lastsUntilMs
  }

  /** Whether every further write is refused. */
  get isLost(): boolean {
    return this.#writes.isLost
  }

  /**
   * The lease lasts for its whole length from now. Throws `LeaseLost`: another node has acquired one;
   * `STORE_UNAVAILABLE`: PostgreSQL could not be asked.
   */
  async renew(): Promise<void> {
    const { control, leaseMs, monotonicMs } = this.#deps
    if (this.isLost) throw new LeaseLost(TAKEN_OVER, 'not written')
    const connection = await control.get()
    const askedAtMs = monotonicMs()
    if (!(await renewLease(connection, this.epoch, leaseMs))) {
      this.#writes.lose(TAKEN_OVER)
      throw new LeaseLost(TAKEN_OVER, 'not written')
    }
    this.#lastsUntilMs = askedAtMs + leaseMs
    this.#overAtMs = monotonicMs() + leaseMs
  }

  /**
   * Appends changes with the numbers from `first` on, all or none, and resolves when they are durable. One append is in
   * flight at a time, and each follows the one before. An outcome that the connection left unknown is found out.
   *
   * Throws `LeaseLost`, after which the lease appends no more.
   */
  append(first: number, bodies: readonly Uint8Array[]): Promise<void> {
    return this.#writes.append(first, bodies)
  }

  /**
   * Puts the log's head where it is `before`. Throws `CHECKPOINT_INVALID` for a different head; `LeaseLost` as for
   * `append`.
   */
  setHead(before: Uint8Array | undefined, next: Uint8Array): Promise<void> {
    return this.#writes.setHead(before, next)
  }

  /** Writes the rows that are behind, then lets other nodes acquire. Nothing is appended any more. */
  async release(): Promise<void> {
    await this.#writes.settled()
    const wasLost = this.isLost
    this.#writes.lose('it was released')
    await this.rowsBehind.settle().catch(() => {})
    try {
      if (!wasLost) await releaseLease(await this.#deps.control.get(), this.epoch)
    } finally {
      await this.close()
    }
  }

  /** Ends its connections at once; the lease runs out by itself. */
  async close(): Promise<void> {
    await Promise.all([this.#writes.close(), this.rowsBehind.close()])
  }
}

const TAKEN_OVER = 'another node has acquired one'

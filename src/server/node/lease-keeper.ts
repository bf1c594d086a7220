/** The lease by which this node is the writer, kept for as long as the node may change anything. */

import { SignalError } from '../../errors.ts'
import type { LogHead } from '../../log/checkpoint.ts'
import type { Logger } from '../../operations/log.ts'
import type { World } from '../../runtime/clock.ts'
import type { ChangeLedger, LedgerChange } from '../../store/engine/change-ledger.ts'
import { NotInLedgerError } from '../../store/engine/change-ledger.ts'
import { LeaseLost } from '../../store/postgres/failure.ts'
import type { WriteLease } from '../../store/postgres/write-lease.ts'
import { encodeRows } from '../../store/postgres/written-rows.ts'

export interface LeaseKeeperDeps {
  readonly lease: WriteLease
  readonly world: Pick<World, 'monotonicMs' | 'every'>
  readonly logger: Pick<Logger, 'warn'>
  /** Called once: the lease has run out or another node has it, so this node is no longer the writer. */
  readonly onLost: (error: LeaseLost) => void
}

export class LeaseKeeper implements ChangeLedger {
  readonly epoch: number
  readonly #deps: LeaseKeeperDeps
  readonly #stopRenewing: () => void
  readonly #stopWatching: () => void
  #head: Uint8Array | undefined
  #isLost = false

  constructor(deps: LeaseKeeperDeps) {
    const { lease, world } = deps
    this.#deps = deps
    this.epoch = lease.epoch
    this.#head = lease.head
    this.#stopRenewing = world.every(RENEW_MS, () => void this.#renew())
    this.#stopWatching = world.every(WATCH_MS, () => {
      if (world.monotonicMs() > lease.lastsUntilMs) this.#lose(new LeaseLost('it has run out', 'not written'))
    })
  }

  /** Until then no other node writes, in the monotonic clock. */
  get lastsUntilMs(): number {
    // PostgreSQL may have given a lease away that lasted by this clock.
    return this.#isLost ? Number.NEGATIVE_INFINITY : this.#deps.lease.lastsUntilMs
  }

  /** Old changes that a node which is being filled keeps in the record. */
  get heldBack(): number {
    return this.#deps.lease.rowsBehind.heldBack
  }

  async append(changes: readonly LedgerChange[]): Promise<void> {
    const { lease } = this.#deps
    try {
      await lease.append(
        changes[0]!.number,
        changes.map(({ rows }) => encodeRows(rows)),
      )
    } catch (error) {
      if (!(error instanceof LeaseLost)) throw error
      this.#lose(error)
      if (error.outcome === 'unknown')
        throw new SignalError('OUTCOME_UNKNOWN', error.message, { cause: error })
      throw new NotInLedgerError(error.message)
    }
    for (const { number, rows } of changes) lease.rowsBehind.add(number, rows)
  }

  /** Puts the log's head beside the changes. Rejects with `CHECKPOINT_INVALID` where another server has put one there. */
  recordHead({ checkpoint }: LogHead): Promise<void> {
    const [before, next] = [this.#head, Buffer.from(checkpoint)]
    this.#head = next
    return this.#deps.lease.setHead(before, next)
  }

  /**
   * Lets another node be the writer. Call it after this node's last change. Rows of a lost lease that are still behind are the
   * next writer's work: while PostgreSQL is slow they would hold up the step down.
   */
  async release(): Promise<void> {
    this.#rest()
    if (this.#isLost) await this.#deps.lease.close()
    else await this.#deps.lease.release()
  }

  #lose(error: LeaseLost): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#rest()
    this.#deps.onLost(error)
  }

  #rest(): void {
    this.#stopRenewing()
    this.#stopWatching()
  }

  async #renew(): Promise<void> {
    const { lease, logger } = this.#deps
    try {
      await lease.renew()
    } catch (error) {
      if (error instanceof LeaseLost) this.#lose(error)
      else logger.warn({ event: 'lease-not-renewed', err: error })
    }
  }
}

const RENEW_MS = 1_000
const WATCH_MS = 250

/** The lease by which this process is the writer, kept for as long as the process may change anything. */

import type { LogHead } from '../../log/checkpoint.ts'
import type { Logger } from '../../operations/log.ts'
import type { World } from '../../runtime/clock.ts'
import type { ChangeLedger, LedgerChange } from '../../store/engine/change-ledger.ts'
import { LeaseLost } from '../../store/postgres/failure.ts'
import type { WriteLease } from '../../store/postgres/write-lease.ts'
import { encodeRows } from '../../store/postgres/written-rows.ts'

export interface LeaseKeeperDeps {
  readonly lease: WriteLease
  readonly world: Pick<World, 'monotonicMs' | 'every'>
  readonly logger: Pick<Logger, 'warn'>
  /** The lease has run out or another node has it: this process is no longer the writer, and must end. */
  readonly onLost: (error: unknown) => void
}

export class LeaseKeeper implements ChangeLedger {
  readonly epoch: number
  readonly #deps: LeaseKeeperDeps
  readonly #stopRenewing: () => void
  readonly #stopWatching: () => void
  #head: Uint8Array | undefined

  constructor(deps: LeaseKeeperDeps) {
    const { lease, world } = deps
    this.#deps = deps
    this.epoch = lease.epoch
    this.#head = lease.head
    this.#stopRenewing = world.every(RENEW_MS, () => void this.#renew())
    this.#stopWatching = world.every(WATCH_MS, () => {
      if (world.monotonicMs() > lease.lastsUntilMs)
        deps.onLost(new LeaseLost('it has run out', 'not written'))
    })
  }

  /** Until then no other node writes, in the monotonic clock. */
  get lastsUntilMs(): number {
    return this.#deps.lease.lastsUntilMs
  }

  /** Old changes that a node which is being filled keeps in the record. */
  get heldBack(): number {
    return this.#deps.lease.rowsBehind.heldBack
  }

  async append(changes: readonly LedgerChange[]): Promise<void> {
    const { lease } = this.#deps
    await lease.append(
      changes[0]!.number,
      changes.map(({ rows }) => encodeRows(rows)),
    )
    for (const { number, rows } of changes) lease.rowsBehind.add(number, rows)
  }

  /** Puts the log's head beside the changes. Rejects with `CHECKPOINT_INVALID` where another server has put one there. */
  recordHead({ checkpoint }: LogHead): Promise<void> {
    const [before, next] = [this.#head, Buffer.from(checkpoint)]
    this.#head = next
    return this.#deps.lease.setHead(before, next)
  }

  /** Lets another node be the writer. Call it after this process's last change. */
  async release(): Promise<void> {
    this.#stopRenewing()
    this.#stopWatching()
    await this.#deps.lease.release()
  }

  async #renew(): Promise<void> {
    const { lease, logger, onLost } = this.#deps
    try {
      await lease.renew()
    } catch (error) {
      if (error instanceof LeaseLost) onLost(error)
      else logger.warn({ event: 'lease-not-renewed', err: error })
    }
  }
}

const RENEW_MS = 1_000
const WATCH_MS = 250

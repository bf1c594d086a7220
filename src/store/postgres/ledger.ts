/**
 * The system of ledger of several nodes: PostgreSQL, 15 or newer, with the order of changes, the rows that they make, and
 * the lease of the one node that writes. Bodies of changes are bytes to it, but for the rows that it writes behind.
 *
 * The writer acquires a `WriteLease` and appends. Every other node takes a `snapshot` and `follow`s from there.
 */

import type { Position } from './changes.ts'
import type { ConnectionDeps } from './connection.ts'
import { type Durability, readDurability } from './durability.ts'
import { LeaseLost } from './failure.ts'
import { Filling } from './filling.ts'
import { Follower, type Following } from './follower.ts'
import { Hold } from './holds.ts'
import { Reconnecting } from './reconnecting.ts'
import { openSchema } from './schema.ts'
import { refuseSharedSessions } from './shared-session.ts'
import { type OnRows, readSnapshot } from './snapshot.ts'
import { WriteLease } from './write-lease.ts'
import {
  acquireLease,
  type LedgerState,
  leaveLedger,
  type NodeIdentity,
  readHead,
  readWriter,
  type WriterState,
} from './writer-row.ts'

export interface PostgresLedgerDeps {
  /** `postgres://`, with a password; TLS as its parameters say. */
  readonly url: string
  readonly node: NodeIdentity
  readonly monotonicMs: () => number
  /** At least 0, less than 1; spreads attempts to connect. */
  readonly random: () => number
  /** Hears of failures after which the ledger goes on by itself. */
  readonly onFailure: (error: unknown) => void
  readonly leaseMs?: number
  /** How often rows are written behind the changes. */
  readonly rowsEveryMs?: number
  /** How long changes are kept for followers. */
  readonly changesKeptMs?: number
}

export class PostgresLedger {
  readonly #deps: PostgresLedgerDeps
  readonly #connection: ConnectionDeps
  readonly #control: Reconnecting
  readonly #followers = new Set<Follower>()
  /** A snapshot's hold until its follower takes it over, by the number of the snapshot's change. */
  readonly #holds = new Map<number, Hold>()
  /** The one that was acquired last. */
  #lease: WriteLease | undefined

  private constructor(deps: PostgresLedgerDeps) {
    this.#deps = deps
    this.#connection = { url: deps.url, applicationName: `callsign ${deps.node.name}` }
    this.#control = new Reconnecting(this.#connection)
  }

  /**
   * Makes the tables where they are missing. Throws `STORE_UNAVAILABLE`: PostgreSQL can't be reached or is too old, a pooler
   * shares its sessions out, or the tables are of a newer program.
   */
  static async open(deps: PostgresLedgerDeps): Promise<PostgresLedger> {
    const ledger = new PostgresLedger(deps)
    try {
      const control = await ledger.#control.get()
      await refuseSharedSessions(control, ledger.#connection)
      await openSchema(control)
      return ledger
    } catch (error) {
      await ledger.close()
      throw error
    }
  }

  /**
   * The lease, with a new epoch, or undefined where a node's lease lasts, or the ledger is in none of these states. Ends
   * an earlier lease of this ledger. Throws `STORE_UNAVAILABLE`.
   */
  async acquire(states: readonly LedgerState[] = ['open']): Promise<WriteLease | undefined> {
    const { node, monotonicMs, random, onFailure } = this.#deps
    const { leaseMs = LEASE_MS, rowsEveryMs = ROWS_EVERY_MS, changesKeptMs = CHANGES_KEPT_MS } = this.#deps
    const control = await this.#control.get()
    const askedAtMs = monotonicMs()
    const acquired = await acquireLease(control, node, leaseMs, states)
    if (acquired === undefined) return undefined
    await this.#lease?.close()
    this.#lease = new WriteLease({
      acquired,
      askedAtMs,
      answeredAtMs: monotonicMs(),
      leaseMs,
      connection: this.#connection,
      control: this.#control,
      random,
      monotonicMs,
      rows: { everyMs: rowsEveryMs, keptMs: changesKeptMs, onFailure },
    })
    return this.#lease
  }

  /** Throws `STORE_UNAVAILABLE`. */
  async writer(): Promise<WriterState> {
    return await readWriter(await this.#control.get())
  }

  /** The log's head. Throws `STORE_UNAVAILABLE`. */
  async head(): Promise<Uint8Array | undefined> {
    return await readHead(await this.#control.get())
  }

  /** How well PostgreSQL keeps changes now. Throws `STORE_UNAVAILABLE`. */
  async durability(): Promise<Durability> {
    return await readDurability(await this.#control.get())
  }

  /** Begins at once, and goes on through failures until it is closed or has to start anew. */
  follow(following: Following): Follower {
    const { monotonicMs, random } = this.#deps
    const { number } = following.after
    const hold = this.#holds.get(number) ?? this.#newHold()
    this.#holds.delete(number)
    const follower = new Follower({ connection: this.#connection, monotonicMs, random, hold }, following)
    this.#followers.add(follower)
    const forget = () => void this.#followers.delete(follower)
    follower.ended.then(forget, forget)
    return follower
  }

  /**
   * All rows, in portions, and the change that they are of, from which the caller follows. Later changes are kept for it
   * while it makes progress. Throws `STORE_UNAVAILABLE`: only a part of them came.
   */
  async snapshot(onRows: OnRows): Promise<Position> {
    const hold = this.#newHold()
    // Committed before the rows are read: a deletion that did not see the hold removes older changes alone.
    await hold.begin(await this.#control.get())
    const position = await readSnapshot(this.#connection, async rows => {
      await this.#renew(hold)
      await onRows(rows)
    })
    await this.#renew(hold)
    this.#holds.set(position.number, hold)
    return position
  }

  /** Undefined where the ledger is not empty. Throws `LeaseLost`, `STORE_UNAVAILABLE`. */
  fill({ epoch }: Pick<WriteLease, 'epoch'>): Promise<Filling | undefined> {
    return Filling.begin(this.#connection, epoch)
  }

  /**
   * Retires the ledger: no node works on it any more, and its log goes on elsewhere. Throws `LeaseLost`, also where the
   * ledger has changed since the lease was acquired; `STORE_UNAVAILABLE`: it may have been left.
   */
  async leave({ epoch, last }: Pick<WriteLease, 'epoch' | 'last'>): Promise<void> {
    const isLeft = await leaveLedger(await this.#control.get(), epoch, last)
    if (!isLeft) throw new LeaseLost('another node has acquired one', 'not written')
  }

  #newHold(): Hold {
    return new Hold(this.#deps.node.name, this.#deps.monotonicMs)
  }

  /** The rows come by another connection, so a failure is no reason to begin anew: the next portion renews it. */
  async #renew(hold: Hold): Promise<void> {
    try {
      await hold.renew(await this.#control.get())
    } catch (error) {
      this.#deps.onFailure(error)
    }
  }

  /** A lease that was not released runs out by itself. */
  async close(): Promise<void> {
    await Promise.all([this.#lease, ...this.#followers].map(each => each?.close()))
    this.#control.cut()
    await this.#control.close()
  }
}

const LEASE_MS = 5_000
const ROWS_EVERY_MS = 1_000
const CHANGES_KEPT_MS = 60 * 60_000

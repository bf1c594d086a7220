/**
 * The writer's end of a link with a front. It counts messages sent and acknowledged, and knows until when the front may
 * answer reads without the rest: a change waits for it no longer.
 */

import type { World } from '../runtime/clock.ts'
import { Watermark } from '../watermark.ts'
import type { Link } from './link/link.ts'
import { type MessageToFront, READ_LEASE_MS } from './messages.ts'

/** A question that the front has not answered yet. */
interface Barrier {
  /** Messages before it. */
  readonly count: number
  readonly sentAtMs: number
}

export class FrontLink {
  /** Unique in the cluster, once the front has said it. */
  name = ''
  readonly link: Pick<Link, 'send' | 'sendSoon'>
  readonly #world: Pick<World, 'monotonicMs'>
  /** In a front of another node: when its read lease ends; undefined in one of this machine, which needs none. */
  #leaseEndsAtMs: number | undefined
  #sent = 0
  readonly #acknowledged = new Watermark()
  /** Oldest first. */
  #barriers: Barrier[] = []
  /** How long the last answers took, the newest weighing most; undefined before the first. */
  #answersInMs: number | undefined
  #waitedMs = 0

  /** `isFar`: on another node, where it reads by a lease. */
  constructor(link: Pick<Link, 'send' | 'sendSoon'>, world: Pick<World, 'monotonicMs'>, isFar: boolean) {
    this.link = link
    this.#world = world
    this.#leaseEndsAtMs = isFar ? Number.NEGATIVE_INFINITY : undefined
  }

  send(message: MessageToFront): void {
    this.#sent += 1
    this.link.send(message)
  }

  /** As `send`, but it may wait some milliseconds for the next message. */
  sendSoon(message: MessageToFront): void {
    this.#sent += 1
    this.link.sendSoon(message)
  }

  onAcknowledged(count: number): void {
    while (this.#barriers.length > 0 && this.#barriers[0]!.count <= count) {
      const tookMs = this.#world.monotonicMs() - this.#barriers.shift()!.sentAtMs
      const before = this.#answersInMs ?? tookMs
      this.#answersInMs = before + (tookMs - before) / ANSWERS_WEIGHED
    }
    this.#acknowledged.reach(count)
  }

  /** Call this when its process is known to be gone. */
  onGone(): void {
    this.#acknowledged.reach(Number.POSITIVE_INFINITY)
    this.#barriers = []
  }

  /** Call this when its link is lost and the process may go on: it will acknowledge nothing more. */
  onLinkLost(): void {
    this.#sent = Number.POSITIVE_INFINITY
  }

  /** Releases waits that have no reason any more. */
  onTick(): void {
    if (!this.mayRead) this.endWaits()
  }

  endWaits(): void {
    this.#acknowledged.giveUp(Number.POSITIVE_INFINITY)
  }

  /** Answers a front's request, by its own clock, for a read lease: one that is slow gets none, and asks the ledger before each read. */
  renewReadLease(askedAtMs: number): void {
    // Its answer tells how slow the link is, also while nothing changes.
    if (this.#barriers.length === 0) this.#ask()
    if (this.#answersInMs === undefined || this.lagMs > LAG_MS_MAX) return
    this.#leaseEndsAtMs = this.#world.monotonicMs() + READ_LEASE_MS
    this.sendSoon({ kind: 'read-lease', askedAtMs })
  }

  /** Resolves when the front has no read lease. */
  async endReadLease(): Promise<void> {
    this.send({ kind: 'read-lease', askedAtMs: undefined })
    await this.caughtUp()
    this.#leaseEndsAtMs = Number.NEGATIVE_INFINITY
  }

  /** How far behind the front is: how long it takes to answer, or has left a question open. */
  get lagMs(): number {
    const [oldest] = this.#barriers
    const openMs = oldest === undefined ? 0 : this.#world.monotonicMs() - oldest.sentAtMs
    return Math.max(this.#answersInMs ?? 0, openMs)
  }

  /** How long it was waited for, summed over those who waited. */
  get waitedMs(): number {
    return this.#waitedMs
  }

  /** Whether it may answer reads now from what it has acknowledged. */
  get mayRead(): boolean {
    const nowMs = this.#world.monotonicMs()
    if (this.#leaseEndsAtMs !== undefined) return nowMs <= this.#leaseEndsAtMs
    const [oldest] = this.#barriers
    return oldest === undefined || nowMs - oldest.sentAtMs <= NEAR_LAG_MS_MAX
  }

  /** Resolves when it has acknowledged all messages sent so far, or may not read without them; undefined where that is so. */
  caughtUp(): Promise<void> | undefined {
    const count = this.#sent
    if (this.#acknowledged.reached >= count || !this.mayRead) return undefined
    if ((this.#barriers.at(-1)?.count ?? 0) < count) this.#ask()
    const beganAtMs = this.#world.monotonicMs()
    return this.#acknowledged.wait(count).then(() => {
      this.#waitedMs += this.#world.monotonicMs() - beganAtMs
    })
  }

  #ask(): void {
    this.#barriers.push({ count: this.#sent, sentAtMs: this.#world.monotonicMs() })
    this.link.send({ kind: 'barrier' } satisfies MessageToFront)
  }
}

/** About the last four count. */
const ANSWERS_WEIGHED = 4
/** Within a data centre an answer takes some milliseconds. Each change waits for the slowest front that has a lease. */
const LAG_MS_MAX = 150
/** A front of this machine that hangs answers no read. This is for one that is only slow. */
const NEAR_LAG_MS_MAX = 2_200

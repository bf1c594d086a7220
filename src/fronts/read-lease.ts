/**
 * In a front of a node: whether it may answer from its copy now. It may while it has a read lease: the writer then
 * answers no client before this front shows that client's change. Without a lease (no writer, or no way to it), a read
 * waits until the copy has all that the ledger had when the read came.
 */

import { SignalError } from '../errors.ts'
import type { World } from '../runtime/clock.ts'
import { Watermark } from '../watermark.ts'
import { COPY_AGE_MS_MAX, READ_LEASE_MS } from './messages.ts'

export interface ReadLeaseDeps {
  /** The clock in which `current` is given. */
  readonly machineMs: () => number
  readonly world: Pick<World, 'every'>
  /** Asks for a `current` no older than now. */
  readonly poll: () => void
}

export class ReadLease {
  readonly #deps: ReadLeaseDeps
  /** When the copy last had all that the ledger had, and reads that wait for a later such time. */
  readonly #currentAtMs = new Watermark(Number.NEGATIVE_INFINITY)
  #lastsUntilMs = Number.NEGATIVE_INFINITY
  #stopTicking: (() => void) | undefined

  constructor(deps: ReadLeaseDeps) {
    this.#deps = deps
  }

  /** At this time the copy had all that the ledger had. */
  current(atMs: number): void {
    this.#currentAtMs.reach(atMs)
    if (this.#currentAtMs.isAwaited) this.#deps.poll()
    else this.#rest()
  }

  /** The writer has granted a lease requested at this time. */
  given(askedAtMs: number): void {
    this.#lastsUntilMs = askedAtMs + READ_LEASE_MS
  }

  /** This node is the writer: it sends its fronts each change, and each `current`, in one order. */
  needsNone(): void {
    this.#lastsUntilMs = Number.POSITIVE_INFINITY
  }

  end(): void {
    this.#lastsUntilMs = Number.NEGATIVE_INFINITY
  }

  /** Throws `STORE_UNAVAILABLE` where the copy may be old. */
  assertFresh(): void {
    if (this.#deps.machineMs() - this.#currentAtMs.reached > COPY_AGE_MS_MAX) throw mayBeOld()
  }

  /** Whether a read may be answered now. */
  get isFresh(): boolean {
    const atMs = this.#deps.machineMs()
    return atMs <= this.#lastsUntilMs && atMs - this.#currentAtMs.reached <= COPY_AGE_MS_MAX
  }

  /** Undefined where a read may be answered now; else resolves when it may. Throws and rejects as `assertFresh`. */
  mayRead(): Promise<void> | undefined {
    this.assertFresh()
    const atMs = this.#deps.machineMs()
    if (atMs <= this.#lastsUntilMs) return undefined
    const isFirst = !this.#currentAtMs.isAwaited
    const current = this.#currentAtMs.wait(atMs)
    if (isFirst && this.#currentAtMs.isAwaited) {
      this.#stopTicking = this.#deps.world.every(COPY_AGE_MS_MAX / 4, () => this.#refuseLate())
      this.#deps.poll()
    }
    return current
  }

  #refuseLate(): void {
    this.#currentAtMs.refuseBelow(this.#deps.machineMs() - COPY_AGE_MS_MAX, mayBeOld())
    if (!this.#currentAtMs.isAwaited) this.#rest()
  }

  #rest(): void {
    this.#stopTicking?.()
    this.#stopTicking = undefined
  }
}

function mayBeOld(): SignalError {
  return new SignalError('STORE_UNAVAILABLE', 'the copy of this node may be old')
}

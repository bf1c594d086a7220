/**
 * Pending work of one actor object: commits with held effects, armed timers, open asks, slow work. With any of it the
 * actor is not idle. It ends with the actor object.
 */
import type { SignalError } from '../errors.ts'
import type { PendingAsk } from './ask.ts'
import type { Cell } from './cell.ts'
import { Envelope } from './envelope.ts'
import { Ring } from './mailbox.ts'
import { WheelTimer } from './timers.ts'

/** Made when the first of it begins, let go when there is none. */
export class Pending {
  /** As long as it needs to be and no longer: a connection has one, and there are many connections. */
  timers: readonly ActorTimer[] = NO_TIMERS
  /** Slow work whose outcome has not come back. */
  outcomes = 0
  /** In the order they were handed over, which is the order of release. */
  #commits: Ring<HeldCommit> | undefined = undefined
  #asks: Set<PendingAsk<never>> | undefined = undefined

  get isEmpty(): boolean {
    return !this.isOwing && !this.#asks?.size
  }

  /** Whether the actor object was going to do something without being told to. */
  get isOwing(): boolean {
    return this.outcomes > 0 || this.timers.length > 0 || this.hasCommits
  }

  get hasCommits(): boolean {
    return this.#commits !== undefined && this.#commits.length > 0
  }

  get oldestCommit(): HeldCommit | undefined {
    return this.#commits?.peek()
  }

  /** Whether the oldest commit has settled: no other may be released before it. */
  get canRelease(): boolean {
    return this.#commits?.peek()?.hasSettled === true
  }

  hold(commit: HeldCommit): void {
    this.#commits ??= new Ring()
    this.#commits.push(commit)
  }

  /** Takes out the oldest commit; undefined when there is none. */
  takeCommit(): HeldCommit | undefined {
    return this.#commits?.shift()
  }

  addAsk(ask: PendingAsk<never>): void {
    this.#asks ??= new Set()
    this.#asks.add(ask)
  }

  forgetAsk(ask: PendingAsk<never>): void {
    this.#asks?.delete(ask)
  }

  refuseAsks(error: SignalError): void {
    if (this.#asks !== undefined) for (const ask of this.#asks) ask.discard(error)
  }

  timer(key: string): ActorTimer | undefined {
    for (const timer of this.timers) if (timer.key === key) return timer
    return undefined
  }

  addTimer(timer: ActorTimer): void {
    this.timers = this.timers.concat(timer)
  }

  forgetTimer(timer: ActorTimer): void {
    const others = this.timers.filter(each => each !== timer)
    this.timers = others.length === 0 ? NO_TIMERS : others
  }
}

const NO_TIMERS: readonly ActorTimer[] = []

/** A started write, and its effects once it is durable. */
export class HeldCommit {
  readonly effects: () => void
  readonly askChain: readonly string[] | undefined
  readonly #cell: Cell
  /** Waits for this commit to settle, so that it is built from a store that has it. */
  heir: Cell | undefined = undefined
  hasSettled = false
  hasFailed = false
  error: unknown = undefined

  constructor(cell: Cell, effects: () => void) {
    this.#cell = cell
    this.effects = effects
    this.askChain = cell.kind.internals.askChain
  }

  onDurable(): void {
    this.#settle()
  }

  onFailed(error: unknown): void {
    this.hasFailed = true
    this.error = error
    // The actor's state differs from the store, so it takes no further message. It ends when this commit is the
    // oldest.
    this.#cell.close()
    this.#settle()
  }

  #settle(): void {
    const cell = this.#cell
    const internals = cell.kind.internals
    this.hasSettled = true
    internals.underWay.commits -= 1
    if (this.heir !== undefined) internals.release(this.heir)
    else if (cell.canWake && cell.pending?.oldestCommit === this) internals.wake(cell)
    internals.onEnded()
  }
}

/** One timer of one actor under one key. Its generation changes whenever it is started, cancelled or dropped. */
export class ActorTimer extends WheelTimer {
  readonly key: string
  readonly #cell: Cell
  message: unknown = undefined
  generation = 0

  constructor(cell: Cell, key: string) {
    super()
    this.#cell = cell
    this.key = key
  }

  start(ms: number, message: unknown): void {
    this.renew()
    this.message = message
    this.#cell.kind.internals.wheel.arm(this, ms)
  }

  cancel(): void {
    this.renew()
    this.#cell.kind.internals.wheel.cancel(this)
  }

  /** Makes a firing that is under way stale. */
  renew(): void {
    this.generation += 1
  }

  fire(): void {
    this.#cell.acceptControl(new TimerFiring(this))
  }
}

/** A firing on its way through the mailbox: messages handled before it may cancel or restart its timer. */
class TimerFiring extends Envelope {
  readonly #timer: ActorTimer
  readonly #generation: number

  constructor(timer: ActorTimer) {
    super()
    this.#timer = timer
    this.#generation = timer.generation
  }

  get content(): unknown {
    return this.#timer.message
  }

  hasMessageFor(): boolean {
    return this.#timer.generation === this.#generation
  }

  open(cell: Cell): unknown {
    if (!this.hasMessageFor()) return undefined
    cell.pending?.forgetTimer(this.#timer)
    return this.#timer.message
  }
}

/** Slow work of one actor object, and how its outcome becomes a message. */
export class WorkOutcome<Outcome> extends Envelope {
  readonly content = undefined
  readonly #cell: Cell
  readonly #message: (outcome: Outcome) => unknown
  readonly #failed: (error: unknown) => unknown
  readonly #askChain: readonly string[] | undefined
  #outcome: { readonly value: Outcome } | { readonly error: unknown } | undefined = undefined

  constructor(cell: Cell, message: (outcome: Outcome) => unknown, failed: (error: unknown) => unknown) {
    super()
    this.#cell = cell
    this.#message = message
    this.#failed = failed
    this.#askChain = cell.kind.internals.askChain
  }

  onDone(value: Outcome): void {
    this.#outcome = { value }
    this.#deliver()
  }

  onFailed(error: unknown): void {
    this.#outcome = { error }
    this.#deliver()
  }

  hasMessageFor(cell: Cell): boolean {
    return cell === this.#cell
  }

  open(cell: Cell): unknown {
    if (this.#outcome === undefined || cell !== this.#cell) return this.#toDeadLetters()
    cell.kind.internals.askChain = this.#askChain
    return 'error' in this.#outcome ? this.#failed(this.#outcome.error) : this.#message(this.#outcome.value)
  }

  #deliver(): void {
    const cell = this.#cell
    const internals = cell.kind.internals
    internals.underWay.outcomes -= 1
    if (cell.isGone) {
      this.#toDeadLetters()
    } else {
      if (cell.pending !== undefined) cell.pending.outcomes -= 1
      cell.acceptControl(this)
    }
    internals.onEnded()
  }

  #toDeadLetters(): undefined {
    const { kind, id } = this.#cell
    kind.internals.deadLetters.add('stale-outcome', kind.name, id, '')
  }
}

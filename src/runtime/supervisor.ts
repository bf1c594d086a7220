/**
 * How actors end: by failing, by a rejected commit, by their own wish, by idleness, with the process. Every end drops
 * the actor object; ends differ in notified parties and in when the next actor may be built.
 */
import { SignalError } from '../errors.ts'
import { ASLEEP, Cell, GONE, HELD } from './cell.ts'
import { Envelope, messageKind } from './envelope.ts'
import type { DeadLetterReason } from './figures.ts'
import type { Internals } from './internals.ts'
import type { Kind } from './kind.ts'
import type { Mailbox } from './mailbox.ts'
import { CallbackTimer, TICK_MS, WheelTimer } from './timers.ts'

export class Supervisor {
  readonly #internals: Internals
  readonly #fatal: (error: unknown) => void
  /** Heirs that are to be built even if no message comes. */
  readonly #owed = new Set<Cell>()

  constructor(internals: Internals, fatal: (error: unknown) => void) {
    this.#internals = internals
    this.#fatal = fatal
  }

  /** A turn threw. `entry` is what it handled; undefined when that was no message. */
  onThrown(cell: Cell, error: unknown, entry: unknown): void {
    const { kind, id } = cell
    kind.figures.restarts += 1
    this.#internals.report(kind.name, id, error)
    if (entry !== undefined) this.#internals.deadLetters.add('poison', kind.name, id, messageKind(entry))
    const failed = new SignalError('INTERNAL', `actor ${kind.name}/${id} failed`, { cause: error })
    cell.pending?.refuseAsks(failed)
    const record = this.#recordFailure(kind, id)
    if (kind.definition.onFailure === 'stop-process') {
      this.#giveUp(cell, record, failed)
      // Never forgotten: an actor that lost an invariant must not run again in this process.
      this.#internals.wheel.cancel(record)
      this.#fatal(error)
    } else if (record.count > FAILURES_MAX) {
      this.#giveUp(cell, record, failed)
      this.#guard(cell, () => kind.definition.onGivenUp?.(id))
    } else {
      this.#pause(this.#replaceOwed(cell), PAUSE_MS_MIN * 2 ** (record.count - 1))
    }
  }

  /** The oldest commit was rejected: what the actor knows is not what the store holds. */
  onCommitFailed(cell: Cell, error: unknown): void {
    const { kind, id } = cell
    kind.figures.commitFailures += 1
    this.#internals.report(kind.name, id, error)
    const isUnknown = error instanceof SignalError && error.code === 'OUTCOME_UNKNOWN'
    cell.pending?.refuseAsks(
      isUnknown
        ? error
        : new SignalError('STORE_UNAVAILABLE', `a commit of ${kind.name}/${id} failed`, { cause: error }),
    )
    const heir = this.#replaceOwed(cell)
    // One that writes again as soon as it is built would otherwise keep trying as fast as a full disk refuses.
    if (this.#owed.has(heir)) this.#pause(heir, PAUSE_MS_MIN)
    else this.#startOrVacate(heir)
  }

  /** The actor stopped itself and its commits have been released. */
  onClosed(cell: Cell): void {
    this.#startOrVacate(this.#replace(cell))
  }

  /** The kind knows no actor of this id. */
  onAbsent(cell: Cell): void {
    const { kind, id } = cell
    kind.remove(cell)
    this.#throwAway(cell, 'absent', new SignalError('NOT_FOUND', `there is no ${kind.name}/${id}`))
    this.#end(cell)
  }

  /** One of the things a held cell waits for has ended. */
  release(cell: Cell): void {
    cell.holds -= 1
    this.#startOrVacate(cell)
  }

  /** Drops actors of a kind that have been idle for long enough, a bounded number at a time. */
  passivateIdle(kind: Kind): void {
    const idleMs = kind.definition.idleMs
    if (idleMs === undefined) return
    for (let looks = 0; looks < IDLE_LOOKS_PER_TICK; looks++) {
      const cell = kind.leastRecent
      if (cell === undefined || (this.#internals.wheel.tick - cell.activeTick) * TICK_MS <= idleMs) return
      kind.touch(cell)
      if (!this.#canPassivate(cell)) continue
      kind.remove(cell)
      kind.figures.passivations += 1
      this.#end(cell)
    }
  }

  /** Ends every actor of a kind, whatever it is doing. */
  stopAll(kind: Kind, reason: SignalError): void {
    for (const cell of kind.cells.values()) {
      kind.remove(cell)
      cell.pending?.refuseAsks(reason)
      this.#throwAway(cell, 'stopped', reason)
      this.#end(cell)
    }
    this.#owed.clear()
  }

  #recordFailure(kind: Kind, id: string): FailureRecord {
    const record = kind.failures.get(id) ?? new FailureRecord(kind, id)
    kind.failures.set(id, record)
    record.add(this.#internals.world.monotonicMs())
    this.#internals.wheel.arm(record, FAILURE_MEMORY_MS)
    return record
  }

  #giveUp(cell: Cell, record: FailureRecord, error: SignalError): void {
    record.isGivenUp = true
    cell.kind.figures.givenUp += 1
    cell.kind.remove(cell)
    this.#throwAway(cell, 'given-up', error)
    this.#end(cell)
  }

  #pause(heir: Cell, ms: number): void {
    const { underWay, wheel } = this.#internals
    heir.holds += 1
    underWay.pauses += 1
    const end = new CallbackTimer(() => {
      underWay.pauses -= 1
      this.release(heir)
      this.#internals.onEnded()
    })
    wheel.arm(end, ms)
  }

  // A dropped actor may have had work of its own pending, known now only to the store. Without another message it
  // would never be built again.
  #replaceOwed(cell: Cell): Cell {
    const isOwed = cell.actor === undefined || (cell.pending?.isOwing ?? false)
    const heir = this.#replace(cell)
    if (isOwed) this.#owed.add(heir)
    return heir
  }

  // The heir is in place before the old actor object hears of its end, so that what that still sends is not lost.
  #replace(cell: Cell): Cell {
    const { kind, id } = cell
    const heir = new Cell(kind, id)
    heir.state = HELD
    heir.mailbox = cell.mailbox
    // The store does not show a write before it is committed: built now, the heir would not know of these.
    for (let commit = cell.pending?.takeCommit(); commit !== undefined; commit = cell.pending?.takeCommit()) {
      if (commit.hasSettled) continue
      commit.heir = heir
      heir.holds += 1
    }
    kind.remove(cell)
    kind.add(heir)
    this.#end(cell)
    this.#sift(heir)
    return heir
  }

  // Void messages would build an actor that no message stops again.
  #sift(heir: Cell): void {
    const hasMessage = (entry: unknown) => !(entry instanceof Envelope) || entry.hasMessageFor(heir)
    const stale = heir.mailbox?.sift(hasMessage) ?? []
    for (const entry of stale) (entry as Envelope).open(heir)
  }

  #startOrVacate(heir: Cell): void {
    if (heir.state !== HELD || heir.holds > 0) return
    const isOwed = this.#owed.delete(heir)
    if (isOwed || (heir.mailbox !== undefined && heir.mailbox.length > 0)) {
      this.#internals.wake(heir)
    } else {
      heir.kind.remove(heir)
      heir.state = GONE
    }
  }

  #canPassivate(cell: Cell): boolean {
    if (!isIdle(cell)) return false
    let agreed = true
    // A hook that throws does not keep the actor: built anew it may do better.
    this.#guard(cell, () => {
      agreed = cell.actor?.canPassivate?.() ?? true
    })
    // The hook may have told its own actor something.
    return agreed && isIdle(cell)
  }

  #throwAway(cell: Cell, reason: DeadLetterReason, error: SignalError): void {
    const mailbox: Mailbox | undefined = cell.mailbox
    while (mailbox !== undefined && mailbox.length > 0) {
      const entry = mailbox.take()
      this.#internals.deadLetters.add(reason, cell.kind.name, cell.id, messageKind(entry))
      if (entry instanceof Envelope) entry.discard(error)
    }
  }

  #end(cell: Cell): void {
    this.#guard(cell, () => cell.end())
  }

  // Hooks of actors run as if in a turn: what they throw is reported, what they send is taken even while stopping.
  #guard(cell: Cell, hook: () => void): void {
    const before = this.#internals.running
    this.#internals.running = cell
    try {
      hook()
    } catch (error) {
      this.#internals.report(cell.kind.name, cell.id, error)
    } finally {
      this.#internals.running = before
    }
  }
}

/** When an id failed, for as long as that matters. */
export class FailureRecord extends WheelTimer {
  readonly #kind: Kind
  readonly #id: string
  #atMs: number[] = []
  /** Refused until forgotten. */
  isGivenUp = false

  constructor(kind: Kind, id: string) {
    super()
    this.#kind = kind
    this.#id = id
  }

  /** Failures in the last minute. */
  get count(): number {
    return this.#atMs.length
  }

  add(nowMs: number): void {
    this.#atMs = this.#atMs.filter(atMs => nowMs - atMs < FAILURE_MEMORY_MS)
    this.#atMs.push(nowMs)
  }

  fire(): void {
    this.#kind.failures.delete(this.#id)
  }
}

function isIdle(cell: Cell): boolean {
  return cell.state === ASLEEP && (cell.pending === undefined || cell.pending.isEmpty)
}

/** More than this many failures within the memory, and the actor is given up. */
const FAILURES_MAX = 3
const FAILURE_MEMORY_MS = 60_000
/** The pause after a first failure, doubled with each further one; also the pause after a rejected commit. */
const PAUSE_MS_MIN = 100
/** Over 2,500 idle actors a second, and a tick stays far below a millisecond. */
const IDLE_LOOKS_PER_TICK = 256

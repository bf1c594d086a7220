/**
 * Gives actors their turns: a run queue, drained in a microtask after the callback that sent the first message, with
 * a budget after which the event loop gets to its sockets again. At the end of a socket's callback what it sent is
 * thereby handled while the socket is still corked.
 */
import { ASLEEP, type Cell, GONE, HELD, QUEUED, RUNNING } from './cell.ts'
import { Envelope } from './envelope.ts'
import type { Internals } from './internals.ts'
import { RunQueue } from './run-queue.ts'
import type { Supervisor } from './supervisor.ts'

export class Dispatcher {
  readonly #internals: Internals
  readonly #supervisor: Supervisor
  readonly #turnsPerVisitMax: number
  readonly #queue = new RunQueue()
  #isDraining = false
  #isScheduled = false
  /** The clock as last read; reading it for every message would cost as much as the message. */
  #readMs = 0
  /** The message the current turn handles; undefined when it handles none. */
  #entry: unknown = undefined

  constructor(internals: Internals, supervisor: Supervisor, turnsPerVisitMax: number) {
    this.#internals = internals
    this.#supervisor = supervisor
    this.#turnsPerVisitMax = turnsPerVisitMax
  }

  /** True when no actor has or awaits a turn. */
  get isQuiet(): boolean {
    return !this.#isDraining && this.#queue.length === 0
  }

  get queueLength(): number {
    return this.#queue.length
  }

  get queueHeadAgeMs(): number {
    return this.#queue.headAgeMs(this.#internals.world.monotonicMs())
  }

  /** Puts a cell that is in no queue at the end of the run queue. */
  wake(cell: Cell): void {
    cell.state = QUEUED
    if (!this.#isDraining && !this.#isScheduled) {
      this.#isScheduled = true
      this.#readMs = this.#internals.world.monotonicMs()
      this.#internals.world.microtask(this.#drain)
    }
    this.#queue.push(cell, this.#readMs)
  }

  readonly #drain = (): void => {
    const { world } = this.#internals
    this.#isScheduled = false
    this.#isDraining = true
    const startMs = world.monotonicMs()
    this.#readMs = startMs
    while (this.#queue.length > 0 && this.#readMs - startMs < DRAIN_MS_MAX) this.#visitNext()
    this.#isDraining = false
    if (this.#queue.length > 0) {
      this.#isScheduled = true
      world.immediate(this.#drain)
    }
    this.#internals.onEnded()
  }

  #visitNext(): void {
    const { world } = this.#internals
    const cell = this.#queue.take(world.pick === undefined ? 0 : world.pick(this.#queue.length))
    if (cell.state !== QUEUED) return
    const turns = this.#visit(cell)
    const nowMs = world.monotonicMs()
    const { figures } = cell.kind
    figures.turns += turns
    figures.handlingMs += nowMs - this.#readMs
    figures.visitMsMax = Math.max(figures.visitMsMax, nowMs - this.#readMs)
    this.#readMs = nowMs
  }

  #visit(cell: Cell): number {
    let turns = 0
    cell.state = RUNNING
    this.#internals.running = cell
    this.#entry = undefined
    try {
      if (cell.actor === undefined) this.#build(cell)
      while (turns < this.#turnsPerVisitMax && this.#turn(cell)) turns += 1
    } catch (error) {
      turns += 1
      this.#supervisor.onThrown(cell, error, this.#entry)
    }
    this.#internals.running = undefined
    this.#internals.askChain = undefined
    if (cell.state !== GONE) this.#afterVisit(cell)
    return turns
  }

  #build(cell: Cell): void {
    const { definition } = cell.kind
    cell.actor = definition.create(cell.id, cell)
    if (cell.actor === undefined) this.#supervisor.onAbsent(cell)
  }

  /** One turn: the effects of a commit that has become durable, or else a message. False when there is neither. */
  #turn(cell: Cell): boolean {
    this.#internals.askChain = undefined
    if (cell.pending?.canRelease) return this.#releaseCommit(cell)
    if (cell.closing || cell.mailbox === undefined || cell.actor === undefined) return false
    const entry = cell.mailbox.take()
    if (entry === undefined) return false
    this.#entry = entry
    const message = entry instanceof Envelope ? entry.open(cell) : entry
    if (message !== undefined) cell.actor.receive(message)
    return true
  }

  #releaseCommit(cell: Cell): boolean {
    const commit = cell.pending!.takeCommit()!
    this.#entry = undefined
    if (commit.hasFailed) {
      this.#supervisor.onCommitFailed(cell, commit.error)
      return false
    }
    this.#internals.askChain = commit.askChain
    commit.effects()
    return true
  }

  #afterVisit(cell: Cell): void {
    cell.kind.touch(cell)
    if (cell.pending?.canRelease) this.wake(cell)
    else if (cell.closing) this.#afterClosing(cell)
    else if (cell.mailbox !== undefined && cell.mailbox.length > 0) this.wake(cell)
    else this.#sleep(cell)
  }

  #afterClosing(cell: Cell): void {
    if (cell.pending?.hasCommits) cell.state = HELD
    else this.#supervisor.onClosed(cell)
  }

  #sleep(cell: Cell): void {
    cell.state = ASLEEP
    if (cell.mailbox !== undefined) {
      this.#internals.mailboxes.giveBack(cell.mailbox)
      cell.mailbox = undefined
    }
    if (cell.pending?.isEmpty) cell.pending = undefined
  }
}

/** After this long a drain yields to the sockets. */
const DRAIN_MS_MAX = 2
/** After so many turns an actor goes to the end of the run queue. */
export const TURNS_PER_VISIT_MAX = 32

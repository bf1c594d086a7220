/**
 * The runtime's side of one actor object: its mailbox, whether and why it runs or waits, and the context it was built
 * with. A cell lives as long as its actor object. After a failure or a stop an heir takes over the address and the
 * waiting messages, so nothing of the old actor object can reach the new one.
 */
import type { Actor, Context } from './actor.ts'
import type { Kind } from './kind.ts'
import type { Mailbox } from './mailbox.ts'
import { ActorTimer, HeldCommit, Pending, WorkOutcome } from './pending.ts'
import { ActorRef } from './ref.ts'

/** Nothing to do; the next message wakes it. */
export const ASLEEP = 0
/** In the run queue. */
export const QUEUED = 1
/** Its turn now. */
export const RUNNING = 2
/** Messages wait: for the pause after a failure, for commits of the cell before, or for an end. */
export const HELD = 3
/** Its actor object has ended; the address is another's. */
export const GONE = 4

/** Hot: a tell costs `accept`, so its fields are plain and none of it allocates once a mailbox is there. */
export class Cell implements Context<unknown> {
  readonly kind: Kind
  readonly id: string
  /** Built at the first turn. */
  actor: Actor<unknown> | undefined = undefined
  /** Only while something waits in it. */
  mailbox: Mailbox | undefined = undefined
  pending: Pending | undefined = undefined
  state = ASLEEP
  /** Takes no further message; ends after its commits have been released. */
  closing = false
  /** How many things a held cell without an actor waits for before it is built. */
  holds = 0
  activeTick = 0
  lessRecent: Cell | undefined = undefined
  moreRecent: Cell | undefined = undefined
  #self: ActorRef | undefined = undefined

  constructor(kind: Kind, id: string) {
    this.kind = kind
    this.id = id
  }

  get isGone(): boolean {
    return this.state === GONE
  }

  get self(): ActorRef {
    this.#self ??= new ActorRef(this.kind.internals, this.kind.name, this.id)
    return this.#self
  }

  nowMs(): number {
    return this.kind.internals.world.nowMs()
  }

  random(): number {
    return this.kind.internals.world.random()
  }

  commit(durable: PromiseLike<unknown>, effects: () => void): void {
    const commit = new HeldCommit(this, effects)
    this.pending ??= new Pending()
    this.pending.hold(commit)
    this.kind.internals.underWay.commits += 1
    durable.then(
      () => commit.onDurable(),
      error => commit.onFailed(error),
    )
  }

  tellOutcome<Outcome>(
    work: PromiseLike<Outcome>,
    message: (outcome: Outcome) => unknown,
    failed: (error: unknown) => unknown,
  ): void {
    const outcome = new WorkOutcome(this, message, failed)
    this.pending ??= new Pending()
    this.pending.outcomes += 1
    this.kind.internals.underWay.outcomes += 1
    work.then(
      value => outcome.onDone(value),
      error => outcome.onFailed(error),
    )
  }

  startTimer(key: string, ms: number, message: unknown): void {
    if (this.isGone) return
    this.pending ??= new Pending()
    let timer = this.pending.timer(key)
    if (timer === undefined) {
      timer = new ActorTimer(this, key)
      this.pending.addTimer(timer)
    }
    timer.start(ms, message)
  }

  cancelTimer(key: string): void {
    const timer = this.pending?.timer(key)
    if (timer === undefined) return
    timer.cancel()
    this.pending?.forgetTimer(timer)
  }

  stop(): void {
    this.closing = true
    if (this.state === ASLEEP) this.kind.internals.wake(this)
  }

  /** Puts an entry into the user lane; false when that is full. */
  accept(entry: unknown): boolean {
    const kind = this.kind
    this.mailbox ??= kind.internals.mailboxes.borrow()
    if (!this.mailbox.offer(entry, kind.definition.mailboxMessagesMax)) return false
    this.#onAccepted(this.mailbox)
    return true
  }

  acceptControl(entry: unknown): void {
    this.mailbox ??= this.kind.internals.mailboxes.borrow()
    this.mailbox.offerControl(entry)
    this.#onAccepted(this.mailbox)
  }

  /** Takes no further message and waits for its commits to settle. */
  close(): void {
    this.closing = true
    if (this.state === ASLEEP) this.state = HELD
  }

  /** Whether a commit that settles may put it into the run queue: it is neither there, nor running, nor gone. */
  get canWake(): boolean {
    return this.state === ASLEEP || this.state === HELD
  }

  /** Ends the actor object. Throws what its `onStopped` throws, after everything else is done. */
  end(): void {
    const { actor, pending } = this
    this.state = GONE
    this.actor = undefined
    this.mailbox = undefined
    this.pending = undefined
    if (pending !== undefined) for (const timer of pending.timers) timer.cancel()
    actor?.onStopped?.()
  }

  #onAccepted(mailbox: Mailbox): void {
    const { figures, internals } = this.kind
    const depth = mailbox.length
    if (depth > figures.mailboxDepthMax) figures.mailboxDepthMax = depth
    if (this.state === ASLEEP) internals.wake(this)
  }
}

/**
 * One hashed timing wheel for everything that waits: ring deadlines, heart-beats, asks, pauses. Arming and
 * cancelling cost the same whatever the number of timers; firing is late by at most one tick and never early.
 */

/** The length of a tick. Deadlines of calls and heart-beats are in seconds, so this is fine enough. */
export const TICK_MS = 100

/** Something that can be armed in a wheel. It is its own link in the wheel's lists, so arming allocates nothing. */
export abstract class WheelTimer {
  dueTick = 0
  next: WheelTimer | undefined = undefined
  previous: WheelTimer | undefined = undefined

  get isArmed(): boolean {
    return this.next !== undefined
  }

  /** Called once, unarmed already, when the wheel has passed the due tick. Must not throw. */
  abstract fire(): void
}

/** A timer that calls a function; for rare uses. */
export class CallbackTimer extends WheelTimer {
  readonly #run: () => void

  constructor(run: () => void) {
    super()
    this.#run = run
  }

  fire(): void {
    this.#run()
  }
}

/** Timers in 1,024 lists by due tick; one that is due in a later round stays in its list until then. */
export class TimerWheel {
  readonly #monotonicMs: () => number
  readonly #originMs: number
  /** Made when first needed: most of them never are in a process that lives for a test. */
  readonly #lists: (ListHead | undefined)[] = new Array(LISTS)
  readonly #due = new ListHead()
  #tick = 0
  #armed = 0

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
    this.#originMs = monotonicMs()
  }

  /** Ticks passed, as of the last `advance`. */
  get tick(): number {
    return this.#tick
  }

  get armed(): number {
    return this.#armed
  }

  /** Arms a timer for the first tick that is at least `ms` from now; an armed one is moved. */
  arm(timer: WheelTimer, ms: number): void {
    this.cancel(timer)
    const dueTick = Math.ceil((this.#monotonicMs() - this.#originMs + ms) / TICK_MS)
    // A list the wheel has passed in this round would be looked at only a whole round later.
    timer.dueTick = Math.max(dueTick, this.#tick + 1)
    append(this.#list(timer.dueTick), timer)
    this.#armed += 1
  }

  /** Does nothing when the timer is not armed. */
  cancel(timer: WheelTimer): void {
    if (!timer.isArmed) return
    unlink(timer)
    this.#armed -= 1
  }

  /** Fires due timers: earliest tick first, unless it was not called for a whole round. */
  advance(): void {
    const nowTick = Math.floor((this.#monotonicMs() - this.#originMs) / TICK_MS)
    // After a long pause every list is looked at once, which finds all that is due.
    const lists = Math.min(nowTick - this.#tick, LISTS)
    for (let i = 1; i <= lists; i++) this.#collect(this.#lists[(this.#tick + i) % LISTS], nowTick)
    this.#tick = Math.max(this.#tick, nowTick)
    this.#fireDue()
  }

  /** Fires every armed timer, as the last act before the clock stops. */
  expireAll(): void {
    for (const list of this.#lists) this.#collect(list, Number.POSITIVE_INFINITY)
    this.#fireDue()
  }

  #list(tick: number): ListHead {
    this.#lists[tick % LISTS] ??= new ListHead()
    return this.#lists[tick % LISTS]!
  }

  #collect(list: ListHead | undefined, tickMax: number): void {
    if (list === undefined) return
    let timer = list.next!
    while (timer !== list) {
      const after = timer.next!
      if (timer.dueTick <= tickMax) {
        unlink(timer)
        append(this.#due, timer)
      }
      timer = after
    }
  }

  // A firing may cancel or move one that is due with it, so each is taken from the list only when its turn comes.
  #fireDue(): void {
    while (this.#due.next !== this.#due) {
      const timer = this.#due.next!
      this.cancel(timer)
      timer.fire()
    }
  }
}

class ListHead extends WheelTimer {
  constructor() {
    super()
    this.next = this
    this.previous = this
  }

  fire(): void {}
}

function append(head: WheelTimer, timer: WheelTimer): void {
  const last = head.previous!
  timer.previous = last
  timer.next = head
  last.next = timer
  head.previous = timer
}

function unlink(timer: WheelTimer): void {
  timer.previous!.next = timer.next
  timer.next!.previous = timer.previous
  timer.next = undefined
  timer.previous = undefined
}

/** Over 100 seconds of ticks, so that nearly every timer is found in its first round. */
const LISTS = 1_024

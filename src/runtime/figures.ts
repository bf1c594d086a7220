/**
 * The runtime's counts: per kind its actors' work, and every undelivered message. Figures are plain numbers for
 * `operations` to show; none holds a message's content.
 */

/** Why a message or an answer was undeliverable. */
export type DeadLetterReason =
  /** No kind of that name is defined. */
  | 'unknown-kind'
  /** `create` said that there is no actor of that id. */
  | 'absent'
  /** The mailbox was full. */
  | 'overloaded'
  /** The bound on live actors was reached. */
  | 'too-many-actors'
  /** The process is stopping. */
  | 'stopped'
  /** The way to another process is full, or the process is gone. */
  | 'unreachable'
  /** The actor failed too often. */
  | 'given-up'
  /** The handler threw over it; it is not tried again. */
  | 'poison'
  /** The deadline of the ask had passed before its turn. */
  | 'expired-ask'
  /** An answer after the ask had ended otherwise. */
  | 'late-reply'
  /** A second answer to one ask. */
  | 'duplicate-reply'
  /** Slow work ended after the actor object that began it. */
  | 'stale-outcome'

/** Why a message is not taken when it is sent. */
export type Refusal = Extract<
  DeadLetterReason,
  'unknown-kind' | 'overloaded' | 'too-many-actors' | 'stopped' | 'given-up'
>

/** One undelivered message: never its body, only its `kind`, if it has one. */
export interface DeadLetter {
  readonly reason: DeadLetterReason
  readonly kind: string
  readonly id: string
  readonly messageKind: string
  /** Wall clock, milliseconds since 1970. */
  readonly atMs: number
}

/** Counts for one kind's actors since the start. */
export class KindFigures {
  /** The deepest any mailbox has been, both lanes. */
  mailboxDepthMax = 0
  /** Messages, firings, outcomes and released commits. */
  turns = 0
  /** Time in those turns. */
  handlingMs = 0
  /** The longest an actor kept the thread, over at most one visit's turns. */
  visitMsMax = 0
  /** Actors dropped because a handler, an effect or `create` threw. */
  restarts = 0
  /** Actors dropped because a commit was rejected. */
  commitFailures = 0
  passivations = 0
  /** Actors refused after too many failures. */
  givenUp = 0
}

/** A moment's figures of the whole system. Milliseconds are of the monotonic clock. */
export interface Figures {
  readonly kinds: Readonly<Record<string, Readonly<KindFigures> & { readonly live: number }>>
  readonly deadLetters: Readonly<Record<DeadLetterReason, number>>
  /** The latest dead letters, oldest first, at most `DEAD_LETTER_SAMPLE_MAX`. */
  readonly deadLetterSample: readonly DeadLetter[]
  readonly liveActors: number
  readonly runQueueLength: number
  readonly runQueueHeadAgeMs: number
  readonly timersArmed: number
  readonly commitsUnderWay: number
  readonly outcomesUnderWay: number
  readonly asksOpen: number
}

/** Counts dead letters by reason and keeps the latest few. */
export class DeadLetters {
  readonly counts: Record<DeadLetterReason, number> = {
    'unknown-kind': 0,
    absent: 0,
    overloaded: 0,
    'too-many-actors': 0,
    stopped: 0,
    unreachable: 0,
    'given-up': 0,
    poison: 0,
    'expired-ask': 0,
    'late-reply': 0,
    'duplicate-reply': 0,
    'stale-outcome': 0,
  }
  readonly #nowMs: () => number
  readonly #latest: DeadLetter[] = []
  #oldest = 0

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  add(reason: DeadLetterReason, kind: string, id: string, messageKind: string): void {
    this.counts[reason] += 1
    const letter = { reason, kind, id, messageKind, atMs: this.#nowMs() }
    if (this.#latest.length < DEAD_LETTER_SAMPLE_MAX) {
      this.#latest.push(letter)
      return
    }
    this.#latest[this.#oldest] = letter
    this.#oldest = (this.#oldest + 1) % DEAD_LETTER_SAMPLE_MAX
  }

  /** The latest dead letters, oldest first. */
  sample(): DeadLetter[] {
    return [...this.#latest.slice(this.#oldest), ...this.#latest.slice(0, this.#oldest)]
  }
}

/** Enough to see a pattern on a page; the counters are complete. */
const DEAD_LETTER_SAMPLE_MAX = 32

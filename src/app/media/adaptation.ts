/**
 * Decides how many pictures a line can carry beside the sound. Steps down at once when the sound suffers, and up again by trials,
 * one rung at a time. It knows no browser: samples go in, a rung comes out.
 */

/** The whole connection since the previous sample. */
export interface LinkSample {
  readonly atMs: number
  /** Pictures that are wanted, and whether members send them in two sizes. */
  readonly pictures: number
  readonly hasSmall: boolean
  /** Kilobits in a second, and those of them that were sound. */
  readonly kbits: number
  readonly soundKbits: number
  /** Packets that are missing, 0 to 1; sound that was made up, 0 to 1. */
  readonly lost: number
  readonly concealed: number
  /** How long the sound has waited on its way, beyond the shortest way seen. */
  readonly delayMs: number
}

/** The most that the gateway is asked for. */
export interface Rung {
  readonly pictures: number
  /** So many of them large. */
  readonly large: number
  /** At a quarter of the pictures in a second. */
  readonly isSlow: boolean
}

export class Adaptation {
  #at = 0
  #shown = 0
  #changedMs = Number.NEGATIVE_INFINITY
  #quietMs: number | undefined
  /** Trials that ended badly, one after the other. */
  #failures = 0
  #climbedMs = Number.NEGATIVE_INFINITY
  #asking: LinkSample | undefined
  #deferrals = 0
  /** After so long a quiet it climbs. */
  #pauseMs = 0
  /** Losses that no fewer pictures end: those of the line itself. */
  #ownLoss = 0
  /** Smoothed: one sample has but a few packets of sound. */
  #soundKbits = 0

  get rung(): Rung {
    return RUNGS[this.#at]!
  }

  /** Like `rung`, but without a trial that has not yet succeeded. */
  get shown(): Rung {
    return RUNGS[Math.max(this.#at, this.#shown)]!
  }

  /** Returns whether `rung` or `shown` has changed. */
  take(sample: LinkSample): boolean {
    const before = [this.#at, this.#shown]
    this.#quietMs ??= sample.atMs
    this.#soundKbits += (sample.soundKbits - this.#soundKbits) / 4
    // Sound is made up for a moment also where a member falls silent.
    const isShort = sample.lost > 0 || sample.delayMs > DELAY_POOR_MS / 2
    const loss = Math.max(sample.lost, isShort ? sample.concealed : 0)
    const isLeast = costOf(this.#at, sample) === 0
    if (loss < this.#ownLoss) this.#ownLoss += (loss - this.#ownLoss) / 8
    else if (isLeast && sample.atMs - this.#changedMs > SETTLED_MS)
      this.#ownLoss += (loss - this.#ownLoss) / 4
    const excess = loss - 1.5 * this.#ownLoss
    const isPoor = excess > LOSS_POOR || sample.delayMs > DELAY_POOR_MS
    const isBad = excess > LOSS_BAD || sample.delayMs > DELAY_BAD_MS
    if (isPoor) {
      this.#quietMs = sample.atMs
      this.#asking = undefined
    }
    const sinceMs = sample.atMs - this.#changedMs
    const isTrial = this.#shown > this.#at
    // After a step down, the line's queue still holds packets of the old pictures.
    const isSettled = isTrial || sinceMs >= SETTLED_MS
    // The key frame that begins a trial delays the sound for a moment. A large picture would do so for longer.
    const isFailing = isPoor && isTrial && (sinceMs >= 2 * TRIAL_MS || !this.rung.isSlow)
    if (isSettled && !isLeast && (isBad || isFailing)) this.#fall(sample, isTrial)
    else if (isTrial && sinceMs >= TRIAL_MS && !isPoor) this.#prove(sample.atMs)
    else if (!isTrial && this.#at > 0 && sample.atMs - this.#quietMs >= this.#pauseMs) this.#asking = sample
    return before[0] !== this.#at || before[1] !== this.#shown
  }

  #fall(sample: LinkSample, isTrial: boolean): void {
    const { atMs, kbits } = sample
    this.#deferrals = 0
    if (atMs - this.#climbedMs < PROVEN_MS) this.#failures++
    else this.#failures = 0
    this.#climbedMs = Number.NEGATIVE_INFINITY
    this.#quietMs = atMs
    const next = this.#next(1, sample)
    // A trial was of one rung; else what came tells what the line carries.
    const room = isTrial ? Number.POSITIVE_INFINITY : FILLED * kbits - this.#soundKbits
    let at = next
    while (costOf(at, sample) > room && at < RUNGS.length - 1) at++
    this.#move(at, atMs)
    this.#shown = at
    const above = new Set(RUNGS.slice(0, at + 1).map((_, each) => costOf(each, sample))).size - 1
    // Longer after each trial that failed, and never so long that all would not be back in time when the line is.
    this.#pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, BACK_MS - above * (TRIAL_MS + PAUSE_MS))
  }

  #prove(atMs: number): void {
    this.#shown = this.#at
    this.#quietMs = atMs
    this.#pauseMs = PAUSE_MS
  }

  /** It wants to try the next rung: measure the line, and call `answer`. */
  get isAsking(): boolean {
    return this.#asking !== undefined
  }

  /** Takes the measured kilobits per second. Returns whether `rung` has changed. */
  answer(lineKbits: number): boolean {
    const sample = this.#asking
    this.#asking = undefined
    if (sample === undefined) return false
    const at = this.#next(-1, sample)
    const isNarrow = lineKbits < Math.min(1.3 * this.#soundKbits + costOf(at, sample), TELLING_KBITS)
    // On a line without any room a trial would hurt the sound. But if the uplink is the narrow one, the measurement is wrong.
    if (isNarrow && this.#deferrals++ < DEFERRALS_MAX * (1 + this.#failures)) {
      this.#quietMs = sample.atMs
      this.#pauseMs = DEFERRAL_MS
      return false
    }
    this.#deferrals = 0
    this.#climb(at, sample)
    return true
  }

  #climb(at: number, sample: LinkSample): void {
    this.#climbedMs = sample.atMs
    this.#shown = this.#at
    this.#move(at, sample.atMs)
  }

  #move(at: number, atMs: number): void {
    this.#at = at
    this.#changedMs = atMs
  }

  /** The nearest rung that makes a difference with these pictures. */
  #next(step: 1 | -1, sample: LinkSample): number {
    const cost = costOf(this.#at, sample)
    let at = this.#at
    while (costOf(at, sample) === cost) {
      if (RUNGS[at + step] === undefined) return at
      at += step
    }
    return at
  }
}

/** Kilobits in a second, as pictures usually take them. */
function costOf(at: number, { pictures, hasSmall }: LinkSample): number {
  const { pictures: most, large, isSlow } = RUNGS[at]!
  const count = Math.min(pictures, most)
  const larges = hasSmall ? Math.min(count, large) : count
  const [largeCost, smallCost] = isSlow ? SLOW_KBITS : KBITS
  return larges * largeCost + (count - larges) * smallCost
}

const ALL = Number.POSITIVE_INFINITY
const RUNGS: readonly Rung[] = [
  { pictures: ALL, large: ALL, isSlow: false },
  { pictures: ALL, large: 3, isSlow: false },
  { pictures: ALL, large: 1, isSlow: false },
  { pictures: ALL, large: 0, isSlow: false },
  { pictures: ALL, large: 0, isSlow: true },
  { pictures: 3, large: 0, isSlow: true },
  { pictures: 1, large: 0, isSlow: true },
  { pictures: 0, large: 0, isSlow: true },
]
/** For a large picture and a small one. */
const [KBITS, SLOW_KBITS] = [
  [400, 100],
  [160, 45],
] as const
/** The part of a full line that is used. */
const FILLED = 0.9
const [LOSS_POOR, LOSS_BAD] = [0.02, 0.035]
const [DELAY_POOR_MS, DELAY_BAD_MS] = [80, 150]
const SETTLED_MS = 1_000
const TRIAL_MS = 1_150
/** A rung that was left sooner has failed. */
const PROVEN_MS = 10_000
/** After a trial that succeeded. */
const PAUSE_MS = 200
const FIRST_PAUSE_MS = 4_000
const DEFERRAL_MS = 3_000
const DEFERRALS_MAX = 8
/** Above this the measurement is too rough. */
const TELLING_KBITS = 1_000
/** Until all is back after the line is. */
const BACK_MS = 15_000

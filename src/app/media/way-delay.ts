/** How long frames wait on their way now, beyond the shortest way seen: a line that is full shows so before it loses anything. */

export class WayDelay {
  /** Smoothed: one late frame is no full line. */
  ms = 0
  #leastMs = Number.POSITIVE_INFINITY
  #nextLeastMs = Number.POSITIVE_INFINITY
  #untilMs = 0

  /** A frame has come: when it was made, by the sender's clock, and when it came, by this one. */
  note(madeMs: number, nowMs: number): void {
    const passedMs = nowMs - madeMs
    // Not for ever: clocks run apart or stumble, and another sender, or one that paused, has another start.
    if (nowMs > this.#untilMs) {
      this.#untilMs = nowMs + WINDOW_MS
      this.#leastMs = this.#nextLeastMs
      this.#nextLeastMs = passedMs
    }
    this.#nextLeastMs = Math.min(this.#nextLeastMs, passedMs)
    this.#leastMs = Math.min(this.#leastMs, this.#nextLeastMs)
    const ms = passedMs - this.#leastMs
    this.ms += (ms - this.ms) * (ms < this.ms ? 0.5 : 0.15)
  }
}

const WINDOW_MS = 3_000

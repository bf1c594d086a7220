/** A counter that only rises, and those who wait until it reaches a number. */

interface Waiting {
  readonly number: number
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

export class Watermark {
  #reached: number
  /** In the order in which they came. */
  #waiting: Waiting[] = []

  constructor(reached = 0) {
    this.#reached = reached
  }

  get reached(): number {
    return this.#reached
  }

  get isAwaited(): boolean {
    return this.#waiting.length > 0
  }

  /** Resolves when the number is reached or given up; at once where it is reached. Rejects as `refuse` says. */
  wait(number: number): Promise<void> {
    if (number <= this.#reached) return Promise.resolve()
    return new Promise((resolve, reject) => this.#waiting.push({ number, resolve, reject }))
  }

  /** A lower number than before changes nothing. */
  reach(number: number): void {
    this.#reached = Math.max(this.#reached, number)
    this.giveUp(this.#reached)
  }

  /** Resolves for all that wait for this number or a lower one, as if it was reached. Returns whether any did. */
  giveUp(number: number): boolean {
    const released = this.#takeOut(each => each.number <= number)
    for (const { resolve } of released) resolve()
    return released.length > 0
  }

  /** Rejects for all that wait for a number below this one. */
  refuseBelow(number: number, error: Error): void {
    for (const { reject } of this.#takeOut(each => each.number < number)) reject(error)
  }

  #takeOut(isTaken: (waiting: Waiting) => boolean): readonly Waiting[] {
    if (this.#waiting.length === 0) return []
    const taken = this.#waiting.filter(isTaken)
    if (taken.length > 0) this.#waiting = this.#waiting.filter(each => !isTaken(each))
    return taken
  }
}

/** A counter that only rises, and waits until it reaches a number. */

interface Waiting {
  readonly number: number
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

export class Watermark {
  #reached: number
  /** Oldest first. */
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

  /** Resolves when the counter reaches the number or gives it up. Rejects as `refuseBelow` does. */
  wait(number: number): Promise<void> {
    if (number <= this.#reached) return Promise.resolve()
    return new Promise((resolve, reject) => this.#waiting.push({ number, resolve, reject }))
  }

  /** A number lower than before changes nothing. */
  reach(number: number): void {
    this.#reached = Math.max(this.#reached, number)
    this.giveUp(this.#reached)
  }

  /** Ends waits for this number or a lower one, as if the counter had reached it. Returns whether there were any. */
  giveUp(number: number): boolean {
    const released = this.#takeOut(each => each.number <= number)
    for (const { resolve } of released) resolve()
    return released.length > 0
  }

  /** Rejects waits for a number below this one. */
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

/**
 * In a front, what a client's CONNECT waits for: its device may have had a connection at another front a moment ago, and what
 * that was given, or has acknowledged, has to be known here. The CONNECTs of a moment wait together.
 */

export class CatchUp {
  readonly #ask: () => Promise<unknown>
  #waiting: (() => void)[] = []
  #isUnderWay = false

  /** `ask` resolves when all that was done elsewhere by then is shown here. */
  constructor(ask: () => Promise<unknown>) {
    this.#ask = ask
  }

  /** Runs `connect` after that; also where it could not be asked, for a device can have its inbox without. */
  run(connect: () => void): void {
    this.#waiting.push(connect)
    if (!this.#isUnderWay) void this.#run()
  }

  async #run(): Promise<void> {
    this.#isUnderWay = true
    while (this.#waiting.length > 0) {
      const due = this.#waiting
      this.#waiting = []
      await this.#ask().catch(() => undefined)
      for (const connect of due) connect()
    }
    this.#isUnderWay = false
  }
}

/**
 * Catch-up of a front, for a client's CONNECT to wait for. The device may have had a connection at another front a
 * moment ago: this front must know what that one delivered and acknowledged. CONNECTs of one moment wait together.
 */

export class CatchUp {
  readonly #ask: () => Promise<unknown>
  #waiting: (() => void)[] = []
  #isUnderWay = false

  /** `ask` resolves when this front shows all that other fronts did before the call. */
  constructor(ask: () => Promise<unknown>) {
    this.#ask = ask
  }

  /** Runs `connect` after that. Runs it also when `ask` fails: a device can read its inbox without. */
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

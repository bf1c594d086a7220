/** Lets so many in at a time: a thousand sign-ins at once would measure the sign-ins. */

export class Gate {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(places: number) {
    this.#free = places
  }

  /** Runs `act` when there is a place for it. */
  async through<Value>(act: () => Promise<Value>): Promise<Value> {
    if (this.#free === 0) await new Promise<void>(resolve => this.#waiting.push(resolve))
    else this.#free -= 1
    try {
      return await act()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}

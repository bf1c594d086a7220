/** Work that takes turns by name: of two acts with one name, the second begins once the first has ended. */
export class Turns {
  /** The end of the last act by its name. */
  readonly #ends = new Map<string, Promise<void>>()

  take<Result>(name: string, act: () => Promise<Result>): Promise<Result> {
    const earlier = this.#ends.get(name) ?? Promise.resolve()
    const result = earlier.then(act)
    const end = result.then(noop, noop).then(() => {
      if (this.#ends.get(name) === end) this.#ends.delete(name)
    })
    this.#ends.set(name, end)
    return result
  }
}

const noop = (): void => {}

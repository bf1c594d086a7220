/**
 * A promise that the test settles, and that calls back at the moment it is settled, not a microtask later: the effects
 * of a test's step then happen within it.
 */
export class Deferred<Value> implements PromiseLike<Value> {
  #waiting: ((how: Settlement<Value>) => void)[] = []
  #how: Settlement<Value> | undefined = undefined

  // biome-ignore lint/suspicious/noThenProperty: standing in for a promise is what it is for.
  then<Done = Value, Failed = never>(
    onDone?: ((value: Value) => Done | PromiseLike<Done>) | null,
    onFailed?: ((error: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Done | Failed> {
    const call = (how: Settlement<Value>) =>
      void ('value' in how ? onDone?.(how.value) : onFailed?.(how.error))
    if (this.#how === undefined) this.#waiting.push(call)
    else call(this.#how)
    return new Promise(() => {})
  }

  resolve(value: Value): void {
    this.#settle({ value })
  }

  reject(error: unknown): void {
    this.#settle({ error })
  }

  #settle(how: Settlement<Value>): void {
    this.#how = how
    for (const call of this.#waiting) call(how)
  }
}

type Settlement<Value> = { readonly value: Value } | { readonly error: unknown }

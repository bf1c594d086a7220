/** A bounded map that keeps the entries set last: a full one drops its oldest. */
export class Recent<Key, Value> extends Map<Key, Value> {
  readonly #sizeMax: number

  constructor(sizeMax: number) {
    super()
    this.#sizeMax = sizeMax
  }

  /** Makes the entry the newest, also where its key was there before. */
  override set(key: Key, value: Value): this {
    this.delete(key)
    if (this.size === this.#sizeMax) this.delete(this.keys().next().value!)
    return super.set(key, value)
  }
}

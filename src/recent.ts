/** A map of what was set last: when it is full, the entry that was set longest ago makes room. */
export class Recent<Key, Value> extends Map<Key, Value> {
  readonly #sizeMax: number

  constructor(sizeMax: number) {
    super()
    this.#sizeMax = sizeMax
  }

  /** The entry is the newest, also where its key was there before. */
  override set(key: Key, value: Value): this {
    this.delete(key)
    if (this.size === this.#sizeMax) this.delete(this.keys().next().value!)
    return super.set(key, value)
  }
}

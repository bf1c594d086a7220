/**
 * A map that holds at most so many values of what can be computed or read again. The oldest goes first, but one that
 * was asked for since it came, or since it was last spared, gets a second chance: as good as dropping what was used
 * longest ago, and a hit costs one look-up.
 */

export class BoundedCache<Key, Value> {
  readonly #entriesMax: number
  readonly #entries = new Map<Key, { readonly value: Value; wasUsed: boolean }>()

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: Key): Value | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    entry.wasUsed = true
    return entry.value
  }

  set(key: Key, value: Value): void {
    this.#entries.set(key, { value, wasUsed: false })
    if (this.#entries.size > this.#entriesMax) this.#dropOne()
  }

  delete(key: Key): void {
    this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }

  #dropOne(): void {
    for (const [key, entry] of this.#entries) {
      this.#entries.delete(key)
      if (!entry.wasUsed) return
      entry.wasUsed = false
      this.#entries.set(key, entry)
    }
  }
}

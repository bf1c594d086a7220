/**
 * A map that holds at most so many values of what can be computed or read again, in two generations: a value comes into
 * the younger one, and again whenever it is asked for; when that has half of what there may be, the older one is dropped
 * and it takes its place. Whatever is among the last half that came or were asked for is there.
 *
 * Departure from dropping the oldest entry of one map: a map finds its first entry by stepping over all that were
 * removed before it, which took 22 µs for each that was dropped from 65,536.
 */

export class BoundedCache<Key, Value> {
  readonly #generationMax: number
  #younger = new Map<Key, Value>()
  #older = new Map<Key, Value>()

  /** `entriesMax` is at least 2. */
  constructor(entriesMax: number) {
    this.#generationMax = Math.floor(entriesMax / 2)
  }

  get size(): number {
    return this.#younger.size + this.#older.size
  }

  get(key: Key): Value | undefined {
    const young = this.#younger.get(key)
    if (young !== undefined) return young
    const old = this.#older.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: Key, value: Value): void {
    this.#older.delete(key)
    this.#younger.set(key, value)
    if (this.#younger.size < this.#generationMax) return
    this.#older = this.#younger
    this.#younger = new Map()
  }

  delete(key: Key): void {
    this.#younger.delete(key)
    this.#older.delete(key)
  }

  clear(): void {
    this.#younger = new Map()
    this.#older = new Map()
  }
}

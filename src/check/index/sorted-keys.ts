/** Keys of the map with the indexes of their entries, in order: typed arrays, 48 bytes an entry. */

import { HASH_BYTES } from '../../log/hash.ts'
import type { IndexedEntry } from '../../log/patricia-rows.ts'

export class SortedKeys {
  #keys: Uint8Array
  #indexes: Float64Array
  #order = new Uint32Array(0)
  count = 0

  /** Starts with room for so many entries, and grows. */
  constructor(entries: number) {
    const room = Math.ceil(1.05 * entries) + ROOM_MIN
    this.#keys = new Uint8Array(room * HASH_BYTES)
    this.#indexes = new Float64Array(room)
  }

  clear(): void {
    this.count = 0
  }

  add(key: Uint8Array, index: number): void {
    if (this.count === this.#indexes.length) this.#grow()
    this.#keys.set(key, this.count * HASH_BYTES)
    this.#indexes[this.count++] = index
  }

  /** By key, then by index. */
  sort(): void {
    const view = new DataView(this.#keys.buffer)
    this.#order = new Uint32Array(this.count)
    for (let at = 0; at < this.count; at++) this.#order[at] = at
    this.#order.sort((one, other) => {
      for (let at = 0; at < HASH_BYTES; at += WORD_BYTES) {
        const difference = view.getUint32(one * HASH_BYTES + at) - view.getUint32(other * HASH_BYTES + at)
        if (difference !== 0) return difference
      }
      return one - other
    })
  }

  /** As views, until the next `clear`. */
  slice(start: number, end: number): IndexedEntry[] {
    const length = Math.min(end, this.count) - start
    return Array.from({ length }, (_, at) => ({
      key: this.at(start + at)!,
      index: this.#indexes[this.#order[start + at]!]!,
    }))
  }

  /** A key by its place in the order; undefined behind the last. */
  at(place: number): Uint8Array | undefined {
    if (place >= this.count) return undefined
    const at = this.#order[place]! * HASH_BYTES
    return this.#keys.subarray(at, at + HASH_BYTES)
  }

  #grow(): void {
    const [keys, indexes] = [
      new Uint8Array(2 * this.#keys.length),
      new Float64Array(2 * this.#indexes.length),
    ]
    keys.set(this.#keys)
    indexes.set(this.#indexes)
    this.#keys = keys
    this.#indexes = indexes
  }
}

const WORD_BYTES = 4
const ROOM_MIN = 64

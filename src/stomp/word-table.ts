/**
 * Words that are expected in a frame, found by their octets, so that a command or a common header name is the same
 * string each time and none is made for it (`stomp-codec` in `bench/`: a frame is read a sixth faster than with a
 * string made for each name).
 */
import { assert } from '../errors.ts'

/** A perfect hash over length, first and last octet; a word that collides with another fails when loaded. */
export class WordTable<Word extends string> {
  readonly #slots: (Word | undefined)[] = new Array(SLOTS).fill(undefined)

  /** Takes ASCII words, none of them empty. */
  constructor(words: readonly Word[]) {
    for (const word of words) {
      const slot = slotOf(word.length, word.charCodeAt(0), word.charCodeAt(word.length - 1))
      assert(this.#slots[slot] === undefined, 'two words share a slot')
      this.#slots[slot] = word
    }
  }

  /** The word that stands in [start, end) of the bytes; undefined for any other, also for none at all. */
  find(bytes: Uint8Array, start: number, end: number): Word | undefined {
    if (end <= start) return undefined
    const word = this.#slots[slotOf(end - start, bytes[start]!, bytes[end - 1]!)]
    if (word === undefined || word.length !== end - start) return undefined
    for (let at = 0; at < word.length; at++) {
      if (word.charCodeAt(at) !== bytes[start + at]) return undefined
    }
    return word
  }
}

function slotOf(length: number, first: number, last: number): number {
  return (length * 3 + first + last) & (SLOTS - 1)
}

const SLOTS = 64

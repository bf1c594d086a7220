/**
 * Values one behind the other as octets, for sealed rows that are written often. Writer and reader agree on the order; the
 * octets say nothing of it. A call takes a fifth of the time that msgpack took, and half the room.
 */

import { assert } from '../../errors.ts'

/** Bound: a text or a run of octets has 65,535 octets. */
export class OctetWriter {
  #octets = Buffer.allocUnsafeSlow(8_192)
  #view = viewOf(this.#octets)
  #at = 0

  /** Begins anew, whatever became of the last writing. */
  begin(): this {
    this.#at = 0
    return this
  }

  /** A copy of all that was written since `begin`. */
  taken(): Uint8Array {
    return Buffer.from(this.#octets.subarray(0, this.#at))
  }

  /** Whether the value is there, for the reader to know. */
  isThere<Value>(value: Value | undefined): value is Value {
    this.flag(value !== undefined)
    return value !== undefined
  }

  flag(value: boolean): void {
    this.uint8(value ? 1 : 0)
  }

  uint8(value: number): void {
    this.#reserve(1)
    this.#octets[this.#at++] = value
  }

  uint16(value: number): void {
    assert(value <= 0xffff, 'a uint16 has 16 bits')
    this.#reserve(2)
    this.#view.setUint16(this.#at, value)
    this.#at += 2
  }

  uint64(value: bigint): void {
    this.#reserve(8)
    this.#view.setBigUint64(this.#at, value)
    this.#at += 8
  }

  /** Any number. */
  float64(value: number): void {
    this.#reserve(8)
    this.#view.setFloat64(this.#at, value)
    this.#at += 8
  }

  octets(value: Uint8Array): void {
    this.uint16(value.length)
    this.#reserve(value.length)
    this.#octets.set(value, this.#at)
    this.#at += value.length
  }

  text(value: string): void {
    this.#write(value, 'utf8')
  }

  /** Canonical base64, as the octets that it stands for. */
  base64(value: string): void {
    const start = this.#write(value, 'base64')
    assert(this.#octets.toString('base64', start, this.#at) === value, 'base64 is canonical')
  }

  #write(value: string, encoding: 'utf8' | 'base64'): number {
    this.#reserve(2 + 3 * value.length)
    const start = this.#at + 2
    const length = this.#octets.write(value, start, encoding)
    this.uint16(length)
    this.#at += length
    return start
  }

  #reserve(length: number): void {
    if (this.#at + length <= this.#octets.length) return
    const longer = Buffer.allocUnsafeSlow(2 * (this.#at + length))
    longer.set(this.#octets)
    this.#octets = longer
    this.#view = viewOf(longer)
  }
}

/** Reads the same in the same order. Throws `RangeError` behind the end. */
export class OctetReader {
  readonly #octets: Buffer
  readonly #view: DataView
  #at = 0

  constructor(octets: Uint8Array) {
    this.#octets = Buffer.from(octets.buffer, octets.byteOffset, octets.length)
    this.#view = viewOf(octets)
  }

  get isAtEnd(): boolean {
    return this.#at === this.#octets.length
  }

  flag(): boolean {
    return this.uint8() === 1
  }

  uint8(): number {
    this.#at += 1
    return this.#view.getUint8(this.#at - 1)
  }

  uint16(): number {
    this.#at += 2
    return this.#view.getUint16(this.#at - 2)
  }

  uint64(): bigint {
    this.#at += 8
    return this.#view.getBigUint64(this.#at - 8)
  }

  float64(): number {
    this.#at += 8
    return this.#view.getFloat64(this.#at - 8)
  }

  /** A copy. */
  octets(): Uint8Array {
    const start = this.#skip()
    return Buffer.from(this.#octets.subarray(start, this.#at))
  }

  text(): string {
    const start = this.#skip()
    return this.#octets.toString('utf8', start, this.#at)
  }

  base64(): string {
    const start = this.#skip()
    return this.#octets.toString('base64', start, this.#at)
  }

  #skip(): number {
    const length = this.uint16()
    this.#at += length
    return this.#at - length
  }
}

export function writeList<Item>(
  to: OctetWriter,
  items: readonly Item[],
  write: (to: OctetWriter, item: Item) => void,
): void {
  to.uint16(items.length)
  for (const item of items) write(to, item)
}

export function readList<Item>(from: OctetReader, read: (from: OctetReader) => Item): Item[] {
  const items: Item[] = []
  for (let left = from.uint16(); left > 0; left--) items.push(read(from))
  return items
}

/** One of some texts, each with a number that stored rows have. */
export class Words<Word extends string> {
  readonly #numbers: Readonly<Record<Word, number>>
  readonly #words: Word[] = []

  constructor(numbers: Readonly<Record<Word, number>>) {
    this.#numbers = numbers
    for (const word in numbers) this.#words[numbers[word]] = word
  }

  write(to: OctetWriter, word: Word): void {
    const number: number | undefined = this.#numbers[word]
    assert(number !== undefined, 'a word has a number')
    to.uint8(number)
  }

  read(from: OctetReader): Word {
    return this.#words[from.uint8()]!
  }
}

function viewOf(octets: Uint8Array): DataView {
  return new DataView(octets.buffer, octets.byteOffset, octets.length)
}

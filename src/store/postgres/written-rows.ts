/**
 * The body of a change: the rows that it wrote. One octet for the version, then one flat msgpack array with table, key and
 * value of each row, in the order of writing; nil for the value of a row that was removed.
 *
 * Choice: bodies are read here, not by msgpackr, which makes arrays as long as their heads claim, nested ones too, before it
 * looks for the items.
 */

import { Packr, RESERVE_START_SPACE } from 'msgpackr'
import { SignalError } from '../../errors.ts'
import type { WrittenRow } from '../engine/change-record.ts'

export function encodeRows(rows: readonly WrittenRow[]): Uint8Array {
  const flat = new Array<unknown>(ROW_LENGTH * rows.length)
  let at = 0
  for (const { table, key, value } of rows) {
    flat[at] = table
    flat[at + 1] = key
    flat[at + 2] = value ?? null
    at += ROW_LENGTH
  }
  const body = PACKR.pack(flat, RESERVE_START_SPACE + 1)
  body[0] = VERSION
  return body
}

/** Keys and values are parts of `body`, not copies. Throws `MALFORMED`. */
export function decodeRows(body: Uint8Array): WrittenRow[] {
  if (body[0] !== VERSION) throw malformed('is of another version')
  const reader = new Reader(body, 1)
  const items = reader.arrayLength()
  if (items % ROW_LENGTH !== 0) throw malformed('ends within a row')
  const rows: WrittenRow[] = []
  for (let left = items; left > 0; left -= ROW_LENGTH) {
    rows.push({ table: reader.text(), key: reader.bytes(), value: reader.bytesOrNil() })
  }
  if (!reader.isAtEnd) throw malformed('goes on behind its rows')
  return rows
}

/** The formats of msgpack that a body has: arrays, `str`, `bin` and nil. */
class Reader {
  readonly #body: Buffer
  #at: number

  constructor(body: Uint8Array, at: number) {
    this.#body = Buffer.from(body.buffer, body.byteOffset, body.length)
    this.#at = at
  }

  get isAtEnd(): boolean {
    return this.#at === this.#body.length
  }

  arrayLength(): number {
    const head = this.#number(1)
    if (head >= 0x90 && head <= 0x9f) return head & 0x0f
    if (head === 0xdc) return this.#number(2)
    if (head === 0xdd) return this.#number(4)
    throw malformed('has no array')
  }

  text(): string {
    const head = this.#number(1)
    if (head >= 0xa0 && head <= 0xbf) return this.#part(head & 0x1f).toString()
    if (head >= 0xd9 && head <= 0xdb) return this.#part(this.#number(2 ** (head - 0xd9))).toString()
    throw malformed('has a table that is no text')
  }

  bytes(): Buffer {
    const bytes = this.bytesOrNil()
    if (bytes === undefined) throw malformed('has a row without a key')
    return bytes
  }

  bytesOrNil(): Buffer | undefined {
    const head = this.#number(1)
    if (head === 0xc0) return undefined
    if (head >= 0xc4 && head <= 0xc6) return this.#part(this.#number(2 ** (head - 0xc4)))
    throw malformed('has a key or value that is not bytes')
  }

  #number(length: number): number {
    this.#claim(length)
    return this.#body.readUIntBE(this.#at - length, length)
  }

  #part(length: number): Buffer {
    this.#claim(length)
    return this.#body.subarray(this.#at - length, this.#at)
  }

  #claim(length: number): void {
    if (length > this.#body.length - this.#at) throw malformed('is cut off')
    this.#at += length
  }
}

function malformed(how: string): SignalError {
  return new SignalError('MALFORMED', `the body of a change ${how}`)
}

const VERSION = 1
/** Table, key, value. */
const ROW_LENGTH = 3
const PACKR = new Packr({ useRecords: false })

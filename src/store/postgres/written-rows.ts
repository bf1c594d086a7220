/**
 * The body of a change: the rows that it wrote. One octet for `STORE_FORM`, then one flat msgpack array with table, key and
 * value of each row, in the order of writing; nil for the value of a row that was removed.
 *
 * Choice: both directions are written here. msgpackr takes three times as long for arrays of bytes, on the thread that
 * writes everything, and reading makes arrays as long as their heads claim before it looks for the items.
 */

import { assert, SignalError } from '../../errors.ts'
import type { WrittenRow } from '../engine/change-ledger.ts'
import { STORE_FORM } from '../engine/store-form.ts'

export function encodeRows(rows: readonly WrittenRow[]): Uint8Array {
  let length = ARRAY_AT + 5
  for (const { table, key, value } of rows) {
    length += 2 + UTF8_BYTES_MAX * table.length + HEAD_BYTES_MAX + key.length
    length += value === undefined ? 1 : HEAD_BYTES_MAX + value.length
  }
  const body = Buffer.allocUnsafe(length)
  body[0] = STORE_FORM
  body[ARRAY_AT] = ARRAY_32
  body.writeUInt32BE(ROW_LENGTH * rows.length, ARRAY_AT + 1)
  let at = ARRAY_AT + 5
  for (const { table, key, value } of rows) {
    at = writeText(body, at, table)
    at = writeBytes(body, at, key)
    if (value === undefined) body[at++] = NIL
    else at = writeBytes(body, at, value)
  }
  return body.subarray(0, at)
}

/** Keys and values are parts of `body`, not copies. Throws `MALFORMED`. */
export function decodeRows(body: Uint8Array): WrittenRow[] {
  assertKnown(body[0])
  const reader = new Reader(body, ARRAY_AT)
  const items = reader.arrayLength()
  if (items % ROW_LENGTH !== 0) throw malformed('ends within a row')
  const rows: WrittenRow[] = []
  for (let left = items; left > 0; left -= ROW_LENGTH) {
    rows.push({ table: reader.text(), key: reader.bytes(), value: reader.bytesOrNil() })
  }
  if (!reader.isAtEnd) throw malformed('goes on behind its rows')
  return rows
}

/** `form` is the first octet of a body. Throws `MALFORMED` for the body of another program. */
export function assertKnown(form: number | undefined): void {
  if (form === STORE_FORM) return
  throw malformed(`is of form ${form}, this program reads form ${STORE_FORM}: run one version on all nodes`)
}

/** Returns where the next item goes. */
function writeText(body: Buffer, at: number, text: string): number {
  const length = body.write(text, at + 2)
  assert(length <= 0xff, 'the name of a table has at most 255 bytes')
  body[at] = STR_8
  body[at + 1] = length
  return at + 2 + length
}

function writeBytes(body: Buffer, start: number, bytes: Uint8Array): number {
  let at = start + 2
  if (bytes.length <= 0xff) {
    body[start] = BIN_8
    body[start + 1] = bytes.length
  } else {
    body[start] = BIN_32
    at = body.writeUInt32BE(bytes.length, start + 1)
  }
  body.set(bytes, at)
  return at + bytes.length
}

/** Reads the formats of msgpack that `encodeRows` writes. */
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
    if (this.#octet() !== ARRAY_32) throw malformed('has no array')
    return this.#uint32()
  }

  text(): string {
    if (this.#octet() !== STR_8) throw malformed('has a table that is no text')
    const start = this.#claim(this.#octet())
    return this.#body.toString('utf8', start, this.#at)
  }

  bytes(): Buffer {
    const bytes = this.bytesOrNil()
    if (bytes === undefined) throw malformed('has a row without a key')
    return bytes
  }

  bytesOrNil(): Buffer | undefined {
    const head = this.#octet()
    if (head === NIL) return undefined
    if (head !== BIN_8 && head !== BIN_32) throw malformed('has a key or value that is not bytes')
    const start = this.#claim(head === BIN_8 ? this.#octet() : this.#uint32())
    return this.#body.subarray(start, this.#at)
  }

  #octet(): number {
    return this.#body[this.#claim(1)]!
  }

  #uint32(): number {
    return this.#body.readUInt32BE(this.#claim(4))
  }

  /** Returns where the next so many octets begin. */
  #claim(length: number): number {
    const start = this.#at
    if (length > this.#body.length - start) throw malformed('is cut off')
    this.#at = start + length
    return start
  }
}

function malformed(how: string): SignalError {
  return new SignalError('MALFORMED', `the body of a change ${how}`)
}

/** Behind the form. */
const ARRAY_AT = 1
/** Table, key, value. */
const ROW_LENGTH = 3
/** For each character of a table's name. */
const UTF8_BYTES_MAX = 3
/** The head of a `bin 32`. */
const HEAD_BYTES_MAX = 5
/** Formats of msgpack. */
const NIL = 0xc0
const BIN_8 = 0xc4
const BIN_32 = 0xc6
const STR_8 = 0xd9
const ARRAY_32 = 0xdd

/**
 * Who is behind each leaf: user, device, and the entry logged before it under the same VRF hash. The log itself shows
 * only hashes; this table is what lets the server re-derive one (LOG 2.6) and walk a key history.
 *
 * Records are packed into blocks of one LMDB overflow page, so an append rewrites one page, not one per record.
 */

import { assert } from '../errors.ts'
import { indexKey } from '../store/engine/keys.ts'
import type { ReadStore } from '../store/engine/store.ts'
import type { Table } from '../store/engine/table.ts'

export interface LoggedIdentity {
  readonly userId: bigint
  readonly deviceId: bigint
  /** Index of the entry that this one replaced, or undefined for the first key of the device. */
  readonly previousIndex: number | undefined
  /** How many entries were logged under this identity before. */
  readonly earlierKeys: number
}

/** Writes of one batch that are computed before its transaction and become readable from the table after it. */
export interface PendingWrites {
  readonly writes: readonly { readonly key: Uint8Array; readonly value: Uint8Array }[]
  /** Call it when the writes are durable: reads go to the table from then on. */
  release(): void
}

export class IdentityTable {
  readonly #store: Pick<ReadStore, 'view'>
  readonly #table: Table<Uint8Array>
  // Blocks that are being written, which a read of the table would not see yet, and the partial last block.
  readonly #unwritten = new Map<number, Buffer>()

  constructor(store: Pick<ReadStore, 'view'>, table: Table<Uint8Array>) {
    this.#store = store
    this.#table = table
  }

  /** The identity of a leaf, committed or in a batch that is being written. */
  read(index: number): LoggedIdentity | undefined {
    const block = Math.floor(index / BLOCK_RECORDS)
    const bytes = this.#unwritten.get(block) ?? this.#readBlock(block)
    const at = (index % BLOCK_RECORDS) * RECORD_BYTES
    if (bytes === undefined || at + RECORD_BYTES > bytes.length) return undefined
    return readRecord(bytes, at)
  }

  /** The block writes that a batch starting at `firstIndex` needs. */
  add(firstIndex: number, identities: readonly LoggedIdentity[]): PendingWrites {
    const touched = new Map<number, Buffer>()
    for (const [offset, identity] of identities.entries()) {
      const block = Math.floor((firstIndex + offset) / BLOCK_RECORDS)
      const position = (firstIndex + offset) % BLOCK_RECORDS
      const bytes = touched.get(block) ?? this.#blockCopy(block, position)
      touched.set(block, bytes)
      writeRecord(bytes, position * RECORD_BYTES, identity)
    }
    const lastPosition = (firstIndex + identities.length - 1) % BLOCK_RECORDS
    const writes = [...touched].map(([block, bytes], at) => ({
      key: indexKey(block),
      value: at === touched.size - 1 ? bytes.subarray(0, (lastPosition + 1) * RECORD_BYTES) : bytes,
    }))
    for (const [block, bytes] of touched) this.#unwritten.set(block, bytes)
    return { writes, release: () => this.#release(touched) }
  }

  #blockCopy(block: number, position: number): Buffer {
    const copy = Buffer.alloc(BLOCK_RECORDS * RECORD_BYTES)
    if (position === 0) return copy
    const bytes = this.#unwritten.get(block) ?? this.#readBlock(block)
    assert(
      bytes !== undefined && bytes.length >= position * RECORD_BYTES,
      'identity block ends before the log',
    )
    copy.set(bytes.subarray(0, position * RECORD_BYTES))
    return copy
  }

  #readBlock(block: number): Buffer | undefined {
    return this.#store.view(view => view.getVolatile(this.#table, indexKey(block)))
  }

  #release(written: ReadonlyMap<number, Buffer>): void {
    for (const [block, bytes] of written) {
      if (this.#unwritten.get(block) === bytes) this.#unwritten.delete(block)
    }
  }
}

/** The record at a byte of a block, which must reach over it. */
export function readRecord(block: Uint8Array, at: number): LoggedIdentity {
  const record = Buffer.from(block.buffer, block.byteOffset + at, RECORD_BYTES)
  const previous = record.readUIntBE(PREVIOUS_AT, 6)
  return {
    userId: record.readBigUInt64BE(0),
    deviceId: record.readBigUInt64BE(8),
    previousIndex: previous === 0 ? undefined : previous - 1,
    earlierKeys: record.readUInt16BE(EARLIER_KEYS_AT),
  }
}

export function writeRecord(bytes: Buffer, at: number, identity: LoggedIdentity): void {
  bytes.writeBigUInt64BE(identity.userId, at)
  bytes.writeBigUInt64BE(identity.deviceId, at + 8)
  bytes.writeUIntBE(
    identity.previousIndex === undefined ? 0 : identity.previousIndex + 1,
    at + PREVIOUS_AT,
    6,
  )
  bytes.writeUInt16BE(identity.earlierKeys, at + EARLIER_KEYS_AT)
}

/** A record: user id, device id, previous index + 1 (0 for none), number of earlier keys. */
export const RECORD_BYTES = 8 + 8 + 6 + 2
/** Where in a record the previous index and the number of earlier keys are. */
export const PREVIOUS_AT = 16
export const EARLIER_KEYS_AT = 22
/** Records of a block: 4,080 bytes, one LMDB overflow page with its header. */
export const BLOCK_RECORDS = 170

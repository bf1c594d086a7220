/** The rows of consecutive changes, coalesced: of each row its last write. */

import type { WrittenRow } from '../engine/change-ledger.ts'

export class CollectedRows {
  /** The change before the first that was collected. */
  readonly after: number
  #to: number
  #bytes = 0
  #count = 0
  /** By table and key. */
  readonly #tables = new Map<string, Map<string, WrittenRow>>()

  constructor(after: number) {
    this.after = after
    this.#to = after
  }

  /** The last change that was collected. */
  get to(): number {
    return this.#to
  }

  get count(): number {
    return this.#count
  }

  /** Their size in memory, without values that were written over. */
  get bytes(): number {
    return this.#bytes
  }

  /** Keeps the rows themselves, whose bytes must not change. */
  add(number: number, rows: readonly WrittenRow[]): void {
    this.#to = number
    for (const row of rows) {
      const table = this.#tableOf(row.table)
      const name = nameOf(row.key)
      const before = table.get(name)
      if (before === undefined) this.#count += 1
      this.#bytes += bytesOf(row) - (before === undefined ? 0 : bytesOf(before))
      table.set(name, row)
    }
  }

  *rows(): Iterable<WrittenRow> {
    for (const table of this.#tables.values()) yield* table.values()
  }

  #tableOf(name: string): Map<string, WrittenRow> {
    let table = this.#tables.get(name)
    if (table === undefined) {
      table = new Map()
      this.#tables.set(name, table)
    }
    return table
  }
}

/** A character for each byte. */
function nameOf(key: Uint8Array): string {
  const bytes = key instanceof Buffer ? key : Buffer.from(key.buffer, key.byteOffset, key.length)
  return bytes.toString('latin1')
}

function bytesOf({ key, value }: WrittenRow): number {
  return 2 * key.length + (value?.length ?? 0) + ROW_BYTES
}

/** About what objects and map take. */
const ROW_BYTES = 256

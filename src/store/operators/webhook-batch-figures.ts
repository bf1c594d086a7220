/** How much waits in batches: counted once, and kept up to date by each change. Where a change fails, it is counted anew. */

import { idInKey, idsKey, nameOfKey, rangeOf } from '../engine/keys.ts'
import { isChange, type ReadStore, type View } from '../engine/store.ts'
import { bytesOf } from './webhook-events.ts'
import { type BatchRow, WEBHOOK_BATCHES } from './webhook-tables.ts'

export interface Waiting {
  readonly events: number
  readonly bytes: number
}

export class BatchFigures {
  /** By endpoint, and by the names of keys; none while they are not known. */
  readonly #sizes = new Map<bigint, Map<string, Waiting>>()
  readonly #sums = new Map<bigint, { events: number; bytes: number }>()

  constructor(database: Pick<ReadStore, 'watch'>) {
    const forget = (key: Uint8Array) => void this.#sizes.delete(idInKey(key, 0))
    database.watch(WEBHOOK_BATCHES, {
      onWriting: (key, row) => this.#write(key, row as BatchRow | undefined),
      onTakenBack: forget,
      onSettled: (key, isDurable) => isDurable || forget(key),
      onReplaced: forget,
    })
  }

  of(view: View, endpointId: bigint): Waiting {
    if (this.#sizes.has(endpointId)) return this.#sums.get(endpointId)!
    const rows = [...view.range(WEBHOOK_BATCHES, rangeOf(idsKey(endpointId)))]
    // A view does not see changes under way.
    if (!isChange(view)) return sumOf(rows.map(({ value }) => sizeOf(value)))
    const sizes = new Map(rows.map(({ key, value }) => [nameOfKey(key), sizeOf(value)]))
    const sum = sumOf(sizes.values())
    this.#sizes.set(endpointId, sizes)
    this.#sums.set(endpointId, sum)
    return sum
  }

  #write(key: Uint8Array, row: BatchRow | undefined): void {
    const endpointId = idInKey(key, 0)
    const sizes = this.#sizes.get(endpointId)
    if (sizes === undefined) return
    const [name, sum] = [nameOfKey(key), this.#sums.get(endpointId)!]
    const before = sizes.get(name) ?? NOTHING
    const after = row === undefined ? NOTHING : sizeOf(row)
    sum.events += after.events - before.events
    sum.bytes += after.bytes - before.bytes
    if (row === undefined) sizes.delete(name)
    else sizes.set(name, after)
  }
}

function sizeOf(row: BatchRow): Waiting {
  return { events: row.count, bytes: bytesOf(row) }
}

function sumOf(sizes: Iterable<Waiting>): { events: number; bytes: number } {
  const sum = { events: 0, bytes: 0 }
  for (const { events, bytes } of sizes) {
    sum.events += events
    sum.bytes += bytes
  }
  return sum
}

const NOTHING: Waiting = { events: 0, bytes: 0 }

/**
 * The numbers of each endpoint's events. They are reserved in steps, since a row for each number would cost as much as the
 * events: it has the first one that is surely unused. In between they follow from the changes.
 */

import { idInKey, idsKey, nameOfKey, rangeOf } from '../engine/keys.ts'
import type { Change, ReadStore } from '../engine/store.ts'
import { type BatchRow, seqIn, WEBHOOK_BATCHES } from './webhook-tables.ts'

interface Numbers {
  /** The first one behind all that are durable; undefined where only the store knows. */
  next: number | undefined
  /** The same for each batch that is not durable yet, by the name of its key. */
  readonly written: Map<string, number>
}

export class WebhookNumbers {
  readonly #endpoints = new Map<bigint, Numbers>()

  constructor(database: Pick<ReadStore, 'watch'>) {
    database.watch(WEBHOOK_BATCHES, {
      onWriting: (key, row) => {
        if (row !== undefined) this.#of(key).written.set(nameOfKey(key), endOf(key, row as BatchRow))
      },
      onTakenBack: key => void this.#of(key).written.delete(nameOfKey(key)),
      onSettled: (key, isDurable) => this.#settle(this.#of(key), nameOfKey(key), isDurable),
      // Another process writes, and has used more of them.
      onReplaced: key => void this.#endpoints.delete(idInKey(key, 0)),
    })
  }

  /** The number of the endpoint's next event. `unusedFrom`: what the store says, as this change sees it. */
  next(change: Change, endpointId: bigint, unusedFrom: number): number {
    const { next, written } = this.#endpoints.get(endpointId) ?? UNKNOWN
    let first = next ?? (written.size === 0 ? unusedFrom : 1)
    for (const end of written.values()) first = Math.max(first, end)
    const prefix = idsKey(endpointId)
    const { start, end } = rangeOf(prefix)
    // Also behind one that is not among those, whatever became of it: no event may take the place of another.
    for (const { key, value } of change.range(WEBHOOK_BATCHES, {
      start: end,
      end: start,
      reverse: true,
      limit: 1,
    }))
      first = Math.max(first, endOf(key, value))
    return first
  }

  #settle(numbers: Numbers, name: string, isDurable: boolean): void {
    const end = numbers.written.get(name)
    if (end === undefined) return
    numbers.written.delete(name)
    // A write that failed may be there in part.
    numbers.next = isDurable ? Math.max(numbers.next ?? 1, end) : undefined
  }

  #of(key: Uint8Array): Numbers {
    const endpointId = idInKey(key, 0)
    const known = this.#endpoints.get(endpointId)
    if (known !== undefined) return known
    const numbers: Numbers = { next: undefined, written: new Map() }
    this.#endpoints.set(endpointId, numbers)
    return numbers
  }
}

function endOf(key: Uint8Array, { count }: BatchRow): number {
  return seqIn(key) + count
}

const UNKNOWN: Numbers = { next: undefined, written: new Map() }

/**
 * A store that is written in numbered steps, one change each, of many pages: its content after a step is known to the
 * byte, so that the content after a crash can be compared.
 */

import { createHash } from 'node:crypto'
import { indexKey, textKey } from '../../src/store/engine/keys.ts'
import type { Store, View } from '../../src/store/engine/store.ts'
import { plainBytesTable, plainTable, plainTextKeyTable } from './plain-tables.ts'

export class CountedStore {
  readonly #store: Store
  #written: number

  constructor(store: Store) {
    this.#store = store
    this.#written = this.count
  }

  /** The last step that is there; 0 before the first. */
  get count(): number {
    return this.#store.view(countIn)
  }

  /** Takes the next step; resolves with its number once it is durable. */
  async step(): Promise<number> {
    const step = ++this.#written
    await this.#store.change(change => {
      change.put(VALUES, indexKey(step), bytesOf(step))
      change.put(NAMES, textKey(`step ${step}`), step)
      const gone = step - STEPS_KEPT
      if (gone > 0) {
        change.remove(VALUES, indexKey(gone))
        change.remove(NAMES, textKey(`step ${gone}`))
      }
      change.put(COUNTS, 'count', step)
    })
    return step
  }

  /** Differences from the state after its last step; undefined without any. */
  fault(): string | undefined {
    return this.#store.view(faultIn)
  }
}

function countIn(view: View): number {
  return view.get(COUNTS, 'count') ?? 0
}

function faultIn(view: View): string | undefined {
  const count = countIn(view)
  const first = Math.max(1, count - STEPS_KEPT + 1)
  for (let step = first; step <= count; step++) {
    const value = view.get(VALUES, indexKey(step))
    if (value === undefined || !bytesOf(step).equals(value)) return `the value of step ${step} of ${count}`
    if (view.get(NAMES, textKey(`step ${step}`)) !== step) return `the name of step ${step} of ${count}`
  }
  const kept = count === 0 ? 0 : count - first + 1
  const [values, names] = [view.count(VALUES), view.count(NAMES)]
  return values === kept && names === kept ? undefined : `${values} values, ${names} names, not ${kept}`
}

/** 1 to 9,000 bytes, so that some have pages of their own. */
function bytesOf(step: number): Buffer {
  const digest = createHash('sha512').update(`${step}`).digest()
  return Buffer.alloc(1 + (digest.readUInt16BE() % 9_000), digest)
}

const COUNTS = plainTextKeyTable<number>('counts')
const VALUES = plainBytesTable('values')
const NAMES = plainTable<number>('names')
const STEPS_KEPT = 40

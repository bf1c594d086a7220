/**
 * A store that is written in numbered steps, one transaction each, of many pages: what it holds after a step is known to
 * the byte, so that what was left of it by a crash can be told from what should be.
 */

import { createHash } from 'node:crypto'
import type { BytesTable, Database, RecordTable, Table } from '../../src/store/engine/database.ts'
import { indexKey, textKey } from '../../src/store/engine/keys.ts'

export class CountedStore {
  readonly #database: Database
  readonly #counts: RecordTable<number>
  readonly #values: BytesTable
  readonly #names: Table<number>
  #written: number

  constructor(database: Database) {
    this.#database = database
    this.#counts = database.recordTable('counts')
    this.#values = database.bytesTable('values')
    this.#names = database.table('names')
    this.#written = this.count
  }

  /** The last step that is there; 0 before the first. */
  get count(): number {
    return this.#counts.get('count') ?? 0
  }

  /** Takes the next step; resolves with its number once it is durable. */
  async step(): Promise<number> {
    const step = ++this.#written
    await this.#database.commit(() => {
      this.#values.put(indexKey(step), bytesOf(step))
      this.#names.put(textKey(`step ${step}`), step)
      const gone = step - STEPS_KEPT
      if (gone > 0) {
        this.#values.remove(indexKey(gone))
        this.#names.remove(textKey(`step ${gone}`))
      }
      this.#counts.put('count', step)
    })
    return step
  }

  /** Differences from the state after its last step; undefined without any. */
  fault(): string | undefined {
    const { count } = this
    const first = Math.max(1, count - STEPS_KEPT + 1)
    for (let step = first; step <= count; step++) {
      const value = this.#values.get(indexKey(step))
      if (value === undefined || !bytesOf(step).equals(value)) return `the value of step ${step} of ${count}`
      if (this.#names.get(textKey(`step ${step}`)) !== step) return `the name of step ${step} of ${count}`
    }
    const kept = count === 0 ? 0 : count - first + 1
    const [values, names] = [this.#values.getKeysCount({}), this.#names.getKeysCount({})]
    return values === kept && names === kept ? undefined : `${values} values, ${names} names, not ${kept}`
  }
}

/** 1 to 9,000 bytes, so that some have pages of their own. */
function bytesOf(step: number): Buffer {
  const digest = createHash('sha512').update(`${step}`).digest()
  return Buffer.alloc(1 + (digest.readUInt16BE() % 9_000), digest)
}

const STEPS_KEPT = 40

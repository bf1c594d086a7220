/**
 * Rehearses every change of a store before it counts: once with a fault at each of its writes, which must leave every row
 * as it was, and once to its end, after which the same run again must write the same bytes. A change that depends on
 * anything but the state, what it closes over, its instant and the randomness it is given is found out.
 */

import { randomBytes } from 'node:crypto'
import type { LmdbChange, WrittenRow } from '../../src/store/engine/lmdb-change.ts'
import type { Change } from '../../src/store/engine/store.ts'

export class Rehearsals {
  /** What was wrong, for each change that was. */
  readonly faults = FAULTS
  /** Changes that wrote something, and the faults that were injected into them. */
  changes = 0
  injected = 0
  readonly #replayed: Uint8Array[] = []
  #at: number | undefined

  /** Random bytes that are the same in each run of a change. */
  readonly randomBytes = (length: number): Buffer => {
    if (this.#at === undefined) return randomBytes(length)
    const bytes = this.#replayed[this.#at] ?? randomBytes(length)
    this.#replayed[this.#at++] = bytes
    return Buffer.from(bytes)
  }

  /** Whether what runs does not count, so that a stub that a change calls notes nothing. */
  get isRehearsing(): boolean {
    return this.#at !== undefined
  }

  readonly rehearse = (begin: () => LmdbChange, write: (change: Change) => unknown): void => {
    this.#replayed.length = 0
    const first = this.#run(begin(), write, Number.POSITIVE_INFINITY)
    if (first.writes > 0) {
      this.changes++
      for (let faultAt = 1; faultAt <= Math.min(first.writes, FAULTS_MAX); faultAt++) {
        this.injected++
        this.#run(begin(), write, faultAt)
      }
      const second = this.#run(begin(), write, Number.POSITIVE_INFINITY)
      const difference = differenceOf(first.rows, second.rows)
      if (difference !== undefined) this.faults.push(`two runs of a change differ: ${difference}`)
    }
    this.#at = undefined
  }

  /** Runs `write` and takes it back, as its own function does where a write fails. */
  #run(change: LmdbChange, write: (change: Change) => unknown, faultAt: number) {
    let writes = 0
    change.beforeWrite = () => {
      if (++writes === faultAt) throw new Error(`write ${faultAt} fails`)
    }
    this.#at = 0
    let rows: readonly WrittenRow[] = []
    try {
      change.run(each => {
        const result = write(each)
        each.atEnd(() => {
          rows = change.written
        })
        return result
      })
      change.takeBack()
    } catch {
      // Taken back already.
    }
    for (const { name, before, now } of change.written) {
      if (Buffer.compare(before ?? NONE, now ?? NONE) !== 0) {
        this.faults.push(`a fault at write ${faultAt} leaves ${name} changed`)
      }
    }
    for (const tell of change.settled) tell()
    return { writes, rows }
  }
}

function differenceOf(first: readonly WrittenRow[], second: readonly WrittenRow[]): string | undefined {
  const [one, other] = [first, second].map(
    rows => new Map(rows.map(({ name, now }) => [name, Buffer.from(now ?? NONE).toString('hex')])),
  )
  for (const name of [...one!.keys(), ...other!.keys()]) {
    if (one!.get(name) !== other!.get(name)) return name
  }
  return undefined
}

/** Of all stores of the process: a test file fails with them, whatever its tests say. */
const FAULTS: string[] = []
process.once('exit', () => {
  if (FAULTS.length === 0) return
  process.stderr.write(`${[...new Set(FAULTS)].join('\n')}\n`)
  process.exitCode = 1
})

const NONE = new Uint8Array(0)
/** Of one change: the longest writes some thousand rows. */
const FAULTS_MAX = 40

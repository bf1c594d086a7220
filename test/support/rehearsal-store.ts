/**
 * Rehearses every change of a store before it counts: once with a fault at each of its writes, which must leave every row
 * as it was, and once to its end, after which the same run again must write and say the same. A change that depends on
 * anything but the state, what it closes over, its instant and the randomness it is given is found out.
 */

import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Happening } from '../../src/domain/happening.ts'
import type { LmdbChange, RewrittenRow } from '../../src/store/engine/lmdb-change.ts'
import type { Change } from '../../src/store/engine/store.ts'
import { randomFrom, seedOf } from './seed.ts'
import { bySize } from './size.ts'

/** A change that wrote something. */
export interface Rehearsed {
  readonly write: (change: Change) => unknown
  readonly rows: readonly RewrittenRow[]
  /** How often it writes, and at how many of these writes a fault was injected. */
  readonly writes: number
  readonly injected: number
}

interface Run {
  readonly writes: number
  readonly rows: readonly RewrittenRow[]
  readonly happenings: readonly Happening[]
}

export class Rehearsals {
  /** What was wrong, for each change that was. */
  readonly faults = FAULTS
  /** Changes that wrote something, and the faults that were injected into them. */
  changes = 0
  injected = 0
  /** The first so many writes of a change fail once each. */
  faultsMax = FAULTS_MAX
  /**
   * One of so many writes fails: each in the long size; in the short one, a different write with each change and seed.
   */
  faultEvery = bySize({ short: 3, long: 1 })
  /** Told of each change that wrote something. */
  onRehearsed: (rehearsed: Rehearsed) => void = () => undefined
  /** A text of the whole store, which no rehearsal may change; left out where rows that changes write are enough. */
  fingerprint: (() => string) | undefined
  readonly #replayed: Uint8Array[] = []
  #at: number | undefined
  #runs = 0

  /** Random bytes that are the same in each run of a change. */
  readonly randomBytes = (length: number): Buffer => {
    if (this.#at === undefined) return randomBytes(length)
    const bytes = this.#replayed[this.#at] ?? randomBytes(length)
    this.#replayed[this.#at++] = bytes
    return Buffer.from(bytes)
  }

  /** A clock that each run of a change reads differently; the instant of the change is the same in all. */
  clock(nowMs: () => number): () => number {
    return () => nowMs() + (this.#at === undefined ? 0 : this.#runs)
  }

  /** Whether this run does not count, so that a stub that a change calls notes nothing. */
  get isRehearsing(): boolean {
    return this.#at !== undefined
  }

  readonly rehearse = (begin: () => LmdbChange, write: (change: Change) => unknown): void => {
    this.#replayed.length = 0
    const before = this.fingerprint?.()
    const first = this.#run(begin(), write, Number.POSITIVE_INFINITY)
    if (first.writes === 0) return
    const last = Math.min(first.writes, this.faultsMax)
    const every = Math.min(this.faultEvery, last)
    let injected = 0
    for (let faultAt = 1 + Math.floor(random() * every); faultAt <= last; faultAt += every) {
      injected++
      this.#run(begin(), write, faultAt)
      if (this.fingerprint?.() !== before) this.faults.push(`a fault at write ${faultAt} leaves a trace`)
    }
    const second = this.#run(begin(), write, Number.POSITIVE_INFINITY)
    const difference = differenceOf(first, second)
    if (difference !== undefined) this.faults.push(`two runs of a change differ: ${difference}`)
    if (this.fingerprint?.() !== before) this.faults.push('a change that was taken back leaves a trace')
    this.changes++
    this.injected += injected
    this.onRehearsed({ write, rows: first.rows, writes: first.writes, injected })
  }

  /** Runs `write` and takes it back, as its own function does where a write fails. */
  #run(change: LmdbChange, write: (change: Change) => unknown, faultAt: number): Run {
    let writes = 0
    change.beforeWrite = () => {
      if (++writes === faultAt) throw new Error(`write ${faultAt} fails`)
    }
    this.#at = 0
    this.#runs++
    const { now } = Date
    Date.now = this.clock(now)
    let rows: readonly RewrittenRow[] = []
    let happenings: readonly Happening[] = []
    try {
      change.run(each => {
        const result = write(each)
        each.atEnd(() => {
          rows = change.written
          happenings = [...change.happenings]
        })
        return result
      })
      change.takeBack()
    } catch {
      // Taken back already.
    } finally {
      Date.now = now
      this.#at = undefined
    }
    for (const { name, before, now } of change.written) {
      if (Buffer.compare(before ?? NONE, now ?? NONE) !== 0) {
        this.faults.push(`a fault at write ${faultAt} leaves ${name} changed`)
      }
    }
    change.settle(false)
    return { writes, rows, happenings }
  }
}

/** The row that two runs wrote differently, or what they said. */
function differenceOf(first: Run, second: Run): string | undefined {
  const [one, other] = [first, second].map(
    ({ rows }) => new Map(rows.map(({ name, now }) => [name, Buffer.from(now ?? NONE).toString('hex')])),
  )
  for (const name of [...one!.keys(), ...other!.keys()]) {
    if (one!.get(name) !== other!.get(name)) return name
  }
  return isDeepStrictEqual(first.happenings, second.happenings) ? undefined : 'what happened'
}

/** Of all stores of the process: a test file fails with them, whatever its tests say. */
const FAULTS: string[] = []
process.once('exit', () => {
  if (FAULTS.length === 0) return
  process.stderr.write(`${[...new Set(FAULTS)].join('\n')}\nCALLSIGN_SEED=${SEED}\n`)
  process.exitCode = 1
})

const NONE = new Uint8Array(0)
const SEED = seedOf()
const random = randomFrom(SEED)
/** Of one change: the longest writes some thousand rows. */
const FAULTS_MAX = 40

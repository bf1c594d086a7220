/** The count of all tries of codes by strangers, and that of each network they come from: rows that expire within a day. */

import { guessedForMs, slowedForMs } from '../../domain/accounts/guessing.ts'
import type { Asker } from '../../domain/accounts/known-sign-in.ts'
import { NO_TALLY, type Tally, tallyConfirmed, tallyEndMs, tallyMade } from '../../domain/tally.ts'
import type { Database, Table } from '../engine/database.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { textKey } from '../engine/keys.ts'

export interface CodeTry {
  readonly asker: Asker
  readonly network: string
  readonly isAccepted: boolean
}

export interface GuessWatchParts {
  readonly database: Database
  readonly expiries: Expiries
  /** Told of each try. */
  readonly onCodeTried: (tried: CodeTry) => void
  /** Told once when codes begin to be guessed. */
  readonly onGuessing: () => void
}

export class GuessWatch {
  readonly #parts: GuessWatchParts
  readonly #tallies: Table<Tally>
  #wasGuessed = false

  constructor(parts: GuessWatchParts) {
    this.#parts = parts
    this.#tallies = parts.database.table('code-tries')
    parts.expiries.define(EXPIRY.codeTries, (key, nowMs) => this.#expire(key, nowMs))
  }

  /** Whether codes are guessed now, on the whole. */
  isGuessed(nowMs: number): boolean {
    return guessedForMs(this.#read(ALL), nowMs) > 0
  }

  /** Milliseconds until the asker may try a code, or ask for one; 0 when they may now. */
  missingMs({ asker, network }: Pick<CodeTry, 'asker' | 'network'>, nowMs: number): number {
    if (asker !== 'stranger') return 0
    const guessedMs = guessedForMs(this.#read(ALL), nowMs)
    return guessedMs === 0 ? 0 : Math.min(guessedMs, slowedForMs(this.#read(networkKey(network)), nowMs))
  }

  /** In a transaction. */
  count(tried: CodeTry, nowMs: number): void {
    this.#parts.onCodeTried(tried)
    if (tried.asker !== 'stranger') return
    for (const key of [ALL, networkKey(tried.network)]) {
      const made = tallyMade(this.#read(key), nowMs)
      this.#put(key, tried.isAccepted ? tallyConfirmed(made, nowMs) : made)
    }
    const isGuessed = this.isGuessed(nowMs)
    if (isGuessed && !this.#wasGuessed) this.#parts.onGuessing()
    this.#wasGuessed = isGuessed
  }

  #read(key: Uint8Array): Tally {
    return this.#tallies.get(key) ?? NO_TALLY
  }

  #put(key: Uint8Array, tally: Tally): void {
    if (!this.#tallies.doesExist(key)) this.#parts.expiries.add(EXPIRY.codeTries, tallyEndMs(tally), key)
    this.#tallies.put(key, tally)
  }

  #expire(key: Uint8Array, nowMs: number): number | undefined {
    const endMs = tallyEndMs(this.#read(key))
    if (nowMs < endMs) return endMs
    this.#tallies.remove(key)
    return undefined
  }
}

function networkKey(network: string): Uint8Array {
  return textKey(`network ${network}`)
}

const ALL = textKey('all')

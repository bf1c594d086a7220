/** The count of all tries of codes by strangers, and that of each network they come from: rows that expire within a day. */

import { guessedForMs, slowedForMs } from '../../domain/accounts/guessing.ts'
import type { Asker } from '../../domain/accounts/known-sign-in.ts'
import { NO_TALLY, type Tally, tallyConfirmed, tallyEndMs, tallyMade } from '../../domain/tally.ts'
import type { Database } from '../engine/database.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { textKey } from '../engine/keys.ts'
import { type Change, recordTable, type View } from '../engine/store.ts'

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
  #wasGuessed = false

  constructor(parts: GuessWatchParts) {
    this.#parts = parts
    parts.expiries.define(EXPIRY.codeTries, (key, nowMs) => this.#expire(parts.database.ambient, key, nowMs))
  }

  /** Whether codes are guessed now, on the whole. */
  isGuessed(view: View, nowMs: number): boolean {
    return guessedForMs(this.#read(view, ALL), nowMs) > 0
  }

  /** Milliseconds until the asker may try a code, or ask for one; 0 when they may now. */
  missingMs(view: View, { asker, network }: Pick<CodeTry, 'asker' | 'network'>, nowMs: number): number {
    if (asker !== 'stranger') return 0
    const guessedMs = guessedForMs(this.#read(view, ALL), nowMs)
    return guessedMs === 0
      ? 0
      : Math.min(guessedMs, slowedForMs(this.#read(view, networkKey(network)), nowMs))
  }

  count(change: Change, tried: CodeTry, nowMs: number): void {
    this.#parts.onCodeTried(tried)
    if (tried.asker !== 'stranger') return
    for (const key of [ALL, networkKey(tried.network)]) {
      const made = tallyMade(this.#read(change, key), nowMs)
      this.#put(change, key, tried.isAccepted ? tallyConfirmed(made, nowMs) : made)
    }
    const isGuessed = this.isGuessed(change, nowMs)
    if (isGuessed && !this.#wasGuessed) this.#parts.onGuessing()
    this.#wasGuessed = isGuessed
  }

  #read(view: View, key: Uint8Array): Tally {
    return view.get(CODE_TRIES, key) ?? NO_TALLY
  }

  #put(change: Change, key: Uint8Array, tally: Tally): void {
    if (!change.has(CODE_TRIES, key)) this.#parts.expiries.add(EXPIRY.codeTries, tallyEndMs(tally), key)
    change.put(CODE_TRIES, key, tally)
  }

  #expire(change: Change, key: Uint8Array, nowMs: number): number | undefined {
    const endMs = tallyEndMs(this.#read(change, key))
    if (nowMs < endMs) return endMs
    change.remove(CODE_TRIES, key)
    return undefined
  }
}

function networkKey(network: string): Uint8Array {
  return textKey(`network ${network}`)
}

const ALL = textKey('all')
const CODE_TRIES = recordTable<Tally>('code-tries')

/** The count of all tries of codes by strangers, and that of each network they come from: rows that expire within a day. */

import { type CodeTry, guessedForMs, slowedForMs } from '../../domain/accounts/guessing.ts'
import { type CountedNetwork, countedNetworks, isWide } from '../../domain/network.ts'
import { NO_TALLY, type Tally, tallyConfirmed, tallyEndMs, tallyMade } from '../../domain/tally.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { textKey } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import { CODE_TRIES } from './code-tables.ts'

export class GuessWatch {
  readonly #expiries: Expiries

  constructor(expiries: Expiries) {
    this.#expiries = expiries
    expiries.define(EXPIRY.codeTries, (change, key) => this.#expire(change, key))
  }

  /** Whether codes are guessed now, on the whole. */
  isGuessed(view: View, nowMs: number): boolean {
    return guessedForMs(this.#read(view, ALL), nowMs) > 0
  }

  /**
   * Milliseconds until the asker may try a code, or ask for one; 0 when they may now. A prefix that `isKnown` to the account
   * does not slow.
   */
  missingMs(
    view: View,
    { asker, network }: Pick<CodeTry, 'asker' | 'network'>,
    isKnown: (prefix: CountedNetwork) => boolean,
    nowMs: number,
  ): number {
    if (asker !== 'stranger') return 0
    const guessedMs = guessedForMs(this.#read(view, ALL), nowMs)
    if (guessedMs === 0) return 0
    const slowing = countedNetworks(network).filter(each => !isWide(each) || !isKnown(each))
    const slowedMs = slowing.map(each => slowedForMs(this.#read(view, networkKey(each)), each, nowMs))
    return Math.min(guessedMs, Math.max(...slowedMs))
  }

  count(change: Change, tried: CodeTry): void {
    const { nowMs } = change
    change.happened({ kind: 'code-tried', tried })
    if (tried.asker !== 'stranger') return
    const wasGuessed = this.isGuessed(change, nowMs)
    for (const key of [ALL, ...countedNetworks(tried.network).map(networkKey)]) {
      const made = tallyMade(this.#read(change, key), nowMs)
      this.#put(change, key, tried.isAccepted ? tallyConfirmed(made, nowMs) : made)
    }
    if (!wasGuessed && this.isGuessed(change, nowMs)) change.happened({ kind: 'codes-guessed' })
  }

  #read(view: View, key: Uint8Array): Tally {
    return view.get(CODE_TRIES, key) ?? NO_TALLY
  }

  #put(change: Change, key: Uint8Array, tally: Tally): void {
    if (!change.has(CODE_TRIES, key)) this.#expiries.add(change, EXPIRY.codeTries, tallyEndMs(tally), key)
    change.put(CODE_TRIES, key, tally)
  }

  #expire(change: Change, key: Uint8Array): number | undefined {
    const endMs = tallyEndMs(this.#read(change, key))
    if (change.nowMs < endMs) return endMs
    change.remove(CODE_TRIES, key)
    return undefined
  }
}

function networkKey({ name }: CountedNetwork): Uint8Array {
  return textKey(`network ${name}`)
}

const ALL = textKey('all')

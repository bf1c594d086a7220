/** The counts of each address (contract 2.2): one row each, gone when nothing in it matters any more. */

import { addressIdentifier } from '../../domain/accounts/account.ts'
import type { Address } from '../../domain/accounts/challenge.ts'
import { type CodeCounts, countsEndMs, NO_COUNTS } from '../../domain/accounts/code-counts.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { textKey } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import { CODE_COUNTS } from './code-tables.ts'

export class CodeCountTable {
  readonly #expiries: Expiries

  constructor(expiries: Expiries) {
    this.#expiries = expiries
    expiries.define(EXPIRY.identifier, (change, key) => this.#expire(change, key))
  }

  read(view: View, address: Address): CodeCounts {
    return view.get(CODE_COUNTS, keyOf(address)) ?? NO_COUNTS
  }

  put(change: Change, address: Address, counts: CodeCounts): void {
    const key = keyOf(address)
    const isNew = !change.has(CODE_COUNTS, key)
    change.put(CODE_COUNTS, key, counts)
    if (isNew) this.#expiries.add(change, EXPIRY.identifier, countsEndMs(counts), key)
  }

  #expire(change: Change, key: Uint8Array): number | undefined {
    const counts = change.get(CODE_COUNTS, key)
    if (counts === undefined) return undefined
    if (change.nowMs < countsEndMs(counts)) return countsEndMs(counts)
    change.remove(CODE_COUNTS, key)
    return undefined
  }
}

function keyOf({ kind, key }: Address): Uint8Array {
  return textKey(addressIdentifier(kind, key))
}

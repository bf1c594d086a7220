/**
 * Errands: what a request leaves to be done behind it, sealed, each with an ending that is due at once. The next sweep
 * does them in the order in which they were left, in a transaction of its own; a crash between loses none.
 *
 * Choice: they wait for the sweep, a second at most, and are not run as soon as they are durable. Whoever sends two
 * requests in a row would then find in the second what the first does not tell.
 */

import { decode, encode } from 'msgpackr'
import type { Errand, ErrandOf } from '../../domain/contacts/errand.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { assert } from '../../errors.ts'
import type { Database, Table } from './database.ts'
import { EXPIRY, type Expiries } from './expiries.ts'
import { indexKey } from './keys.ts'
import { Sealed } from './sealed.ts'

export interface ErrandsParts {
  readonly database: Database
  readonly expiries: Expiries
  readonly secrets: Pick<Secrets, 'seal'>
  readonly randomBytes: (length: number) => Uint8Array
}

/** Called in a transaction. */
export type RunErrand<Kind extends Errand['kind']> = (errand: ErrandOf<Kind>, nowMs: number) => void

export class Errands {
  readonly #expiries: Expiries
  readonly #sealed: Sealed
  /** In the order in which they were left. */
  readonly #rows: Table<Uint8Array>
  readonly #kinds = new Map<Errand['kind'], (errand: Errand, nowMs: number) => void>()

  constructor({ database, expiries, secrets, randomBytes }: ErrandsParts) {
    this.#expiries = expiries
    this.#sealed = new Sealed(secrets, randomBytes, 'errand')
    this.#rows = database.table('errands')
    expiries.define(EXPIRY.errand, (key, nowMs) => void this.#run(key, nowMs))
  }

  /** Says how errands of a kind are done. */
  define<Kind extends Errand['kind']>(kind: Kind, run: RunErrand<Kind>): void {
    assert(!this.#kinds.has(kind), `errand kind ${kind} is defined once`)
    this.#kinds.set(kind, (errand, nowMs) => run(errand as ErrandOf<Kind>, nowMs))
  }

  /** In a transaction. */
  leave(errand: Errand, nowMs: number): void {
    const key = this.#nextKey()
    this.#rows.put(key, this.#sealed.seal(encode(errand)))
    this.#expiries.add(EXPIRY.errand, nowMs, key)
  }

  #run(key: Uint8Array, nowMs: number): void {
    const sealed = this.#rows.get(key)
    const plain = sealed && this.#sealed.open(sealed)
    // Sealed by another secret, it can't be done any more.
    if (plain !== undefined) this.#do(decode(plain), nowMs)
    // Only now: what it leaves in its turn must not get its key.
    this.#rows.remove(key)
  }

  #do(errand: Errand, nowMs: number): void {
    const run = this.#kinds.get(errand.kind)
    assert(run !== undefined, `errand kind ${errand.kind} is one of ours`)
    run(errand, nowMs)
  }

  #nextKey(): Uint8Array {
    for (const last of this.#rows.getKeys({ reverse: true, limit: 1 })) {
      return indexKey(Buffer.from(last).readUIntBE(0, 6) + 1)
    }
    return indexKey(0)
  }
}

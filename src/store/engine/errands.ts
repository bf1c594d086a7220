/**
 * Errands: what a request leaves to be done behind it, sealed, each with an ending that is due at once. The next sweep
 * does them in the order in which they were left, in a change of its own; a crash between loses none.
 *
 * Choice: they wait for the sweep, a second at most, and are not run as soon as they are durable. Whoever sends two
 * requests in a row would then find in the second what the first does not tell.
 */

import { decode, encode } from 'msgpackr'
import type { Errand, ErrandOf } from '../../domain/contacts/errand.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { assert } from '../../errors.ts'
import { EXPIRY, type Expiries } from './expiries.ts'
import { indexKey } from './keys.ts'
import { Sealed } from './sealed.ts'
import { type Change, recordTable, type View } from './store.ts'

export interface ErrandsParts {
  readonly expiries: Expiries
  readonly secrets: Pick<Secrets, 'seal'>
  readonly randomBytes: (length: number) => Uint8Array
}

export type RunErrand<Kind extends Errand['kind']> = (change: Change, errand: ErrandOf<Kind>) => void

export class Errands {
  readonly #expiries: Expiries
  readonly #sealed: Sealed
  readonly #kinds = new Map<Errand['kind'], RunErrand<never>>()

  constructor({ expiries, secrets, randomBytes }: ErrandsParts) {
    this.#expiries = expiries
    this.#sealed = new Sealed(secrets, randomBytes, 'errand')
    expiries.define(EXPIRY.errand, (change, key) => void this.#run(change, key))
  }

  /** Says how errands of a kind are done. */
  define<Kind extends Errand['kind']>(kind: Kind, run: RunErrand<Kind>): void {
    assert(!this.#kinds.has(kind), `errand kind ${kind} is defined once`)
    this.#kinds.set(kind, run as unknown as RunErrand<never>)
  }

  /** Has it done by the next sweep. */
  leave(change: Change, errand: Errand): void {
    const key = nextKey(change)
    change.put(ERRANDS, key, this.#sealed.seal(encode(errand)))
    this.#expiries.add(change, EXPIRY.errand, change.nowMs, key)
  }

  #run(change: Change, key: Uint8Array): void {
    const sealed = change.get(ERRANDS, key)
    const plain = sealed && this.#sealed.open(sealed)
    // Sealed by another secret, it can't be done any more.
    if (plain !== undefined) this.#do(change, decode(plain))
    // Only now: what it leaves in its turn must not get its key.
    change.remove(ERRANDS, key)
  }

  #do(change: Change, errand: Errand): void {
    const run = this.#kinds.get(errand.kind)
    assert(run !== undefined, `errand kind ${errand.kind} is one of ours`)
    run(change, errand as never)
  }
}

function nextKey(view: View): Uint8Array {
  for (const last of view.keys(ERRANDS, { reverse: true, limit: 1 })) {
    return indexKey(Buffer.from(last).readUIntBE(0, 6) + 1)
  }
  return indexKey(0)
}

/** In the order in which they were left. */
const ERRANDS = recordTable<Uint8Array>('errands')

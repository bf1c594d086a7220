/**
 * What requests leave to be done behind them, sealed, each with an ending that is due at once. The next sweep
 * does them in the order in which they were left, in a change of its own; a crash between loses none.
 *
 * Choice: they wait for the sweep, a second at most, and are not run as soon as they are durable. Whoever sends two
 * requests in a row would then find in the second what the first does not tell.
 */

import { decode, encode } from 'msgpackr'
import type { DeferredTask, DeferredTaskOf } from '../../domain/contacts/deferred-task.ts'
import { assert } from '../../errors.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { NUMBER } from '../engine/key-parts.ts'
import { indexKey } from '../engine/keys.ts'
import { sealed } from '../engine/row-form.ts'
import type { Change, View } from '../engine/store.ts'
import { rowTable } from '../engine/table.ts'
import type { StoreDeps } from './deps.ts'
import { Sealed } from './sealed.ts'

export type RunDeferredTask<Kind extends DeferredTask['kind']> = (
  change: Change,
  task: DeferredTaskOf<Kind>,
) => void

export class DeferredTasks {
  readonly #expiries: Expiries
  readonly #sealed: Sealed
  readonly #kinds = new Map<DeferredTask['kind'], RunDeferredTask<never>>()

  constructor({ expiries, secrets, randomBytes }: Pick<StoreDeps, 'expiries' | 'secrets' | 'randomBytes'>) {
    this.#expiries = expiries
    this.#sealed = new Sealed(secrets, randomBytes, 'errand')
    expiries.define(EXPIRY.deferredTask, (change, key) => void this.#run(change, key))
  }

  /** Says how tasks of a kind are done. */
  define<Kind extends DeferredTask['kind']>(kind: Kind, run: RunDeferredTask<Kind>): void {
    assert(!this.#kinds.has(kind), `task kind ${kind} is defined once`)
    this.#kinds.set(kind, run as unknown as RunDeferredTask<never>)
  }

  /** Leaves it for the next sweep. */
  leave(change: Change, task: DeferredTask): void {
    const key = nextKey(change)
    change.put(DEFERRED_TASKS, key, this.#sealed.seal(encode(task)))
    this.#expiries.add(change, EXPIRY.deferredTask, change.nowMs, key)
  }

  #run(change: Change, key: Uint8Array): void {
    const sealed = change.get(DEFERRED_TASKS, key)
    const plain = sealed && this.#sealed.open(sealed)
    // Sealed by another secret, it can't be done any more.
    if (plain !== undefined) this.#do(change, decode(plain))
    // Only now: what it leaves in its turn must not get its key.
    change.remove(DEFERRED_TASKS, key)
  }

  #do(change: Change, task: DeferredTask): void {
    const run = this.#kinds.get(task.kind)
    assert(run !== undefined, `task kind ${task.kind} is one of ours`)
    run(change, task as never)
  }
}

function nextKey(view: View): Uint8Array {
  for (const last of view.keys(DEFERRED_TASKS, { reverse: true, limit: 1 })) {
    return indexKey(Buffer.from(last).readUIntBE(0, 6) + 1)
  }
  return indexKey(0)
}

/** In the order in which they were left. */
export const DEFERRED_TASKS = rowTable('errands', { number: NUMBER }, sealed, {
  holds: 'what a request has left to be done, sealed',
  ending: { kind: EXPIRY.deferredTask },
  remedy: 'a person may not hear of a request: have it sent again',
})

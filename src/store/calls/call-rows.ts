/**
 * A call in its rows. A live call has a row in `calls`, the whole call at some version, and a row in `call-changes` with
 * all changes since. Most changes take a hundred octets, a call with its waiting keys takes thousands. Long changes are
 * folded: the call is written whole again. An ended call stands whole in `calls-ended`.
 *
 * Changes begin with the initialisation vector of their whole call, and are refused behind any other.
 */

import type { Call } from '../../domain/calls/call.ts'
import type { CallId } from '../../domain/ids.ts'
import { IV_BYTES } from '../../domain/secrets.ts'
import { BoundedCache } from '../engine/bounded-cache.ts'
import { TIME } from '../engine/key-parts.ts'
import { idsKey, nameOfKey, timeBytes } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { Sealed } from '../tables/sealed.ts'
import { packCall, packChanges, unpackCall, withPackedChanges } from './call-form.ts'
import { CALL_CHANGES, CALLS, CALLS_ENDED } from './call-tables.ts'

/** A live call as its rows have it once the writes that were asked for so far have landed. */
export interface WrittenCall {
  readonly call: Call
  /** How the row of the whole call begins; no two begin alike. */
  readonly wholeIv: Uint8Array
  /** Undefined where the whole call is all. */
  readonly changes: { readonly plain: Uint8Array; readonly iv: Uint8Array } | undefined
}

/** The next writing of a call, and the row that it takes. */
export interface NextCall {
  readonly written: WrittenCall
  readonly sealed: Uint8Array
}

interface KnownCall {
  readonly whole: Uint8Array
  readonly changes: Uint8Array | undefined
  readonly call: Call
}

export class CallRows {
  readonly #whole: Sealed
  readonly #changes: Sealed
  /** Read lately, by the beginning of the row that was written last. */
  readonly #lately = new BoundedCache<string, KnownCall>(CALLS_KEPT_MAX)

  constructor({ secrets, randomBytes }: Pick<StoreDeps, 'secrets' | 'randomBytes'>) {
    this.#whole = new Sealed(secrets, randomBytes, 'call')
    this.#changes = new Sealed(secrets, randomBytes, 'call-changes')
  }

  /** Undefined also for one that another secret has sealed. */
  read(view: View, callId: bigint): Call | undefined {
    const key = idsKey(callId)
    const whole = view.get(CALLS, key)
    if (whole !== undefined) return this.open(whole, view.get(CALL_CHANGES, key))
    const ended = view.get(CALLS_ENDED, key)
    return ended && this.open(ended.subarray(TIME.bytes), undefined)
  }

  /** The call of these rows, which must not be changed. Undefined where another secret has sealed them. */
  open(whole: Uint8Array, changes: Uint8Array | undefined): Call | undefined {
    const name = nameOfKey(ivOf(changes ?? whole))
    const known = this.#lately.get(name)
    if (known !== undefined && isSame(known.whole, whole) && isSame(known.changes, changes)) return known.call
    const call = this.#opened(whole, changes)
    if (call !== undefined) this.#lately.set(name, { whole, changes, call })
    return call
  }

  /** How the call is written after `last`, which is undefined where it is not known how the call stands in its rows. */
  next(last: WrittenCall | undefined, call: Call): NextCall {
    const step = last && packChanges(last.call, call)
    const plain = step && Buffer.concat([last.changes?.plain ?? last.wholeIv, step])
    if (last !== undefined && plain !== undefined && plain.length <= CHANGES_BYTES_MAX) {
      const sealed = this.#changes.seal(plain)
      return { sealed, written: { call, wholeIv: last.wholeIv, changes: { plain, iv: ivOf(sealed) } } }
    }
    const sealed = this.#whole.seal(packCall(call))
    return { sealed, written: { call, wholeIv: ivOf(sealed), changes: undefined } }
  }

  /** The row of a call that has ended. */
  ended(call: Call, endedAtMs: number): Uint8Array {
    return Buffer.concat([timeBytes(endedAtMs), this.#whole.seal(packCall(call))])
  }

  #opened(whole: Uint8Array, changes: Uint8Array | undefined): Call | undefined {
    const plain = this.#whole.open(whole)
    const call = plain && unpackCall(plain)
    if (call === undefined || changes === undefined) return call
    const steps = this.#changes.open(changes)
    const isOfIt = steps !== undefined && isSame(ivOf(steps), ivOf(whole))
    return isOfIt ? withPackedChanges(call, steps.subarray(IV_BYTES)) : undefined
  }
}

export function putNext(
  change: Change,
  key: Uint8Array,
  last: WrittenCall | undefined,
  { written, sealed }: NextCall,
): void {
  if (written.changes !== undefined) return change.put(CALL_CHANGES, key, sealed)
  change.put(CALLS, key, sealed)
  removeChanges(change, key, last)
}

/** Removes a live call, and puts the ended one. */
export function putEnded(
  change: Change,
  key: Uint8Array,
  last: WrittenCall | undefined,
  sealed: Uint8Array,
): void {
  change.remove(CALLS, key)
  removeChanges(change, key, last)
  change.put(CALLS_ENDED, key, sealed)
}

/** Whether the rows are as they were written last. */
export function isWritten(view: View, callId: CallId, { wholeIv, changes }: WrittenCall): boolean {
  const row = view.getVolatile(changes === undefined ? CALLS : CALL_CHANGES, idsKey(callId))
  return row !== undefined && isSame(row.subarray(0, IV_BYTES), changes?.iv ?? wholeIv)
}

function removeChanges(change: Change, key: Uint8Array, last: WrittenCall | undefined): void {
  const hasChanges = last === undefined ? change.has(CALL_CHANGES, key) : last.changes !== undefined
  if (hasChanges) change.remove(CALL_CHANGES, key)
}

/** A copy: the row may be long. */
function ivOf(sealed: Uint8Array): Uint8Array {
  return Uint8Array.prototype.slice.call(sealed, 0, IV_BYTES)
}

function isSame(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return Buffer.compare(one, other) === 0
}

/** As few as keep the row in a leaf of LMDB, which a row above 2,000 octets leaves. */
const CHANGES_BYTES_MAX = 1_600
/** A push is sent within moments; one that waits for longer has its call read again. */
const CALLS_KEPT_MAX = 256

/**
 * What checking the log comes to. A check that fails is an expected answer, so verifiers return it and name the check;
 * they throw only for what the app itself did wrong.
 */
import { SignalError } from '../errors.ts'

/**
 * - `proof`: an answer or its proof text is not of its form
 * - `checkpoint`, `origin`, `signature`: the note in it is not of its form, of another log, not signed by the log
 * - `witnesses`: the witnesses of the app's policy have not cosigned the checkpoint
 * - `stale`: they have, longer ago than the app allows; or the tree is only the beginning of one seen before
 * - `index`: the proof is of a leaf beyond the tree
 * - `vrf`: the VRF proof does not hold for this user and device
 * - `vrfHash`: the hash it proves is not the one that the answer states or the app asked for
 * - `inclusion`: the entry is not in the tree that was signed
 * - `publicKey`: the entry is in the log and holds another key than the app holds
 * - `fork`: one size was signed with two roots
 * - `tiles`: no source serves the tiles that would show whether a signed tree fits one seen before
 * - `consistency`: one of two signed trees does not begin with the other: history was rewritten
 * - `history`: a key history leaves something out or is not one
 * - `deviceList`: a user's device list, or a device named beside it, does not hold
 * - `completeness`: the log's index does not prove that the answer is the newest entry of its hash, or that there is none
 * - `otherKey`: another key was logged under the hash of a device: someone can have put it there to listen in
 */
export type Check =
  | 'proof'
  | 'checkpoint'
  | 'origin'
  | 'signature'
  | 'witnesses'
  | 'stale'
  | 'index'
  | 'vrf'
  | 'vrfHash'
  | 'inclusion'
  | 'publicKey'
  | 'fork'
  | 'tiles'
  | 'consistency'
  | 'history'
  | 'deviceList'
  | 'completeness'
  | 'otherKey'

/** Something the log said does not hold: use nothing of that answer. */
export interface Refusal {
  readonly kind: 'refused'
  readonly check: Check
  /** A sentence for the app's own log; no text for users. */
  readonly detail: string
  /** Two signed notes that contradict each other, the one known before first: worth keeping and showing. */
  readonly evidence?: readonly [string, string]
}

/**
 * Nothing could be checked: no network, a server that refused, or a cache that is late. `code` comes from the server's
 * problem document.
 */
export interface Unanswered {
  readonly kind: 'unanswered'
  readonly detail: string
  readonly status?: number
  readonly code?: string
  /** The checkpoint could not be compared (`tiles`), or is older than one seen before (`stale`). No sign of a lie yet. */
  readonly check?: 'tiles' | 'stale'
}

/** A check that did not hold, on its way to `settle`. */
export class CheckFailed extends Error {
  readonly refusal: Refusal

  constructor(check: Check, detail: string, evidence?: readonly [string, string]) {
    super(detail)
    this.refusal = {
      kind: 'refused',
      check,
      detail,
      ...(evidence === undefined ? {} : { evidence }),
    }
  }
}

/** Runs one check: a `SignalError` of the log's code means that it failed. */
export function during<Value>(check: Check, act: () => Value): Value {
  try {
    return act()
  } catch (error) {
    if (error instanceof SignalError) throw new CheckFailed(check, error.message)
    throw error
  }
}

/** Returns `act`'s result, or the refusal of the check that failed in it. */
export function settle<Value>(act: () => Value): Value | Refusal {
  try {
    return act()
  } catch (error) {
    if (error instanceof CheckFailed) return error.refusal
    throw error
  }
}

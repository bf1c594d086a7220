/** The codes and the challenges that lead to them: one row per code with its challenges in it, one per challenge. */

import {
  type Challenge,
  type Code,
  codeEndMs,
  findChallenge,
  isKept,
  withoutDead,
} from '../../domain/accounts/challenge.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { textKey } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import { CHALLENGES, CODES } from './code-tables.ts'

/** A code as it is stored, and under which key. */
export interface FoundCode {
  readonly key: Uint8Array
  readonly code: Code
}

export interface FoundChallenge extends FoundCode {
  readonly challenge: Challenge
}

export class CodeTable {
  readonly #expiries: Expiries

  constructor(expiries: Expiries) {
    this.#expiries = expiries
    expiries.define(EXPIRY.code, (change, key) => this.#expire(change, key))
  }

  keyOf(codeName: string): Uint8Array {
    return textKey(codeName)
  }

  /** Undefined for a code that does not matter any more, whether it was swept or not. */
  read(view: View, key: Uint8Array, nowMs: number): Code | undefined {
    const code = view.get(CODES, key)
    return code !== undefined && isKept(code, nowMs) ? code : undefined
  }

  /** By 22 base64url characters. */
  findByChallenge(view: View, challengeId: string, nowMs: number): FoundChallenge | undefined {
    if (!CHALLENGE_ID_FORM.test(challengeId)) return undefined
    const id = Buffer.from(challengeId, 'base64url')
    const key = view.get(CHALLENGES, id)
    const code = key === undefined ? undefined : this.read(view, key, nowMs)
    const challenge = code === undefined ? undefined : findChallenge(code, id)
    if (key === undefined || code === undefined || challenge === undefined) return undefined
    return { key, code, challenge }
  }

  put(change: Change, key: Uint8Array, code: Code): void {
    const isNew = !change.has(CODES, key)
    change.put(CODES, key, code)
    if (isNew) this.#expiries.add(change, EXPIRY.code, codeEndMs(code), key)
  }

  addChallenge(change: Change, id: Uint8Array, key: Uint8Array): void {
    change.put(CHALLENGES, id, key)
  }

  removeChallenge(change: Change, id: Uint8Array): void {
    change.remove(CHALLENGES, id)
  }

  /** Removes the rest of a code that does not matter any more and was not swept yet. */
  forgetEnded(change: Change, key: Uint8Array): void {
    const code = change.get(CODES, key)
    if (code !== undefined) this.remove(change, { key, code })
  }

  remove(change: Change, { key, code }: FoundCode): void {
    change.remove(CODES, key)
    for (const { id } of code.challenges) change.remove(CHALLENGES, id)
  }

  removeDead(change: Change, found: FoundCode): void {
    const living = withoutDead(found.code)
    if (living.challenges.length < found.code.challenges.length) this.keep(change, found, living)
  }

  /** The code as it is now; of its challenges those that are left. */
  keep(change: Change, { key, code }: FoundCode, left: Code): void {
    for (const { id } of code.challenges)
      if (findChallenge(left, id) === undefined) change.remove(CHALLENGES, id)
    change.put(CODES, key, left)
  }

  #expire(change: Change, key: Uint8Array): number | undefined {
    const code = change.get(CODES, key)
    if (code === undefined) return undefined
    if (change.nowMs < codeEndMs(code)) return codeEndMs(code)
    this.remove(change, { key, code })
    return undefined
  }
}

/** 16 bytes; the last character holds two of their bits, and no other spelling is taken. */
const CHALLENGE_ID_FORM = /^[A-Za-z0-9_-]{21}[AQgw]$/

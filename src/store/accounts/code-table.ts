/** The codes and the challenges that lead to them: one row per code with its challenges in it, one per challenge. */

import {
  type Challenge,
  type Code,
  codeEndMs,
  findChallenge,
  isKept,
  withoutDead,
} from '../../domain/accounts/challenge.ts'
import type { Database, Table } from '../engine/database.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { textKey } from '../engine/keys.ts'

/** A code as it is stored, and under which key. */
export interface FoundCode {
  readonly key: Uint8Array
  readonly code: Code
}

export interface FoundChallenge extends FoundCode {
  readonly challenge: Challenge
}

/** What writes is to be called in a transaction. */
export class CodeTable {
  readonly #expiries: Expiries
  /** By `codeName`. */
  readonly #codes: Table<Code>
  /** The key of the code of each challenge. */
  readonly #codeKeys: Table<Uint8Array>

  constructor(database: Database, expiries: Expiries) {
    this.#expiries = expiries
    this.#codes = database.table('codes')
    this.#codeKeys = database.table('challenges')
    expiries.define(EXPIRY.code, (key, nowMs) => this.#expire(key, nowMs))
  }

  keyOf(codeName: string): Uint8Array {
    return textKey(codeName)
  }

  /** Undefined for a code that does not matter any more, whether it was swept or not. */
  read(key: Uint8Array, nowMs: number): Code | undefined {
    const code = this.#codes.get(key)
    return code !== undefined && isKept(code, nowMs) ? code : undefined
  }

  /** By 22 base64url characters. */
  findByChallenge(challengeId: string, nowMs: number): FoundChallenge | undefined {
    if (!CHALLENGE_ID_FORM.test(challengeId)) return undefined
    const id = Buffer.from(challengeId, 'base64url')
    const key = this.#codeKeys.get(id)
    const code = key === undefined ? undefined : this.read(key, nowMs)
    const challenge = code === undefined ? undefined : findChallenge(code, id)
    if (key === undefined || code === undefined || challenge === undefined) return undefined
    return { key, code, challenge }
  }

  put(key: Uint8Array, code: Code): void {
    const isNew = !this.#codes.doesExist(key)
    this.#codes.put(key, code)
    if (isNew) this.#expiries.add(EXPIRY.code, codeEndMs(code), key)
  }

  addChallenge(id: Uint8Array, key: Uint8Array): void {
    this.#codeKeys.put(id, key)
  }

  removeChallenge(id: Uint8Array): void {
    this.#codeKeys.remove(id)
  }

  /** What is left of a code that does not matter any more and was not swept yet. */
  forgetEnded(key: Uint8Array): void {
    const code = this.#codes.get(key)
    if (code !== undefined) this.remove({ key, code })
  }

  remove({ key, code }: FoundCode): void {
    this.#codes.remove(key)
    for (const { id } of code.challenges) this.#codeKeys.remove(id)
  }

  removeDead(found: FoundCode): void {
    const living = withoutDead(found.code)
    if (living.challenges.length < found.code.challenges.length) this.keep(found, living)
  }

  /** The code as it is now; of its challenges those that are left. */
  keep({ key, code }: FoundCode, left: Code): void {
    for (const { id } of code.challenges) if (findChallenge(left, id) === undefined) this.#codeKeys.remove(id)
    this.#codes.put(key, left)
  }

  #expire(key: Uint8Array, nowMs: number): number | undefined {
    const code = this.#codes.get(key)
    if (code === undefined) return undefined
    if (nowMs < codeEndMs(code)) return codeEndMs(code)
    this.remove({ key, code })
    return undefined
  }
}

/** 16 bytes; the last character holds two of their bits, and no other spelling is taken. */
const CHALLENGE_ID_FORM = /^[A-Za-z0-9_-]{21}[AQgw]$/

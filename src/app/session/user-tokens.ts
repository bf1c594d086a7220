/** Tokens by which the user shows services of the operator who they are, each used again until a minute before its end. */

import type { ReplyOf } from './operations.ts'
import type { Session } from './session.ts'

interface Kept {
  readonly askedAtMs: number
  /** Infinite while the server is being asked. */
  usableUntilMs: number
  readonly reply: Promise<ReplyOf<'POST user/tokens'>>
}

export class UserTokens {
  readonly #session: Pick<Session, 'request'>
  readonly #nowMs: () => number
  /** By audience. */
  readonly #kept = new Map<string, Kept>()

  constructor(session: Pick<Session, 'request'>, nowMs: () => number) {
    this.#session = session
    this.#nowMs = nowMs
  }

  /** Rejects with `AUDIENCE_UNKNOWN` for a service that the operator has not listed. */
  async for(audience: string): Promise<string> {
    const nowMs = this.#nowMs()
    const last = this.#kept.get(audience)
    // A clock that was set back can't say how old the token is.
    if (last !== undefined && last.askedAtMs <= nowMs && nowMs < last.usableUntilMs)
      return (await last.reply).token
    const reply = this.#session.request('POST user/tokens', { audience })
    const kept: Kept = { askedAtMs: nowMs, usableUntilMs: Number.POSITIVE_INFINITY, reply }
    this.#kept.set(audience, kept)
    try {
      const { token, expiresIn } = await reply
      // By the time of the question: how long the answer was on its way is not known.
      kept.usableUntilMs = nowMs + expiresIn * 1000 - SPARE_MS
      return token
    } catch (error) {
      if (this.#kept.get(audience) === kept) this.#kept.delete(audience)
      throw error
    }
  }
}

/** For clocks that differ, and requests that take their time. */
const SPARE_MS = 60_000

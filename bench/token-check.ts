/**
 * What it costs to know who asks: from an `Authorization` header to the session, for tokens seen before, with their
 * sessions in memory, and for new ones. Held against the one thing that no check can leave out the first time, the MAC
 * of as many bytes.
 */

import { createHmac, randomBytes } from 'node:crypto'
import { Authentication } from '../src/api/accounts/authentication.ts'
import type { UserId } from '../src/domain/ids.ts'
import { deriveSecrets } from '../src/domain/secrets.ts'
import { SessionStore } from '../src/store/accounts/session-store.ts'
import { Expiries } from '../src/store/engine/expiries.ts'
import { LmdbStore } from '../src/store/engine/lmdb-store.ts'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { LIFETIMES, sessionInUse } from './support/people.ts'
import { interleaved, medianOfMany } from './support/rounds.ts'
import { mean } from './support/statistics.ts'

const ROW = {
  limit: 'HMAC-SHA256 of the bytes of a token',
  unit: 'µs',
  notShown:
    'One thread asks without pause, for 2,000 sessions in turn, so that all it needs is in the caches of the processor; for 20,000 a check takes two to four times as long.',
}
const SEEN: Row = {
  ...ROW,
  name: 'token-check',
  project: 'from the header to the session, token seen before',
  goal: { of: 'project', is: 'at most', value: 4 },
}
const FIRST: Row = {
  ...ROW,
  name: 'token-check-first',
  project: 'the same, token never seen before',
}

/** So few that their tokens fit the processor's own cache: with ten times as many, what else uses the shared one decides. */
const SESSIONS = 2_000
const SESSIONS_SMOKE = 1_000
const MAC_INPUT_BYTES = 27

export const tokenCheck: Benchmark = { name: 'token-check', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { turns, isSmoke } = context.scale
  const sessions = isSmoke ? SESSIONS_SMOKE : SESSIONS
  const house = new SessionHouse(context.folder)
  context.after(() => house.close())
  await house.open(sessions)
  const remembering = house.authentication()
  house.checkMicroseconds(remembering)
  for (const round of context.rounds()) {
    for (const [row, authentication] of [
      [SEEN, () => remembering],
      [FIRST, () => house.authentication()],
    ] as const) {
      const { limit, project } = await interleaved(
        round,
        turns,
        () => medianOfMany(() => macMicroseconds(sessions)),
        () => medianOfMany(() => house.checkMicroseconds(authentication())),
      )
      context.record(row, round, { limit: mean(limit), project: mean(project), parameters: { sessions } })
    }
  }
}

/** Sessions in a store, and a header for each. */
class SessionHouse {
  readonly #database: LmdbStore
  readonly #secrets = deriveSecrets(randomBytes(32))
  readonly #sessions: SessionStore
  readonly #headers: string[] = []

  constructor(folder: string) {
    this.#database = LmdbStore.open(folder)
    const expiries = new Expiries()
    this.#sessions = new SessionStore({ database: this.#database, expiries, lifetimes: LIFETIMES })
  }

  async open(count: number): Promise<void> {
    const authentication = this.authentication()
    await this.#database.change(change => {
      for (let at = 0; at < count; at++) {
        const [sessionId, session] = [randomBytes(16), sessionInUse(BigInt(at) as UserId, Date.now())]
        this.#sessions.create(change, sessionId, session)
        this.#headers.push(`Bearer ${authentication.tokensOf(sessionId, session).accessToken}`)
      }
    })
  }

  /** One that has seen no token yet. */
  authentication(): Authentication {
    return new Authentication({
      secrets: this.#secrets,
      lifetimes: LIFETIMES,
      sessions: this.#sessions,
      markPairUsed: (sessionId, generation) =>
        this.#database.change(change => this.#sessions.markPairUsed(change, sessionId, generation)),
      nowMs: Date.now,
    })
  }

  /** The mean over one check of each header. */
  checkMicroseconds(authentication: Authentication): number {
    let found = 0n
    const startMs = performance.now()
    for (const header of this.#headers) found += authentication.requesterOf(header).userId
    const microseconds = ((performance.now() - startMs) * 1000) / this.#headers.length
    if (found !== BigInt((this.#headers.length * (this.#headers.length - 1)) / 2))
      throw new Error('other users')
    return microseconds
  }

  close(): Promise<void> {
    return this.#database.close()
  }
}

function macMicroseconds(count: number): number {
  const key = deriveSecrets(randomBytes(32)).accessToken
  const input = randomBytes(MAC_INPUT_BYTES)
  const startMs = performance.now()
  for (let at = 0; at < count; at++) createHmac('sha256', key).update(input).digest()
  return ((performance.now() - startMs) * 1000) / count
}

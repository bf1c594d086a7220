/** Program: has challenges begin, has their time pass, sweeps them away, and says what is left of them. */

import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { Address } from '../../src/domain/accounts/challenge.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { AccountStore } from '../../src/store/accounts/account-store.ts'
import { ChallengeStore } from '../../src/store/accounts/challenge-store.ts'
import { GuessWatch } from '../../src/store/accounts/guess-watch.ts'
import { KnownSignInStore } from '../../src/store/accounts/known-sign-ins.ts'
import { SessionStore } from '../../src/store/accounts/session-store.ts'
import { Database } from '../../src/store/engine/database.ts'
import { Expiries } from '../../src/store/engine/expiries.ts'
import { OutboxStore } from '../../src/store/messages/outbox-store.ts'
import { serveParent } from './program.ts'

export interface ChallengeLifeProtocol {
  readonly setup: { readonly folder: string }
  readonly request: { readonly challenges: number }
  readonly answer: ChallengeLifeFigures
}

export interface ChallengeLifeFigures {
  readonly storeBytes: number
  /** After a collection. */
  readonly heapBytes: number
  readonly residentBytes: number
  /** Of one challenge: from the request to the commit, and from its end to the commit that takes it away. */
  readonly beginMicroseconds: number
  readonly endMicroseconds: number
  /** In all tables. */
  readonly rowsLeft: number
}

serveParent<ChallengeLifeProtocol>(async ({ folder }) => {
  const life = new ChallengeLife(folder)
  return ({ challenges }) => life.live(challenges)
})

class ChallengeLife {
  readonly #folder: string
  readonly #database: Database
  readonly #expiries: Expiries
  readonly #outbox: OutboxStore
  readonly #challenges: ChallengeStore
  #nowMs = Date.UTC(2026, 0, 1)
  #people = 0

  constructor(folder: string) {
    this.#folder = folder
    this.#database = Database.open(folder)
    this.#expiries = new Expiries(this.#database)
    const secrets = deriveSecrets(randomBytes(32))
    this.#outbox = new OutboxStore(this.#database, secrets, randomBytes)
    const accounts = new AccountStore(this.#database)
    const stores = { database: this.#database, expiries: this.#expiries, accounts, secrets }
    const lifetimes = { accessS: 3_600, refreshS: 86_400, sessionS: 86_400 }
    const sessions = new SessionStore({ ...stores, lifetimes })
    this.#challenges = new ChallengeStore({
      ...stores,
      guessWatch: new GuessWatch(stores.expiries),
      knownSignIns: new KnownSignInStore({ ...stores, sessions }),
      outbox: this.#outbox,
      randomBytes,
      testCodes: new Map(),
      canSend: () => true,
    })
  }

  async live(count: number): Promise<ChallengeLifeFigures> {
    const beginMs = await timeOf(() => this.#begin(count))
    await this.#emptyOutbox()
    this.#nowMs += LONGER_THAN_ANY_MS
    const endMs = await timeOf(() => this.#sweep())
    globalThis.gc?.()
    return {
      storeBytes: statSync(join(this.#folder, 'store', 'data.mdb')).size,
      heapBytes: process.memoryUsage().heapUsed,
      residentBytes: process.memoryUsage.rss(),
      beginMicroseconds: (beginMs * 1000) / count,
      endMicroseconds: (endMs * 1000) / count,
      rowsLeft: this.#database
        .tableNames()
        .reduce((rows, name) => rows + this.#database.rowCount(this.#database.storedRows(name)), 0),
    }
  }

  /** Requests that come together are one transaction of LMDB, each a change of its own. */
  async #begin(count: number): Promise<void> {
    for (let left = count; left > 0; left -= AT_ONCE) {
      const commits = Array.from({ length: Math.min(left, AT_ONCE) }, () => {
        const request = {
          purpose: { kind: 'login' },
          address: this.#newAddress(),
          network: 'n',
          language: 'en',
        } as const
        return this.#database.change(change => this.#challenges.begin(change, request), this.#nowMs)
      })
      await Promise.all(commits)
    }
  }

  #newAddress(): Address {
    const key = `person${this.#people++}@bench.example`
    return { kind: 'email', key, shown: key }
  }

  async #emptyOutbox(): Promise<void> {
    const queue = this.#outbox.queue('mail')
    for (;;) {
      const waiting = queue.take(this.#nowMs, AT_ONCE)
      if (waiting.length === 0) return
      await queue.settle(waiting.map(each => ({ waiting: each })))
    }
  }

  async #sweep(): Promise<void> {
    while ((await this.#expiries.sweep(this.#nowMs, SWEPT_AT_ONCE)) > 0);
  }
}

async function timeOf(act: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await act()
  return performance.now() - startMs
}

const AT_ONCE = 64
/** As `src/server/start.ts` does. */
const SWEPT_AT_ONCE = 1_000
/** Counts of an address are kept for a day. */
const LONGER_THAN_ANY_MS = 40 * 86_400_000

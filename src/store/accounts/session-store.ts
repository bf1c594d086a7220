/** The sessions: one row each under its id, found by user too. Rows go when their time is over. */

import type { Session, TokenLifetimes } from '../../domain/accounts/session.ts'
import { expiryOf, lasts, type RevocationReason } from '../../domain/accounts/session.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { SESSIONS_KEPT_MAX } from '../../limits.ts'
import type { Database, Table } from '../engine/database.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { idsKey, rangeOf } from '../engine/keys.ts'
import { WatchedCache } from '../engine/watched-cache.ts'

export interface SessionTables {
  readonly database: Database
  readonly expiries: Expiries
  readonly lifetimes: TokenLifetimes
}

export class SessionStore {
  readonly #database: Database
  readonly #expiries: Expiries
  readonly #lifetimes: TokenLifetimes
  readonly #sessions: Table<Session>
  readonly #byUser: Table<0>
  /** What `current` has read, by `sessionName`. */
  readonly #kept: WatchedCache<string, Session>

  constructor({ database, expiries, lifetimes }: SessionTables) {
    this.#database = database
    this.#expiries = expiries
    this.#lifetimes = lifetimes
    this.#kept = new WatchedCache(database, [{ name: 'sessions' }], sessionName, SESSIONS_KEPT_MAX)
    this.#sessions = database.table('sessions', SESSION_SHAPES)
    this.#byUser = database.table('sessions-by-user')
    expiries.define(EXPIRY.session, (sessionId, nowMs) => this.#expire(sessionId, nowMs))
  }

  /** The session, also one that was revoked lately. */
  read(sessionId: Uint8Array): Session | undefined {
    return this.#sessions.get(sessionId)
  }

  /** The same by its `sessionName`, where what was read before is kept until it changes (`bench/token-check.ts`). */
  current(name: string): Session | undefined {
    return this.#kept.get(name) ?? this.#readCurrent(name)
  }

  /** Ids of the user's sessions, revoked ones among them. */
  idsOf(userId: UserId): Uint8Array[] {
    return [...this.#byUser.getKeys(rangeOf(idsKey(userId)))].map(key => key.subarray(USER_BYTES))
  }

  /** Devices of the user to which a session is bound that nobody has ended. */
  devicesOf(userId: UserId): ReadonlySet<DeviceId> {
    const sessions = this.idsOf(userId).map(id => this.read(id))
    return new Set(sessions.filter(lasts).flatMap(({ deviceId }) => deviceId ?? []))
  }

  /** In a transaction. */
  create(sessionId: Uint8Array, session: Session): void {
    this.#sessions.put(sessionId, session)
    this.#byUser.put(Buffer.concat([idsKey(session.userId), sessionId]), 0)
    this.#expiries.add(EXPIRY.session, expiryOf(session, this.#lifetimes), sessionId)
  }

  /** In a transaction: the session from now on. */
  put(sessionId: Uint8Array, session: Session): void {
    this.#sessions.put(sessionId, session)
  }

  /** In a transaction: binds the session to a device. */
  bind(sessionId: Uint8Array, deviceId: DeviceId): void {
    const session = this.read(sessionId)
    if (session !== undefined) this.put(sessionId, { ...session, deviceId })
  }

  /** In a transaction: the session is gone, its tokens are as good as made up. */
  remove(sessionId: Uint8Array): void {
    const session = this.read(sessionId)
    if (session === undefined) return
    this.#sessions.remove(sessionId)
    if (lasts(session)) this.#sayEnded(session, sessionId)
    this.#byUser.remove(Buffer.concat([idsKey(session.userId), sessionId]))
  }

  /** In a transaction: ends the session so that its tokens hear why, for as long as an access token could live. */
  revoke(sessionId: Uint8Array, reason: RevocationReason, nowMs: number): void {
    const session = this.read(sessionId)
    if (!lasts(session)) return
    const endsAtMs = nowMs + this.#lifetimes.accessS * 1000
    this.put(sessionId, {
      ...session,
      revokedBecause: reason,
      endsAtMs: Math.min(session.endsAtMs, endsAtMs),
    })
    this.#expiries.add(EXPIRY.session, endsAtMs, sessionId)
    if (reason !== 'device_removed') this.#sayEnded(session, sessionId)
  }

  /** Notes that a request has carried an access token of this generation; nobody waits for it. */
  markPairUsed(sessionId: Uint8Array, generation: number): Promise<void> {
    return this.#database.commit(() => {
      const session = this.read(sessionId)
      if (session === undefined || session.generation !== generation || session.isPairUsed) return
      this.put(sessionId, { ...session, isPairUsed: true })
    })
  }

  #sayEnded({ userId }: Session, sessionId: Uint8Array): void {
    this.#database.ambient.happened({ kind: 'session-ended', userId, sessionId })
  }

  /** Apart, because a closure costs its memory also where it is not called. */
  #readCurrent(name: string): Session | undefined {
    return this.#kept.of(name, () => this.read(sessionIdOf(name)))
  }

  #expire(sessionId: Uint8Array, nowMs: number): number | undefined {
    const session = this.read(sessionId)
    if (session === undefined) return undefined
    const endsAtMs = expiryOf(session, this.#lifetimes)
    if (nowMs < endsAtMs) return endsAtMs
    this.remove(sessionId)
    return undefined
  }
}

/** A session's id as a short text, which is kept for each connection and weighs a sixth of its bytes. */
export function sessionName(sessionId: Uint8Array): string {
  return String.fromCharCode(...sessionId)
}

/** The id of a session's name. */
export function sessionIdOf(name: string): Uint8Array {
  return Buffer.from(name, 'latin1')
}

const USER_BYTES = 8
const SHAPE = [
  'userId',
  'generation',
  'rotatedAtMs',
  'isPairUsed',
  'createdAtMs',
  'authenticatedAtMs',
  'lastUsedAtMs',
  'endsAtMs',
  'methods',
  'userAgent',
]
/** Of the table `sessions`: without a device, and bound to one. */
export const SESSION_SHAPES = [SHAPE, [...SHAPE, 'deviceId']]

/** The sessions: one row each under its id, found by user too. Rows go when their time has run out. */

import type { Session, TokenLifetimes } from '../../domain/accounts/session.ts'
import { endingLookedForAtMs, expiryOf, lasts, type RevocationReason } from '../../domain/accounts/session.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { SESSIONS_KEPT_MAX } from '../../limits.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { idsKey, rangeOf } from '../engine/keys.ts'
import type { Change, ReadStore, View } from '../engine/store.ts'
import { WatchedCache } from '../engine/watched-cache.ts'
import type { Webhooks } from '../operators/webhook-store.ts'
import { SESSIONS, SESSIONS_BY_USER } from './account-tables.ts'

export interface SessionTables {
  readonly database: ReadStore
  readonly expiries: Expiries
  readonly lifetimes: TokenLifetimes
  /** Without it, no event is written. */
  readonly webhooks?: Pick<Webhooks, 'add'>
}

export class SessionStore {
  readonly #database: ReadStore
  readonly #expiries: Expiries
  readonly #lifetimes: TokenLifetimes
  readonly #webhooks: SessionTables['webhooks']
  /** Sessions that `current` has read, by `sessionName`. */
  readonly #kept: WatchedCache<string, Session>

  constructor({ database, expiries, lifetimes, webhooks }: SessionTables) {
    this.#database = database
    this.#expiries = expiries
    this.#lifetimes = lifetimes
    this.#webhooks = webhooks
    this.#kept = new WatchedCache(database, [SESSIONS], sessionName, SESSIONS_KEPT_MAX)
    expiries.define(EXPIRY.session, (change, sessionId) => this.#expire(change, sessionId))
  }

  /** The session, also one that was revoked lately. */
  read(view: View, sessionId: Uint8Array): Session | undefined {
    return view.get(SESSIONS, sessionId)
  }

  /** The same by its `sessionName`, from a cache that follows changes (`bench/token-check.ts`). */
  current(name: string): Session | undefined {
    return this.#kept.get(name) ?? this.#readCurrent(name)
  }

  /** Ids of the user's sessions, revoked ones among them. */
  idsOf(view: View, userId: UserId): Uint8Array[] {
    return [...view.keys(SESSIONS_BY_USER, rangeOf(idsKey(userId)))].map(key => key.subarray(USER_BYTES))
  }

  /** Devices of the user that an open session is bound to. */
  devicesOf(view: View, userId: UserId): ReadonlySet<DeviceId> {
    const sessions = this.idsOf(view, userId).map(id => this.read(view, id))
    return new Set(sessions.filter(lasts).flatMap(({ deviceId }) => deviceId ?? []))
  }

  create(change: Change, sessionId: Uint8Array, session: Session): void {
    change.put(SESSIONS, sessionId, session)
    change.put(SESSIONS_BY_USER, Buffer.concat([idsKey(session.userId), sessionId]), 0)
    this.#expiries.add(change, EXPIRY.session, expiryOf(session, this.#lifetimes), sessionId)
    const lookedForAtMs = endingLookedForAtMs(session, session.createdAtMs, this.#lifetimes)
    this.#expiries.add(change, EXPIRY.sessionEnding, lookedForAtMs, sessionId)
    const { userId, deviceId } = session
    this.#webhooks?.add(change, { kind: 'session.started', userId, sessionId, deviceId })
  }

  /** Writes the session. */
  put(change: Change, sessionId: Uint8Array, session: Session): void {
    change.put(SESSIONS, sessionId, session)
  }

  /** Binds the session to a device. */
  bind(change: Change, sessionId: Uint8Array, deviceId: DeviceId): void {
    const session = this.read(change, sessionId)
    if (session !== undefined) this.put(change, sessionId, { ...session, deviceId })
  }

  /** The session is gone, its tokens are as good as made up. */
  remove(change: Change, sessionId: Uint8Array): void {
    const session = this.read(change, sessionId)
    if (session === undefined) return
    change.remove(SESSIONS, sessionId)
    if (lasts(session)) this.#sayEnded(change, session, sessionId)
    change.remove(SESSIONS_BY_USER, Buffer.concat([idsKey(session.userId), sessionId]))
  }

  /** Ends the session so that its tokens hear why, for as long as an access token could live. */
  revoke(change: Change, sessionId: Uint8Array, reason: RevocationReason): void {
    const session = this.read(change, sessionId)
    if (!lasts(session)) return
    const endsAtMs = change.nowMs + this.#lifetimes.accessS * 1000
    this.put(change, sessionId, {
      ...session,
      revokedBecause: reason,
      endsAtMs: Math.min(session.endsAtMs, endsAtMs),
    })
    this.#expiries.add(change, EXPIRY.session, endsAtMs, sessionId)
    if (reason !== 'device_removed') this.#sayEnded(change, session, sessionId)
  }

  /** Notes that a request has carried an access token of this generation. */
  markPairUsed(change: Change, sessionId: Uint8Array, generation: number): void {
    const session = this.read(change, sessionId)
    if (session === undefined || session.generation !== generation || session.isPairUsed) return
    this.put(change, sessionId, { ...session, isPairUsed: true })
  }

  #sayEnded(change: Change, { userId }: Session, sessionId: Uint8Array): void {
    change.happened({ kind: 'session-ended', userId, sessionId })
  }

  /** Apart, because a closure costs its memory also where it is not called. */
  #readCurrent(name: string): Session | undefined {
    return this.#database.view(view => this.#kept.of(name, () => this.read(view, sessionIdOf(name))))
  }

  #expire(change: Change, sessionId: Uint8Array): number | undefined {
    const session = this.read(change, sessionId)
    if (session === undefined) return undefined
    const endsAtMs = expiryOf(session, this.#lifetimes)
    if (change.nowMs < endsAtMs) return endsAtMs
    this.remove(change, sessionId)
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

/** A session's id as clients have it. */
export function sessionIdText(sessionId: Uint8Array): string {
  return Buffer.from(sessionId).toString('base64url')
}

/** The id of such a text; undefined for any other. */
export function parseSessionId(text: string): Uint8Array | undefined {
  const sessionId = Buffer.from(text, 'base64url')
  return sessionId.length === SESSION_ID_BYTES && sessionIdText(sessionId) === text ? sessionId : undefined
}

export const SESSION_ID_BYTES = 16
const USER_BYTES = 8

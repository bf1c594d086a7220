/**
 * Tells the owner of an account of its sessions: of each that begins, on every device and at every address but the one
 * that signed in, and of each that is about to end. A code that was stolen then opens nothing unseen.
 */

import {
  endingLookedForAtMs,
  isEnding,
  lasts,
  type Proof,
  type Session,
  type TokenLifetimes,
} from '../../domain/accounts/session.ts'
import { shownAgent } from '../../domain/accounts/sign-in-place.ts'
import type { MethodId, UserId } from '../../domain/ids.ts'
import type { Letter } from '../../domain/messages/outbox-message.ts'
import type { BucketRate } from '../../domain/token-bucket.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import type { Change } from '../engine/store.ts'
import type { Notices } from '../messages/notices.ts'
import type { RateStore } from '../tables/rate-store.ts'
import type { AccountLetters } from './account-letters.ts'
import { type SessionStore, sessionIdText } from './session-store.ts'

/** A session that has just begun. */
export interface OpenedSession {
  readonly sessionId: Uint8Array
  readonly session: Session
  /** The prefix of the network, where that is known. */
  readonly network: string | undefined
  readonly proof: Proof
  /** The method that signed in. */
  readonly methodId: MethodId | undefined
}

export class SessionNotices {
  readonly #lifetimes: TokenLifetimes
  readonly #rates: RateStore
  readonly #sessions: Pick<SessionStore, 'read'>
  readonly #notices: Notices
  readonly #letters: AccountLetters

  constructor(
    { expiries, lifetimes, rates, sessions }: SessionStores,
    notices: Notices,
    letters: AccountLetters,
  ) {
    this.#lifetimes = lifetimes
    this.#rates = rates
    this.#sessions = sessions
    this.#notices = notices
    this.#letters = letters
    expiries.define(EXPIRY.sessionEnding, (change, sessionId) => this.#onEnding(change, sessionId))
  }

  /** Tells of a session of an account that was there before. */
  onOpened(change: Change, { sessionId, session, network, proof, methodId }: OpenedSession): void {
    const { userId, userAgent } = session
    if (!this.#take(change, userId, STARTS)) return
    const place = { userAgent: shownAgent(userAgent), ...(network === undefined ? {} : { network }) }
    const notice = { sessionId: sessionIdText(sessionId), ...place, proof }
    this.#notices.tell(change, userId, { kind: 'session_started', ...notice })
    const letter = { kind: 'session-started', ...place } as const
    this.#write(change, userId, 'email', letter, methodId)
    this.#write(change, userId, 'phone', letter, methodId)
  }

  /** Goes along with the session: looks again at its end, which is later by then where the session goes on. */
  #onEnding(change: Change, sessionId: Uint8Array): number | undefined {
    const { nowMs } = change
    const session = this.#sessions.read(change, sessionId)
    if (session === undefined) return undefined
    if (!isEnding(session, nowMs)) return endingLookedForAtMs(session, nowMs, this.#lifetimes)
    if (lasts(session)) this.#tellOfEnding(change, sessionId, session)
    return session.endsAtMs
  }

  #tellOfEnding(change: Change, sessionId: Uint8Array, session: Session): void {
    const { userId, deviceId, endsAtMs } = session
    if (deviceId === undefined) {
      const userAgent = shownAgent(session.userAgent)
      this.#write(change, userId, 'email', { kind: 'session-ending', userAgent, endsAtMs })
      return
    }
    const notice = { kind: 'session_ending', sessionId: sessionIdText(sessionId), endsAtMs } as const
    this.#notices.tellOnly(change, userId, notice, deviceId)
  }

  /** To all addresses of a kind but one. */
  #write(
    change: Change,
    userId: UserId,
    kind: 'email' | 'phone',
    letter: Letter,
    exceptMethodId?: MethodId,
  ): void {
    const addresses = this.#letters.addressesOf(change, userId)
    const to = addresses.filter(each => each.kind === kind && each.id !== exceptMethodId)
    if (to.length === 0 || (kind === 'phone' && !this.#take(change, userId, STARTS_BY_SMS))) return
    for (const address of to) this.#letters.tell(change, userId, address, letter)
  }

  /** False where the day's are used up. */
  #take(change: Change, userId: UserId, { name, rate }: DailyBound): boolean {
    const counted = `${name} ${userId}`
    if (this.#rates.longestWait(change, counted, [rate], change.nowMs).missingMs > 0) return false
    this.#rates.take(change, counted, [rate])
    return true
  }
}

interface SessionStores {
  readonly expiries: Expiries
  readonly lifetimes: TokenLifetimes
  readonly rates: RateStore
  readonly sessions: Pick<SessionStore, 'read'>
}

interface DailyBound {
  /** Stores keep it. */
  readonly name: string
  readonly rate: BucketRate
}

const DAY_MS = 86_400_000
/**
 * More than the codes to one address allow. Else the holder of an account at an identity provider, whose tokens cost nothing, could fill
 * mailboxes, and inboxes until their older messages go.
 */
const STARTS: DailyBound = { name: 'session-started', rate: { count: 30, perMs: DAY_MS, burst: 30 } }
/** Each is paid for. */
const STARTS_BY_SMS: DailyBound = { name: 'session-started-sms', rate: { count: 1, perMs: DAY_MS, burst: 1 } }

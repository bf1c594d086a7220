/** The networks and sessions by which users are known again (contract 2.2): one row each, which goes with its user. */

import { createHmac } from 'node:crypto'
import { identifierOf } from '../../domain/accounts/account.ts'
import type { Address } from '../../domain/accounts/challenge.ts'
import {
  type Asker,
  areNoted,
  isKnown,
  type KnownSignIns,
  knownEndMs,
  NOTHING_KNOWN,
  noted,
} from '../../domain/accounts/known-sign-in.ts'
import { lasts } from '../../domain/accounts/session.ts'
import { parseRefreshToken } from '../../domain/accounts/token.ts'
import type { UserId } from '../../domain/ids.ts'
import { type CountedNetwork, countedNetworks, isWide } from '../../domain/network.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { idsKey, userInKey } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import type { AccountStore } from './account-store.ts'
import { KNOWN_SIGN_INS } from './account-tables.ts'
import type { SessionStore } from './session-store.ts'

/** By what a request for a code may be known. */
export interface AskerTraits {
  readonly network: string
  /** As the client sent it: genuine or not, of whichever user. */
  readonly refreshToken?: string | undefined
}

export class KnownSignInStore {
  readonly #expiries: Expiries
  readonly #accounts: Pick<AccountStore, 'ownerOf'>
  readonly #sessions: Pick<SessionStore, 'read'>
  readonly #secrets: Pick<Secrets, 'refreshToken' | 'knownSignIn'>

  constructor(
    expiries: Expiries,
    accounts: Pick<AccountStore, 'ownerOf'>,
    sessions: Pick<SessionStore, 'read'>,
    secrets: Pick<Secrets, 'refreshToken' | 'knownSignIn'>,
  ) {
    this.#expiries = expiries
    this.#accounts = accounts
    this.#sessions = sessions
    this.#secrets = secrets
    expiries.define(EXPIRY.knownSignIn, (change, key) => this.#expire(change, key))
  }

  /** How the account of the address knows the one who asks for a code to it. */
  askerOf(view: View, address: Address, { network, refreshToken }: AskerTraits, nowMs: number): Asker {
    // Without an account it is the same work, so that the time of an answer does not tell who is here.
    const userId = this.#accounts.ownerOf(view, identifierOf(address))?.userId ?? NOBODY
    const known = this.#read(view, userId)
    if (refreshToken !== undefined && this.#isToken(view, { userId, known }, refreshToken, nowMs))
      return 'token'
    const isHome = isKnown(known.networks, this.#digest(userId, 'network', network), nowMs)
    return isHome ? 'network' : 'stranger'
  }

  /** Whether the account of the address has signed in from within the prefix, which then does not slow requests for it. */
  knowsPrefix(view: View, address: Address, prefix: CountedNetwork, nowMs: number): boolean {
    const userId = this.#accounts.ownerOf(view, identifierOf(address))?.userId ?? NOBODY
    return this.isPrefixOf(view, userId, prefix, nowMs)
  }

  /** Whether the user has signed in from within the prefix. */
  isPrefixOf(view: View, userId: UserId, { name }: CountedNetwork, nowMs: number): boolean {
    return isKnown(this.#read(view, userId).prefixes, this.#digest(userId, 'prefix', name), nowMs)
  }

  /** The user has proven who they are, from this network and in this session. */
  note(change: Change, userId: UserId, network: string, sessionId: Uint8Array): void {
    const { nowMs } = change
    const before = this.#read(change, userId)
    const places = {
      networks: [this.#digest(userId, 'network', network)],
      prefixes: countedNetworks(network)
        .filter(isWide)
        .map(({ name }) => this.#digest(userId, 'prefix', name)),
      sessions: [this.#digest(userId, 'session', sessionId)],
    }
    const areAllNoted = KINDS.every(kind => areNoted(before[kind], places[kind], nowMs))
    if (areAllNoted) return
    const key = idsKey(userId)
    const after = {
      networks: noted(before.networks, places.networks, nowMs),
      prefixes: noted(before.prefixes, places.prefixes, nowMs),
      sessions: noted(before.sessions, places.sessions, nowMs),
    }
    if (!change.has(KNOWN_SIGN_INS, key))
      this.#expiries.add(change, EXPIRY.knownSignIn, knownEndMs(after), key)
    change.put(KNOWN_SIGN_INS, key, after)
  }

  /** Nothing of the user remains here. */
  eraseOf(change: Change, userId: UserId): void {
    change.remove(KNOWN_SIGN_INS, idsKey(userId))
  }

  #read(view: View, userId: UserId): KnownSignIns {
    return view.get(KNOWN_SIGN_INS, idsKey(userId)) ?? NOTHING_KNOWN
  }

  /** A session may be over: an app that was signed out holds its last token still. One that was taken back is not known. */
  #isToken(
    view: View,
    { userId, known }: { readonly userId: UserId; readonly known: KnownSignIns },
    text: string,
    nowMs: number,
  ): boolean {
    const token = parseRefreshToken(this.#secrets.refreshToken, text)
    if (token === undefined) return false
    const session = this.#sessions.read(view, token.sessionId)
    if (session !== undefined) return session.userId === userId && lasts(session)
    return isKnown(known.sessions, this.#digest(userId, 'session', token.sessionId), nowMs)
  }

  /** For one user alone: that two users share a network does not show. */
  #digest(userId: UserId, kind: 'network' | 'prefix' | 'session', place: string | Uint8Array): Uint8Array {
    const hmac = createHmac('sha256', this.#secrets.knownSignIn).update(`${kind} ${userId} `).update(place)
    return hmac.digest().subarray(0, DIGEST_BYTES)
  }

  #expire(change: Change, key: Uint8Array): number | undefined {
    const endMs = knownEndMs(this.#read(change, userInKey(key)))
    if (change.nowMs < endMs) return endMs
    change.remove(KNOWN_SIGN_INS, key)
    return undefined
  }
}

const KINDS = ['networks', 'prefixes', 'sessions'] as const
const NOBODY = 0n as UserId
const DIGEST_BYTES = 16

/**
 * What follows a proof of who somebody is, whichever it was: an account for a newcomer, a session, the reply with its
 * tokens. An account is made here and nowhere else, so an address that nobody has proven never has one.
 */

import { DEFAULT_SETTINGS, type LoginMethod } from '../../domain/accounts/account.ts'
import type { Address, SocialIdentity } from '../../domain/accounts/challenge.ts'
import { lasts, type Proof, type Session } from '../../domain/accounts/session.ts'
import { networkPrefix } from '../../domain/accounts/sign-in-place.ts'
import { type MethodId, newId, type UserId } from '../../domain/ids.ts'
import { assertNotSuspended } from '../../domain/operators/suspension.ts'
import { assert } from '../../errors.ts'
import { SESSION_ID_BYTES } from '../../store/accounts/session-store.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import type { OperationRequest } from '../table/operation.ts'
import { userView } from './user-view.ts'

type Deps = Pick<
  ApiDeps,
  | 'accounts'
  | 'authentication'
  | 'badgeOf'
  | 'devices'
  | 'erasure'
  | 'knownSignIns'
  | 'lifetimes'
  | 'randomBytes'
  | 'restrictions'
  | 'sessionNetworks'
  | 'sessionNotices'
  | 'sessions'
>

/** The parts of a request that signing in looks at. */
export type SignInRequest = Pick<
  OperationRequest<unknown, unknown, 'public'>,
  'network' | 'acceptLanguage' | 'userAgent' | 'nowMs'
>

export interface ProvenUser {
  readonly userId: UserId
  readonly isNewUser: boolean
  readonly proof: Proof
  /** The method that proved it, which needs no letter; absent for a new user. */
  readonly methodId?: MethodId | undefined
  /** As `Session` has it. */
  readonly isUnanswered?: true
}

export class SignIns {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** A new account with its first login method, which no other account has. */
  newUser(
    change: Change,
    displayName: string,
    proven: Address | SocialIdentity,
    request: SignInRequest,
  ): UserId {
    const { accounts, randomBytes } = this.#deps
    const userId = newId(randomBytes) as UserId
    assert(accounts.read(change, userId) === undefined, "a new id is nobody else's")
    const { nowMs, acceptLanguage } = request
    const id = newId(randomBytes) as MethodId
    const method: LoginMethod = { ...proven, id, addedAtMs: nowMs, lastUsedAtMs: nowMs }
    accounts.put(change, userId, {
      displayName,
      createdAtMs: nowMs,
      settings: DEFAULT_SETTINGS,
      primaryMethodId: method.id,
      acceptLanguage,
    })
    accounts.putMethod(change, userId, method)
    return userId
  }

  /**
   * A session for a user who has proven who they are, as the reply that signs in. It keeps an account from erasure, and
   * the user's devices and other addresses hear of it. Throws `ACCOUNT_SUSPENDED`.
   */
  open(
    change: Change,
    { userId, isNewUser, proof, methodId, isUnanswered }: ProvenUser,
    { network, nowMs, userAgent }: SignInRequest,
  ): { readonly reply: object; readonly sessionId: Uint8Array } {
    const { sessions, sessionNetworks, sessionNotices, knownSignIns } = this.#deps
    const { accounts, erasure, lifetimes, randomBytes } = this.#deps
    assertNotSuspended(accounts.read(change, userId), change.nowMs)
    erasure.restore(change, userId)
    this.#makeRoom(change, userId)
    const sessionId = randomBytes(SESSION_ID_BYTES)
    const session: Session = {
      userId,
      generation: 1,
      rotatedAtMs: nowMs,
      isPairUsed: false,
      createdAtMs: nowMs,
      lastUsedAtMs: nowMs,
      endsAtMs: nowMs + lifetimes.sessionS * 1000,
      methods: [proof],
      // A stolen code opens no such session.
      ...(proof === 'passkey' && { provenAtMs: nowMs }),
      userAgent,
      ...(isUnanswered && { isUnanswered }),
      ...sessionNetworks.memberOf(network),
    }
    sessions.create(change, sessionId, session)
    knownSignIns.note(change, userId, network, sessionId)
    const opened = { sessionId, session, network: networkPrefix(network), proof, methodId }
    if (!isNewUser) sessionNotices.onOpened(change, opened)
    return { reply: this.#replyOf(change, sessionId, session, isNewUser), sessionId }
  }

  /** The reply of a session that is not in use yet, once more: the first one may be lost. Undefined for any other. */
  reopened(view: View, sessionId: Uint8Array, isNewUser: boolean): object | undefined {
    const session = this.#deps.sessions.read(view, sessionId)
    if (!lasts(session) || session.generation > 1 || session.isPairUsed) return undefined
    return this.#replyOf(view, sessionId, session, isNewUser)
  }

  /** Ends the session that was unused longest where there are as many as there may be, one without a device first. */
  #makeRoom(change: Change, userId: UserId): void {
    const { sessions } = this.#deps
    const lasting = sessions.idsOf(change, userId).flatMap(id => {
      const session = sessions.read(change, id)
      return lasts(session) ? [{ id, session }] : []
    })
    if (lasting.length < SESSIONS_MAX) return
    const withoutDevice = lasting.filter(({ session }) => session.deviceId === undefined)
    const [oldest] = (withoutDevice.length > 0 ? withoutDevice : lasting).toSorted(
      (one, other) => one.session.lastUsedAtMs - other.session.lastUsedAtMs,
    )
    sessions.revoke(change, oldest!.id, 'replaced')
  }

  #replyOf(view: View, sessionId: Uint8Array, session: Session, isNewUser: boolean): object {
    const tokens = this.#deps.authentication.tokensOf(sessionId, session)
    const user = userView(view, this.#deps, session.userId, undefined)
    return { verified: true, ...tokens, isNewUser, user }
  }
}

/** A user's sessions: `GET user/sessions` has no pages. */
const SESSIONS_MAX = 100

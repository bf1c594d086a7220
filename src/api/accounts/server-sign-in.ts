/**
 * Signing in by a token of the operator's backend (operators.md section 2): once, within its minute, and only users whom the
 * backend has made and who have no login method of their own. It is as good as a code, and proves no more: it waits where a device
 * of the device list can be asked, and its session has no fresh proof.
 */

import { createHash } from 'node:crypto'
import type { Static } from 'typebox'
import type { User } from '../../domain/accounts/account.ts'
import { parseSignInToken } from '../../domain/accounts/token.ts'
import type { UserId } from '../../domain/ids.ts'
import { assertNotSuspended } from '../../domain/operators/suspension.ts'
import { SignalError } from '../../errors.ts'
import type { LoginRequest } from '../../schema/account.ts'
import type { AccountStore } from '../../store/accounts/account-store.ts'
import type { NamedSignIn } from '../../store/accounts/waiting-sign-ins.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { beginWait, type Entered, type Entry, isKnownDevice, type RightCodeDeps } from './right-codes.ts'
import type { SignInRequest } from './sign-ins.ts'

type Deps = RightCodeDeps & Pick<ApiDeps, 'database' | 'identityTokens'>

interface TokenSignIn extends Pick<Static<typeof LoginRequest>, 'device' | 'locale'> {
  readonly signInToken: string
  /** The `Idempotency-Key`, by which a retry gets the first outcome. */
  readonly attempt: string | undefined
}

/** Rejects with `SIGN_IN_TOKEN_INVALID`, `ACCOUNT_SUSPENDED` or `USER_OWNS_SIGN_IN`. */
export async function signInByToken(deps: Deps, asked: TokenSignIn, request: SignInRequest): Promise<Entry> {
  const { database, identityTokens, secrets } = deps
  const { signInToken, attempt } = asked
  const token = parseSignInToken(secrets.signInToken, signInToken)
  if (token === undefined || request.nowMs >= token.expiresAtMs) throw refused()
  const use = { tokenDigest: digestOf(signInToken).toString('hex'), attempt }
  return database.change(change => {
    const earlier = identityTokens.find(change, use)
    if (earlier?.outcome !== undefined) return earlier.outcome as Entry
    if (earlier !== undefined) throw refused()
    const entry = enter(change, deps, token.userId, asked, request)
    identityTokens.keep(change, use, entry, token.expiresAtMs)
    return entry
  }, request.nowMs)
}

/** The session that the wait of a token has come to; undefined where the account is gone, or its user has a login method since. */
export function enterMadeAfterWait(
  change: Change,
  deps: RightCodeDeps,
  named: NamedSignIn,
  request: SignInRequest,
): Entry | undefined {
  const { userId, language } = named.signIn
  if (deps.accounts.read(change, userId)?.isMadeByServer !== true) return undefined
  const { reply, sessionId } = open(change, deps, userId, language, request)
  deps.waitingSignIns.open(change, named, sessionId)
  return { kind: 'signed-in', reply }
}

/** A listed device signs it to show that it is one: 16 octets that only the holder of the token can name. */
function challengeOfToken(signInToken: string): string {
  return digestOf(signInToken).subarray(0, CHALLENGE_BYTES).toString('base64url')
}

function enter(
  change: Change,
  deps: Deps,
  userId: UserId,
  { signInToken, device, locale }: TokenSignIn,
  request: SignInRequest,
): Entry {
  const { waitingSignIns } = deps
  const { displayName } = madeUser(change, deps.accounts, userId, change.nowMs)
  const language = locale ?? request.acceptLanguage
  const challengeId = challengeOfToken(signInToken)
  if (device !== undefined && isKnownDevice(change, deps, userId, { device, challengeId })) {
    waitingSignIns.takeBackRefusal(change, userId)
    return { kind: 'signed-in', reply: open(change, deps, userId, language, request).reply }
  }
  const effect = waitingSignIns.effectOfToken(change, userId, change.nowMs)
  switch (effect.kind) {
    case 'open':
      return { kind: 'signed-in', reply: open(change, deps, userId, language, request).reply }
    case 'refused':
      return { kind: 'held', untilMs: effect.untilMs, isAccount: true }
    case 'wait':
      return beginWait(change, deps, { userId, displayName, language, opens: effect.opens }, request)
  }
}

/** Throws where the backend may not sign the user in, or not now. */
export function madeUser(
  view: View,
  accounts: Pick<AccountStore, 'read'>,
  userId: UserId,
  nowMs: number,
): User {
  const user = accounts.read(view, userId)
  if (user === undefined) throw refused()
  assertNotSuspended(user, nowMs)
  if (user.isMadeByServer === true) return user
  throw new SignalError('USER_OWNS_SIGN_IN', 'the user has a login method of their own: they sign in by that')
}

function open(
  change: Change,
  { accounts, signIns }: RightCodeDeps,
  userId: UserId,
  language: string,
  request: SignInRequest,
): Entered {
  const entered = signIns.open(change, { userId, isNewUser: false, proof: 'server' }, request)
  const user = accounts.read(change, userId)
  if (user !== undefined && language !== '')
    accounts.put(change, userId, { ...user, acceptLanguage: language })
  return entered
}

function digestOf(signInToken: string): Buffer {
  return createHash('sha256').update(signInToken).digest()
}

function refused(): SignalError {
  return new SignalError(
    'SIGN_IN_TOKEN_INVALID',
    'the sign-in token is not one, was used, or is over a minute old',
  )
}

const CHALLENGE_BYTES = 16

/**
 * Signing in by a one-time code (contract 2.2, 2.4): `login` sends one, `resend-otp` sends a new one, `verify-login`
 * takes it. Signing in and signing up are one thing, and every address is answered and sent to alike, so nobody learns
 * who is here. The account of a newcomer is made when the code is accepted, not before.
 */

import type { Static } from 'typebox'
import type { ChallengePurpose } from '../../domain/accounts/challenge.ts'
import { parseSignInToken } from '../../domain/accounts/token.ts'
import type { CountedNetwork } from '../../domain/network.ts'
import { SignalError } from '../../errors.ts'
import {
  LoginChallenge,
  LoginReply,
  LoginRequest,
  ResendOtpRequest,
  SignedIn,
  VerifyLoginRequest,
} from '../../schema/account.ts'
import { invalidMember } from '../../schema/check.ts'
import { type Confirmation, refusalOf } from '../../store/accounts/challenge-store.ts'
import type { Change } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import {
  type Operation,
  type OperationRequest,
  operationWithBody,
  type RateRule,
  type Reply,
} from '../table/operation.ts'
import { type NamedAddress, readDisplayName } from './addresses.ts'
import { type Entry, enter, type RightCodeDeps, refusedRefusal, waitingRefusal } from './right-codes.ts'
import { signInByToken } from './server-sign-in.ts'
import type { SignInRequest } from './sign-ins.ts'
import { SOCIAL_CODES, type SocialSignIn } from './social-sign-in.ts'

export type SignInDeps = RightCodeDeps &
  Pick<ApiDeps, 'challenges' | 'database' | 'identityTokens' | 'knownSignIns'> & {
    /** Signs in by what an identity provider says. */
    readonly social: Pick<SocialSignIn, 'signIn'>
  }

type CheckedLogin = OperationRequest<Static<typeof LoginRequest>, undefined, 'public'>
type CheckedResend = OperationRequest<Static<typeof ResendOtpRequest>, undefined, 'public'>
type VerifyBody = Static<typeof VerifyLoginRequest>

/** Shared by `login` and `resend-otp` (contract 8). */
const LOGIN_RATES: readonly RateRule[] = [
  { name: 'login', by: 'address' },
  { name: 'login-day', by: 'address' },
]
/** Shared by `verify-login` and `verify` (contract 8). */
export const VERIFY_RATE: RateRule = { name: 'verify', by: 'address' }
const BEGIN_CODES = ['BLOCKED_COUNTRY', 'RATE_LIMITED'] as const
/** Refusals of signing in by a token of the operator's backend. */
const TOKEN_CODES = [
  'SIGN_IN_TOKEN_INVALID',
  'USER_OWNS_SIGN_IN',
  'SIGN_IN_WAITING',
  'SIGN_IN_REFUSED',
] as const
/** Refusals of `verifyLogin` beyond a malformed body. */
export const VERIFY_LOGIN_CODES = [
  'OTP_INVALID',
  'OTP_EXPIRED',
  'CHALLENGE_GONE',
  'RATE_LIMITED',
  'BLOCKED_COUNTRY',
  'SIGN_IN_WAITING',
  'SIGN_IN_REFUSED',
  'ACCOUNT_SUSPENDED',
] as const

export const SIGN_IN: readonly Operation<SignInDeps>[] = [
  operationWithBody(LoginRequest, {
    id: 'login',
    method: 'POST',
    path: '/app/api/login',
    tag: 'sign-in',
    summary: 'Signs in or up: sends a code to an address, or takes a token of a provider or of your backend',
    access: 'public',
    replies: { 200: LoginReply },
    codes: [...BEGIN_CODES, ...SOCIAL_CODES, ...TOKEN_CODES],
    rates: LOGIN_RATES,
    // By the address alone that gets a code, whatever members the body has besides.
    isPrefixKnown: (deps: SignInDeps, body, ...prefix) =>
      body.verified === true
        ? body.signInToken !== undefined && isGenuine(deps, body.signInToken)
        : isPrefixKnown(deps, { ...body, challengeId: undefined }, ...prefix),
    readsIdempotencyKey: true,
    handle: (deps: SignInDeps, request) => login(deps, request),
  }),
  operationWithBody(ResendOtpRequest, {
    id: 'resendOtp',
    method: 'POST',
    path: '/app/api/resend-otp',
    tag: 'sign-in',
    summary: 'Sends another code in the place of the last one',
    access: 'public',
    replies: { 200: LoginChallenge },
    codes: ['CHALLENGE_GONE', 'OTP_COOLDOWN', 'RATE_LIMITED', 'DELIVERY_UNAVAILABLE'],
    rates: LOGIN_RATES,
    isPrefixKnown,
    handle: (deps: SignInDeps, request) => resend(deps, request),
  }),
  operationWithBody(VerifyLoginRequest, {
    id: 'verifyLogin',
    method: 'POST',
    path: '/app/api/verify-login',
    tag: 'sign-in',
    summary: 'Takes the code and signs in',
    access: 'public',
    replies: { 200: SignedIn },
    codes: VERIFY_LOGIN_CODES,
    rates: [VERIFY_RATE],
    isPrefixKnown,
    handle: (deps: SignInDeps, request) => verifyLogin(deps, request.body, request),
  }),
]

/**
 * Signs in by a code: `verify-login`, and `verify` without a session. Rejects with `OTP_INVALID`, `OTP_EXPIRED`,
 * `CHALLENGE_GONE`, `RATE_LIMITED`, `VALIDATION_FAILED`, `BLOCKED_COUNTRY`, `SIGN_IN_WAITING`, `SIGN_IN_REFUSED`.
 */
export async function verifyLogin(
  deps: SignInDeps,
  body: VerifyBody,
  request: SignInRequest,
): Promise<Reply> {
  const attempt = readAttempt(deps, body, request.network)
  // One change: a code that was accepted is never without the session that it opened, or the wait.
  const entry = await deps.database.change((change): Entry => {
    const confirmation = attempt(change)
    return confirmation.kind === 'refused' ? confirmation : enter(change, deps, confirmation, body, request)
  }, request.nowMs)
  return replyOf(entry)
}

/** The answer to a client with a right code. Throws the reason why it is not in. */
export function replyOf(entry: Entry): Reply {
  switch (entry.kind) {
    case 'signed-in':
      return { status: 200, body: entry.reply }
    case 'waiting':
      throw waitingRefusal(entry.waitingId, entry.named)
    case 'held':
      throw refusedRefusal(entry)
    case 'gone':
      throw new SignalError(
        'SIGN_IN_GONE',
        'this sign-in is over, or another one took its place: begin again',
      )
    case 'refused':
      throw refusalOf(entry)
  }
}

async function login(deps: SignInDeps, request: CheckedLogin): Promise<Reply> {
  const { body, network, acceptLanguage } = request
  if (body.verified === true) {
    const { signInToken } = body
    if (signInToken !== undefined)
      return replyOf(
        await signInByToken(deps, { ...body, signInToken, attempt: request.idempotencyKey }, request),
      )
    return deps.social.signIn({ ...body, attempt: request.idempotencyKey }, request)
  }
  const address = deps.addresses.readNamed(body)
  const displayName = readDisplayName(body.displayName)
  const purpose: ChallengePurpose = { kind: 'login', ...(displayName === undefined ? {} : { displayName }) }
  const language = body.locale ?? acceptLanguage
  const { refreshToken, attestation } = body
  const challengeRequest = { purpose, address, network, language, refreshToken, attestation }
  return request.commit(change => ({
    status: 200,
    body: { verified: false, ...deps.challenges.begin(change, challengeRequest) },
  }))
}

function resend({ challenges }: SignInDeps, { body, network, commit }: CheckedResend): Promise<Reply> {
  return commit(change => ({
    status: 200,
    body: { verified: false, ...challenges.resend(change, { ...body, network }) },
  }))
}

/** Whether the account of the address that is named, or of the challenge, has signed in from within the prefix. */
export function isPrefixKnown(
  { addresses, challenges, database, knownSignIns }: SignInDeps,
  { challengeId, ...named }: NamedAddress & { readonly challengeId?: string | undefined },
  prefix: CountedNetwork,
  nowMs: number,
): boolean {
  return database.view(view => {
    const address =
      challengeId === undefined ? addresses.readNamed(named) : challenges.addressOf(view, challengeId, nowMs)
    return address !== undefined && knownSignIns.knowsPrefix(view, address, prefix, nowMs)
  })
}

/** Only the server makes such tokens, for users whom the backend made: a stranger can't use up a user's rate. */
function isGenuine({ secrets }: SignInDeps, signInToken: string): boolean {
  return parseSignInToken(secrets.signInToken, signInToken) !== undefined
}

/** The attempt to make in the change: a challenge, or a login of the address that is named instead. */
function readAttempt(
  { challenges, addresses }: SignInDeps,
  body: VerifyBody,
  network: string,
): (change: Change) => Confirmation {
  const otp = body.otp ?? body.code
  if (otp === undefined) throw invalidMember('/otp', 'REQUIRED', 'is the code that was sent')
  const { challengeId } = body
  if (challengeId === undefined) {
    const address = addresses.readNamed(body)
    return change => challenges.confirmLogin(change, address, otp, network)
  }
  return change => challenges.confirm(change, { challengeId, otp, mayConfirm: isLogin })
}

function isLogin({ kind }: ChallengePurpose): boolean {
  return kind === 'login' || kind === 'link'
}

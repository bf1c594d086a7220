/**
 * Proofs after the sign-in of who a user is (contract 0.1, "2.9, 2.10"): `POST user/step-up` takes them, and `verify` takes codes.
 * `step-up.ts` refuses requests without one.
 */

import type { Static } from 'typebox'
import { sha256 } from '#primitives'
import { addressIdentifier, identifierOf, socialIdentifier } from '../../domain/accounts/account.ts'
import type { Address } from '../../domain/accounts/challenge.ts'
import { withProof } from '../../domain/accounts/session.ts'
import type { UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import { stepUpMessage } from '../../log/signing-messages.ts'
import { invalidMember } from '../../schema/check.ts'
import { StepUpChallenge, StepUpReply, StepUpRequest } from '../../schema/step-up.ts'
import { timeText } from '../../schema/time.ts'
import { type RefusedAttempt, refusalOf } from '../../store/accounts/challenge-store.ts'
import { sessionIdOf } from '../../store/accounts/session-store.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { type OperationRequest, operationWithBody, type Reply } from '../table/operation.ts'
import { assertLasts, type Requester } from './authentication.ts'
import { PASSKEY_CODES, useOf } from './passkeys.ts'
import { isSignedByListed } from './right-codes.ts'
import { VERIFY_RATE } from './sign-in.ts'
import { tokenUsed, type VerifiedToken } from './social-identities.ts'
import { freshForS, sendCode } from './step-up.ts'

type ProofDeps = Pick<ApiDeps, 'deviceLists' | 'devices' | 'loginMethods' | 'sessions'>

type Deps = ProofDeps &
  Pick<
    ApiDeps,
    'accounts' | 'challenges' | 'database' | 'identities' | 'identityTokens' | 'passkeys' | 'stepUpSeconds'
  >

type Body = Static<typeof StepUpRequest>
type CheckedStepUp = OperationRequest<Body, undefined, 'restricted'>

/** The proof in a request. */
interface GivenProof {
  /** A listed device signs its SHA-256. */
  readonly text: string
  /** Takes it, in the change that notes it, or returns a refusal that was counted. Throws any other refusal. */
  readonly accept: (change: Change) => RefusedAttempt | undefined
}

export const stepUp = operationWithBody(StepUpRequest, {
  id: 'stepUp',
  method: 'POST',
  path: '/app/api/user/step-up',
  tag: 'user',
  summary: 'Prove once more who one is: by a code, a passkey or a provider; or have a code sent',
  // Where no device of the list is left, a device that it does not name starts over.
  access: 'restricted',
  replies: { 200: StepUpReply, 202: StepUpChallenge },
  codes: [
    'OTP_INVALID',
    'OTP_EXPIRED',
    'CHALLENGE_GONE',
    'RATE_LIMITED',
    'DELIVERY_UNAVAILABLE',
    'PROVIDER_TOKEN_REQUIRED',
    'PROVIDER_TOKEN_INVALID',
    'PROVIDER_UNAVAILABLE',
    ...PASSKEY_CODES,
    'PASSKEY_UNKNOWN',
  ],
  rates: [VERIFY_RATE],
  handle: async (deps: Deps, request) => {
    const way = wayOf(request.body)
    return way === 'send' ? sent(deps, request) : take(deps, request, await givenProof(deps, request, way))
  },
})

/** The one way that a request goes. */
function wayOf(body: Body): keyof typeof FIRST_MEMBERS {
  const named = WAYS.filter(way => body[FIRST_MEMBERS[way]] !== undefined)
  const [way] = named
  if (way !== undefined && named.length === 1) return way
  const members = Object.values(FIRST_MEMBERS).join('`, `')
  throw invalidMember('', 'ONE_OF', `must have exactly one of \`${members}\``)
}

function sent(deps: Deps, request: CheckedStepUp): Promise<Reply> {
  return request.commit(change => {
    const challenge = sendCode(change, deps, request)
    if (challenge !== undefined) return { status: 202, body: { challenge } }
    throw invalidMember('/send', 'NO_ADDRESS', 'takes an address among the login methods, and there is none')
  })
}

async function take(
  deps: Deps,
  { requester, body, nowMs }: CheckedStepUp,
  proof: GivenProof,
): Promise<Reply> {
  const refused = await deps.database.change(change => {
    const isSigned = signedByListed(change, deps, requester, { ...body, text: proof.text })
    const refusal = proof.accept(change)
    if (refusal === undefined) noteProof(change, deps, requester, isSigned)
    return refusal
  }, nowMs)
  if (refused !== undefined) throw refusalOf(refused)
  return { status: 200, body: { provenUntil: timeText(nowMs + freshForS(deps) * 1000) } }
}

async function givenProof(
  deps: Deps,
  { requester, body }: CheckedStepUp,
  way: 'code' | 'passkey' | 'provider',
): Promise<GivenProof> {
  const { userId } = requester
  if (way === 'code') {
    const { challengeId = '', otp } = body
    if (otp === undefined) throw invalidMember('/otp', 'REQUIRED', 'is the code that was sent')
    return { text: challengeId, accept: change => acceptCode(change, deps, userId, { challengeId, otp }) }
  }
  if (body.passkey !== undefined) {
    const judged = await deps.passkeys.judge(body.passkey, useOf('step-up', requester))
    return {
      text: judged.challenge,
      accept(change) {
        deps.passkeys.accept(change, judged, userId)
        return undefined
      },
    }
  }
  // Before the change: the provider's keys may have to be fetched.
  const token = await deps.identities.verify(body)
  return {
    text: body.idToken ?? '',
    accept: change => acceptToken(change, deps, requester, token),
  }
}

function acceptCode(
  change: Change,
  deps: Deps,
  userId: UserId,
  attempt: { readonly challengeId: string; readonly otp: string },
): RefusedAttempt | undefined {
  const confirmation = deps.challenges.confirm(change, {
    ...attempt,
    mayConfirm: purpose => purpose.kind === 'step-up' && purpose.userId === userId,
  })
  if (confirmation.kind === 'refused') return confirmation
  return refusalOfAddress(change, deps, userId, confirmation.address)
}

/** To read the mail of a removed address proves nothing. */
export function refusalOfAddress(
  view: View,
  { loginMethods }: Pick<ApiDeps, 'loginMethods'>,
  userId: UserId,
  { kind, key }: Address,
): RefusedAttempt | undefined {
  const identifier = addressIdentifier(kind, key)
  const isHeld = loginMethods.held(view, userId).methods.some(method => identifierOf(method) === identifier)
  return isHeld ? undefined : { kind: 'refused', code: 'CHALLENGE_GONE' }
}

function acceptToken(
  change: Change,
  { accounts, identityTokens }: Deps,
  { userId, session }: Requester,
  { tokenDigest, issuer, subject, issuedAtMs, expiresAtMs }: VerifiedToken,
): undefined {
  const use = { tokenDigest, attempt: undefined }
  if (identityTokens.find(change, use) !== undefined) throw tokenUsed()
  if (accounts.ownerOf(change, socialIdentifier(issuer, subject))?.userId !== userId)
    throw new SignalError('PROVIDER_TOKEN_INVALID', 'the identity is no login method of this account')
  if (issuedAtMs < session.createdAtMs - CLOCKS_APART_MS)
    throw new SignalError('PROVIDER_TOKEN_INVALID', 'the identity token is older than the session')
  identityTokens.keep(change, use, undefined, expiresAtMs)
}

/**
 * Whether a device of the list signed the proof: its own session's has to. Throws `VALIDATION_FAILED` where it did not, before
 * anything is counted.
 */
export function signedByListed(
  view: View,
  deps: Pick<ApiDeps, 'deviceLists' | 'devices'>,
  { userId, deviceId }: Requester,
  { text, deviceSignature }: { readonly text: string; readonly deviceSignature?: string | undefined },
): boolean {
  if (deviceId === undefined || !deps.deviceLists.names(view, { userId, deviceId })) return false
  if (deviceSignature === undefined)
    throw invalidMember('/deviceSignature', 'REQUIRED', 'is needed from a device of the device list')
  const message = stepUpMessage(userId, sha256(Buffer.from(text)))
  if (isSignedByListed(view, deps, { userId, deviceId }, message, deviceSignature)) return true
  throw invalidMember('/deviceSignature', 'SIGNATURE', 'is not a signature of this proof by this device')
}

/** Throws where the session has ended since the request came. */
export function noteProof(
  change: Change,
  { sessions }: Pick<ApiDeps, 'sessions'>,
  { sessionName }: Requester,
  isSigned: boolean,
): void {
  const sessionId = sessionIdOf(sessionName)
  const session = sessions.read(change, sessionId)
  assertLasts(session)
  sessions.put(change, sessionId, withProof(session, { nowMs: change.nowMs, isSigned }))
}

/** By the member that a request of each way has. */
const FIRST_MEMBERS = {
  code: 'challengeId',
  passkey: 'passkey',
  provider: 'provider',
  send: 'send',
} as const
const WAYS = Object.keys(FIRST_MEMBERS) as (keyof typeof FIRST_MEMBERS)[]
const CLOCKS_APART_MS = 60_000

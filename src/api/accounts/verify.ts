/**
 * `verify` (contract 2.4): confirms a challenge that is no login, but a new address, or who the user is. It belongs to
 * the user who began it; to everybody else, and to a restricted session that would bind an address, it looks as if there
 * were none. Without a session it is `verify-login`.
 */

import type { Static } from 'typebox'
import Type from 'typebox'
import type { ChallengePurpose } from '../../domain/accounts/challenge.ts'
import type { UserId } from '../../domain/ids.ts'
import { SignedIn } from '../../schema/account.ts'
import { invalidMember } from '../../schema/check.ts'
import { VerifyReply, VerifyRequest } from '../../schema/profile.ts'
import { type Confirmed, type RefusedAttempt, refusalOf } from '../../store/accounts/challenge-store.ts'
import { sessionIdOf } from '../../store/accounts/session-store.ts'
import type { Change } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { type OperationRequest, operationWithBody, type Reply } from '../table/operation.ts'
import type { Requester } from './authentication.ts'
import { noteProof, refusalOfAddress, signedByListed } from './fresh-proofs.ts'
import { type MethodRefusal, refusalOfMethod } from './login-methods.ts'
import { isPrefixKnown, type SignInDeps, VERIFY_LOGIN_CODES, VERIFY_RATE, verifyLogin } from './sign-in.ts'
import { userView } from './user-view.ts'

type Deps = Pick<ApiDeps, 'badgeOf' | 'devices' | 'restrictions' | 'sessions'> & SignInDeps

type VerifyBody = Static<typeof VerifyRequest>
type CheckedVerify = Pick<OperationRequest<VerifyBody, undefined, 'optional'>, 'body' | 'nowMs'>

/** The outcome of an attempt; refusals were counted, so they are thrown after the change, not in it. */
type Outcome = RefusedAttempt | MethodRefusal | { readonly kind: 'done'; readonly body: object }

export const verifyChallenge = operationWithBody(VerifyRequest, {
  id: 'verify',
  method: 'POST',
  path: '/app/api/verify',
  tag: 'user',
  summary: 'Confirm a new address, or who one is; without a session, sign in',
  access: 'optional',
  replies: { 200: Type.Union([VerifyReply, SignedIn]) },
  codes: [...VERIFY_LOGIN_CODES, 'LOGIN_METHOD_LIMIT'],
  rates: [VERIFY_RATE],
  isPrefixKnown,
  handle: (deps: Deps, request) =>
    request.requester === undefined
      ? verifyLogin(deps, request.body, request)
      : verify(deps, request, request.requester),
})

async function verify(deps: Deps, { body, nowMs }: CheckedVerify, requester: Requester): Promise<Reply> {
  const { challengeId, otp = body.code, deviceSignature } = body
  if (challengeId === undefined || otp === undefined) throw incomplete(challengeId)
  const { userId, sessionName } = requester
  const outcome = await deps.database.change((change): Outcome => {
    const session = deps.sessions.read(change, sessionIdOf(sessionName))
    const isRestricted = deps.restrictions.of(change, userId, session?.deviceId) !== undefined
    let isSigned = false
    const mayConfirm = (purpose: ChallengePurpose) => {
      if (!isForUser(purpose, userId)) return false
      if (purpose.kind !== 'step-up') return !isRestricted
      isSigned = signedByListed(change, deps, requester, { text: challengeId, deviceSignature })
      return true
    }
    const confirmation = deps.challenges.confirm(change, { challengeId, otp, mayConfirm })
    return confirmation.kind === 'refused'
      ? confirmation
      : carryOut(change, deps, { ...confirmation, isSigned }, requester)
  }, nowMs)
  if (outcome.kind === 'refused') throw refusalOf(outcome)
  if (outcome.kind === 'method-refused') throw refusalOfMethod(outcome)
  return { status: 200, body: outcome.body }
}

/** A purpose that a user may confirm with their own session. */
function isForUser(purpose: ChallengePurpose, userId: UserId): boolean {
  return (purpose.kind === 'bind' || purpose.kind === 'step-up') && purpose.userId === userId
}

function carryOut(
  change: Change,
  deps: Deps,
  { purpose, address, isSigned }: Confirmed & { readonly isSigned: boolean },
  requester: Requester,
): Outcome {
  const { userId, deviceId } = requester
  if (purpose.kind === 'bind') {
    const code = deps.loginMethods.bind(change, { userId, deviceId }, address, purpose.replaces)
    if (code !== undefined) return { kind: 'method-refused', code }
    deps.waitingSignIns.takeBackRefusal(change, userId, address)
  } else {
    const refusal = refusalOfAddress(change, deps, userId, address)
    if (refusal !== undefined) return refusal
    noteProof(change, deps, requester, isSigned)
  }
  const name = purpose.kind === 'bind' ? `bind-${address.kind}` : purpose.kind
  return { kind: 'done', body: { purpose: name, user: userView(change, deps, userId, deviceId) } }
}

function incomplete(challengeId: string | undefined) {
  const [pointer, detail] =
    challengeId === undefined
      ? ['/challengeId', 'is needed beside a session']
      : ['/otp', 'is the code that was sent']
  return invalidMember(pointer, 'REQUIRED', detail)
}

/**
 * Sign-ins that wait (contract 0.1, "2.2, 2.4"): the waiting client asks for the outcome, and the account's owner answers on a
 * device of the device list, with a signature of its signing key.
 */

import type { Static } from 'typebox'
import { askedBy, type Opens, outcomeOf } from '../../domain/accounts/waiting-sign-in.ts'
import type { UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import { signInAnswerMessage } from '../../log/signing-messages.ts'
import { SignedIn } from '../../schema/account.ts'
import { invalidMember } from '../../schema/check.ts'
import { AnswerSignInRequest, WaitingLoginRequest, WaitingSignInList } from '../../schema/sign-in.ts'
import { timeText } from '../../schema/time.ts'
import { sessionIdOf } from '../../store/accounts/session-store.ts'
import { type NamedSignIn, signInName, waitingSignInOf } from '../../store/accounts/waiting-sign-ins.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import {
  type Operation,
  type OperationRequest,
  operationWithBody,
  type Reply,
  read,
} from '../table/operation.ts'
import { assertLasts } from './authentication.ts'
import {
  type Entry,
  enterAfterWait,
  idBytes,
  isSignedByListed,
  type RightCodeDeps,
  signInCode,
} from './right-codes.ts'
import { enterMadeAfterWait } from './server-sign-in.ts'
import { replyOf } from './sign-in.ts'

type Deps = RightCodeDeps & Pick<ApiDeps, 'database' | 'knownSignIns'>
type CheckedFetch = OperationRequest<Static<typeof WaitingLoginRequest>, undefined, 'public'>
type CheckedAnswer = OperationRequest<Static<typeof AnswerSignInRequest>, undefined, 'device'>

export const listWaitingSignIns = read({
  id: 'listWaitingSignIns',
  method: 'GET',
  path: '/app/api/user/waiting-sign-ins',
  tag: 'user',
  summary: 'The sign-in that waits for an answer, if there is one',
  access: 'device',
  replies: { 200: WaitingSignInList },
  codes: [],
  handle: (
    { database, sessionNetworks }: Pick<Reading, 'database'> & Pick<ApiDeps, 'sessionNetworks'>,
    { requester, nowMs },
  ) => {
    const items = database.view(view => waitingSignInViews(view, sessionNetworks, requester.userId, nowMs))
    return { status: 200, body: { items } }
  },
})

/** There is one at most. */
export function waitingSignInViews(
  view: View,
  networks: ApiDeps['sessionNetworks'],
  userId: UserId,
  nowMs: number,
): readonly object[] {
  const named = waitingSignInOf(view, userId, nowMs)
  return named === undefined ? [] : [viewOf(named, networks)]
}

export const WAITING_SIGN_INS: readonly Operation<Deps>[] = [
  operationWithBody(WaitingLoginRequest, {
    id: 'fetchWaitingLogin',
    method: 'POST',
    path: '/app/api/login/waiting',
    tag: 'sign-in',
    summary: 'The outcome of a sign-in that waits: tokens once it was approved, or its time has passed',
    access: 'public',
    replies: { 200: SignedIn },
    codes: ['SIGN_IN_WAITING', 'SIGN_IN_REFUSED', 'SIGN_IN_GONE', 'ACCOUNT_SUSPENDED'],
    rates: [{ name: 'login-waiting', by: 'address' }],
    isPrefixKnown: ({ database, knownSignIns, waitingSignIns }: Deps, { waitingId }, prefix, nowMs) =>
      database.view(view => {
        const named = waitingSignIns.held(view, idBytes(waitingId))
        return named !== undefined && knownSignIns.isPrefixOf(view, named.signIn.userId, prefix, nowMs)
      }),
    handle: async (deps: Deps, request) => {
      const { body, nowMs } = request
      // Most asks change nothing, and one change at a time is made.
      const seen = deps.database.view(view => look(view, deps, body.waitingId, nowMs))
      const entry =
        seen.kind === 'opens'
          ? await deps.database.change(change => fetched(change, deps, request), nowMs)
          : seen
      return replyOf(entry)
    },
  }),
  listWaitingSignIns,
  operationWithBody(AnswerSignInRequest, {
    id: 'answerWaitingSignIn',
    method: 'POST',
    path: '/app/api/user/waiting-sign-ins/{id}',
    tag: 'user',
    summary: 'Approve a sign-in that waits, or refuse it, by a signature of this listed device',
    access: 'device',
    replies: { 204: null },
    codes: ['SIGN_IN_NOT_FOUND'],
    // By session: other sessions can't keep an owner from answering.
    rates: [{ name: 'profile', by: 'session' }],
    handle: (deps: Deps, request) => request.commit(change => answer(change, deps, request)),
  }),
]

function viewOf({ id, signIn }: NamedSignIn, networks: ApiDeps['sessionNetworks']): object {
  const { userAgent, beganAtMs, endsAtMs } = signIn
  const times = { createdAt: timeText(beganAtMs), until: timeText(endsAtMs) }
  return {
    id: signInName(id),
    signInCode: signInCode(id),
    method: askedBy(signIn),
    userAgent,
    network: networks.prefixIn(signIn),
    ...times,
  }
}

/** The state of a waiting sign-in, as its client is answered; `opens` has to be carried out in a change. */
function look(view: View, deps: Deps, waitingId: string, nowMs: number): Entry | Opening {
  const named = deps.waitingSignIns.held(view, idBytes(waitingId))
  if (named === undefined) return GONE
  const outcome = outcomeOf(named.signIn, nowMs)
  switch (outcome.kind) {
    case 'waits':
      return { kind: 'waiting', waitingId, named }
    case 'refused':
      return heldOf(named, outcome.untilMs)
    case 'opened': {
      const reply = deps.signIns.reopened(view, outcome.sessionId, outcome.opens === 'fresh-account')
      return reply === undefined ? GONE : { kind: 'signed-in', reply }
    }
    case 'opens':
      return { ...outcome, named }
  }
}

function heldOf({ signIn }: NamedSignIn, untilMs: number): Entry {
  return { kind: 'held', untilMs, ...(signIn.address === undefined && { isAccount: true }) }
}

interface Opening {
  readonly kind: 'opens'
  readonly opens: Opens
  readonly named: NamedSignIn
}

function fetched(change: Change, deps: Deps, request: CheckedFetch): Entry {
  // Looked at again: two requests may have come at once.
  const seen = look(change, deps, request.body.waitingId, change.nowMs)
  return seen.kind === 'opens' ? (entered(change, deps, seen, request) ?? GONE) : seen
}

function entered(change: Change, deps: Deps, { named, opens }: Opening, request: CheckedFetch) {
  return named.signIn.address === undefined
    ? enterMadeAfterWait(change, deps, named, request)
    : enterAfterWait(change, deps, named, opens, request)
}

function answer(change: Change, deps: Deps, { requester, params, body }: CheckedAnswer): Reply {
  const { userId, deviceId, sessionName } = requester
  // Its device may have been removed while the answer was on its way.
  assertLasts(deps.sessions.read(change, sessionIdOf(sessionName)))
  const named = waitingSignInOf(change, userId, change.nowMs)
  const [id = ''] = params
  if (named === undefined || signInName(named.id) !== id)
    throw new SignalError(
      'SIGN_IN_NOT_FOUND',
      'no such sign-in waits: it was answered, or another one took its place',
    )
  const message = signInAnswerMessage(userId, named.id, body.approve)
  if (!isSignedByListed(change, deps, { userId, deviceId }, message, body.signature))
    throw invalidMember('/signature', 'SIGNATURE', 'is not a signature of this answer by this device')
  deps.waitingSignIns.answer(change, named, body.approve ? 'approved' : 'refused', deviceId)
  return { status: 204 }
}

const GONE: Entry = { kind: 'gone' }

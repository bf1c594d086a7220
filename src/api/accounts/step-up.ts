/**
 * Step-up (contract 2.9, `auth.stepUpSeconds`): a user who changes an account's login methods must have proven their
 * identity lately, so that a phone left unlocked is not an account lost.
 */

import { proofAddress } from '../../domain/accounts/login-method.ts'
import { SignalError } from '../../errors.ts'
import type { ChallengeReply } from '../../store/accounts/challenge-store.ts'
import type { Change } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import type { Requester } from './authentication.ts'

export type StepUpDeps = Pick<ApiDeps, 'challenges' | 'database' | 'loginMethods' | 'stepUpSeconds'>

/** The parts of a request that it looks at. */
export interface StepUpRequest {
  readonly requester: Requester
  readonly network: string
  readonly acceptLanguage: string
  readonly nowMs: number
}

/**
 * Resolves for a requester with a fresh proof. Else rejects with `STEP_UP_REQUIRED`, whose `challenge` is to be
 * confirmed with `verify`; without one where the user has no address that a code could go to, and has to sign in anew.
 */
export async function requireFreshProof(deps: StepUpDeps, request: StepUpRequest): Promise<void> {
  const { stepUpSeconds } = deps
  // A proof far ahead of now is of a clock that has been set back since, and would be fresh till then.
  const provenForMs = Math.abs(request.nowMs - request.requester.session.authenticatedAtMs)
  if (stepUpSeconds === 0 || provenForMs <= stepUpSeconds * 1000) return
  const challenge = await deps.database.change(change => beginProof(change, deps, request), request.nowMs)
  const members = challenge === undefined ? {} : { challenge }
  throw new SignalError('STEP_UP_REQUIRED', 'confirm who you are, then repeat this', { members })
}

function beginProof(
  change: Change,
  { loginMethods, challenges }: StepUpDeps,
  { requester: { userId }, network, acceptLanguage: language }: StepUpRequest,
): ChallengeReply | undefined {
  const address = proofAddress(loginMethods.held(change, userId))
  if (address === undefined) return undefined
  return challenges.begin(change, { purpose: { kind: 'step-up', userId }, address, network, language })
}

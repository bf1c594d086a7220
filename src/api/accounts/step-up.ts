/**
 * Step-up (contract 2.9, `auth.stepUpSeconds`): a user who changes an account's login methods must have proven their
 * identity lately, so that a phone left unlocked is not an account lost.
 */

import { proofAddress } from '../../domain/accounts/login-method.ts'
import { SignalError } from '../../errors.ts'
import type { ChallengeReply, ChallengeStore } from '../../store/accounts/challenge-store.ts'
import type { LoginMethods } from '../../store/accounts/login-methods.ts'
import type { Change, Store } from '../../store/engine/store.ts'
import type { Caller } from './authentication.ts'

export interface StepUpWorld {
  /** How long a proof is good for, in seconds; 0 switches step-up off. */
  readonly stepUpSeconds: number
  readonly database: Pick<Store, 'change' | 'view'>
  readonly loginMethods: Pick<LoginMethods, 'held'>
  readonly challenges: Pick<ChallengeStore, 'begin'>
}

/** The parts of a call that it looks at. */
export interface StepUpCall {
  readonly caller: Caller
  readonly network: string
  readonly acceptLanguage: string
  readonly nowMs: number
}

/**
 * Resolves for a caller whose last proof is fresh. Else rejects with `STEP_UP_REQUIRED`, whose `challenge` is to be
 * confirmed with `verify`; without one where the user has no address that a code could go to, and has to sign in anew.
 */
export async function requireFreshProof(world: StepUpWorld, call: StepUpCall): Promise<void> {
  const { stepUpSeconds } = world
  // A proof far ahead of now is of a clock that has been set back since, and would be fresh till then.
  const provenForMs = Math.abs(call.nowMs - call.caller.session.authenticatedAtMs)
  if (stepUpSeconds === 0 || provenForMs <= stepUpSeconds * 1000) return
  const challenge = await world.database.change(change => beginProof(change, world, call))
  const members = challenge === undefined ? {} : { challenge }
  throw new SignalError('STEP_UP_REQUIRED', 'confirm who you are, then repeat this', { members })
}

function beginProof(
  change: Change,
  { loginMethods, challenges }: StepUpWorld,
  { caller: { userId }, network, acceptLanguage: language }: StepUpCall,
): ChallengeReply | undefined {
  const address = proofAddress(loginMethods.held(change, userId))
  if (address === undefined) return undefined
  return challenges.begin(change, { purpose: { kind: 'step-up', userId }, address, network, language })
}

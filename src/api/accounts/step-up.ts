/**
 * Step-up (contract 0.1, "2.9, 2.10"; `auth.stepUpSeconds`): a user who changes how an account is reached, or takes it away, must
 * have proven lately who they are, after the sign-in. So a session that was opened with a stolen code, and a phone left unlocked, is
 * not an account lost. Where the session's device is on the device list, its signature belongs to the proof.
 * `fresh-proofs.ts` takes the proofs.
 */

import { isPasskey, type MethodsHeld, proofAddress } from '../../domain/accounts/login-method.ts'
import { isFreshlyProven } from '../../domain/accounts/session.ts'
import { SignalError } from '../../errors.ts'
import type { ChallengeReply } from '../../store/accounts/challenge-store.ts'
import type { Change } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import type { Requester } from './authentication.ts'

export type StepUpDeps = Pick<
  ApiDeps,
  'challenges' | 'database' | 'deviceLists' | 'loginMethods' | 'passkeys' | 'stepUpSeconds'
>

/** The parts of a request that it looks at. */
export interface StepUpRequest {
  readonly requester: Requester
  readonly network: string
  readonly acceptLanguage: string
  readonly nowMs: number
}

/** By what a user can prove who they are. */
export type Way = 'code' | 'passkey' | 'provider'

/**
 * Resolves for a requester with a fresh proof. Else rejects with `STEP_UP_REQUIRED`: the `ways` of the account to prove it,
 * whether the proof has to be `signed`, and the `challenge` of a code that was sent.
 */
export async function requireFreshProof(deps: StepUpDeps, request: StepUpRequest): Promise<void> {
  if (isProven(deps, request)) return
  const { requester } = request
  const held = deps.database.view(view => deps.loginMethods.held(view, requester.userId))
  const ways = waysOf(held, deps.passkeys.areOn)
  // A passkey comes first: a code costs a message.
  const challenge =
    ways.includes('code') && !ways.includes('passkey')
      ? await deps.database.change(change => sendCode(change, deps, request), request.nowMs)
      : undefined
  throw proofNeeded(deps, requester, ways, challenge)
}

/** The same for a request that sends nothing: the user asks for a code by `step-up`. */
export function assertFreshProof(
  deps: Pick<StepUpDeps, 'database' | 'deviceLists' | 'loginMethods' | 'passkeys' | 'stepUpSeconds'>,
  request: Pick<StepUpRequest, 'requester' | 'nowMs'>,
): void {
  if (isProven(deps, request)) return
  const { requester } = request
  const held = deps.database.view(view => deps.loginMethods.held(view, requester.userId))
  throw proofNeeded(deps, requester, waysOf(held, deps.passkeys.areOn), undefined)
}

/** A code to the address by which the user proves who they are; undefined for a user who has none. */
export function sendCode(
  change: Change,
  { loginMethods, challenges }: Pick<StepUpDeps, 'challenges' | 'loginMethods'>,
  { requester: { userId }, network, acceptLanguage: language }: Omit<StepUpRequest, 'nowMs'>,
): ChallengeReply | undefined {
  const address = proofAddress(loginMethods.held(change, userId))
  if (address === undefined) return undefined
  return challenges.begin(change, { purpose: { kind: 'step-up', userId }, address, network, language })
}

/** How long a proof is good for, seconds. It is good for something also where step-up is off: see `putDeviceList`. */
export function freshForS({ stepUpSeconds }: Pick<ApiDeps, 'stepUpSeconds'>): number {
  return stepUpSeconds === 0 ? USUAL_S : stepUpSeconds
}

function isProven(
  deps: Pick<StepUpDeps, 'database' | 'deviceLists' | 'stepUpSeconds'>,
  { requester, nowMs }: Pick<StepUpRequest, 'requester' | 'nowMs'>,
): boolean {
  const { stepUpSeconds: withinS } = deps
  const isListed = isListedDevice(deps, requester)
  return withinS === 0 || isFreshlyProven(requester.session, { nowMs, withinS, isListed })
}

function isListedDevice(
  { database, deviceLists }: Pick<StepUpDeps, 'database' | 'deviceLists'>,
  requester: Requester,
): boolean {
  return database.view(view => deviceLists.names(view, requester))
}

function waysOf(held: MethodsHeld, arePasskeysOn: boolean): Way[] {
  const hasPasskey = arePasskeysOn && held.methods.some(isPasskey)
  const hasProvider = held.methods.some(({ kind }) => kind === 'social')
  return [
    ...(proofAddress(held) === undefined ? [] : (['code'] as const)),
    ...(hasPasskey ? (['passkey'] as const) : []),
    ...(hasProvider ? (['provider'] as const) : []),
  ]
}

function proofNeeded(
  deps: Pick<StepUpDeps, 'database' | 'deviceLists'>,
  requester: Requester,
  ways: readonly Way[],
  challenge: ChallengeReply | undefined,
): SignalError {
  const members = { ways, signed: isListedDevice(deps, requester), ...(challenge && { challenge }) }
  return new SignalError('STEP_UP_REQUIRED', 'confirm who you are, then repeat this', { members })
}

const USUAL_S = 900

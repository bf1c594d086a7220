/**
 * Passkeys (contract 0.1, "2.2 Passkeys"): a login method that stands beside an address or an identity at a provider. Signing in
 * by one never waits for the owner's devices: the authenticator has verified its user.
 */

import type { Static } from 'typebox'
import { normalizeDisplayName } from '../../domain/accounts/display-name.ts'
import type { PasskeyUse } from '../../domain/accounts/passkey.ts'
import { SignedIn } from '../../schema/account.ts'
import { invalidMember } from '../../schema/check.ts'
import { LoginMethodView } from '../../schema/login-method.ts'
import {
  AddPasskeyRequest,
  PasskeyCreationOptions,
  PasskeyLoginRequest,
  PasskeyRequestOptions,
} from '../../schema/passkey.ts'
import { sessionIdOf } from '../../store/accounts/session-store.ts'
import type { ApiDeps } from '../deps.ts'
import {
  type Operation,
  type OperationRequest,
  operation,
  operationWithBody,
  type RateRule,
  type Reply,
} from '../table/operation.ts'
import { assertLasts, type Requester } from './authentication.ts'
import { changeRequestOf, loginMethodViews, PROFILE_RATE, refusalOfMethod } from './login-methods.ts'
import type { SignIns } from './sign-ins.ts'
import { requireFreshProof, type StepUpDeps } from './step-up.ts'

type Deps = StepUpDeps &
  Pick<ApiDeps, 'knownSignIns' | 'passkeys' | 'sessions'> & { readonly signIns: SignIns }

type CheckedLogin = OperationRequest<Static<typeof PasskeyLoginRequest>, undefined, 'public'>
type CheckedAdd = OperationRequest<Static<typeof AddPasskeyRequest>, undefined, 'session'>

const PASSKEY_RATE: RateRule = { name: 'passkey', by: 'address' }
/** Refusals of any answer. */
export const PASSKEY_CODES = [
  'PASSKEYS_OFF',
  'PASSKEY_ORIGIN_REFUSED',
  'PASSKEY_RP_REFUSED',
  'PASSKEY_CHALLENGE_GONE',
  'PASSKEY_NOT_VERIFIED',
  'PASSKEY_INVALID',
] as const

export const PASSKEYS: readonly Operation<Deps>[] = [
  operation({
    id: 'passkeyOptions',
    method: 'POST',
    path: '/app/api/passkey/options',
    tag: 'sign-in',
    summary: 'Options to sign in by a passkey; with a session, to prove once more who the user is',
    access: 'optional',
    replies: { 200: PasskeyRequestOptions },
    codes: ['PASSKEYS_OFF'],
    rates: [PASSKEY_RATE],
    // No user is named yet, and one who has signed in from this network before must not be kept out. Nothing is written.
    isPrefixKnown: () => true,
    handle: ({ passkeys }: Deps, { requester, nowMs }) => {
      const use = requester === undefined ? SIGN_IN : useOf('step-up', requester)
      return { status: 200, body: passkeys.requestOptions(use, requester?.userId, nowMs) }
    },
  }),
  operationWithBody(PasskeyLoginRequest, {
    id: 'loginPasskey',
    method: 'POST',
    path: '/app/api/login/passkey',
    tag: 'sign-in',
    summary: 'Signs in by a passkey',
    access: 'public',
    replies: { 200: SignedIn },
    codes: [...PASSKEY_CODES, 'PASSKEY_UNKNOWN', 'ACCOUNT_SUSPENDED'],
    rates: [PASSKEY_RATE],
    isPrefixKnown: ({ database, knownSignIns, passkeys }: Deps, { credential }, prefix, nowMs) =>
      database.view(view => {
        const userId = passkeys.ownerOf(view, credential.id)
        return userId !== undefined && knownSignIns.isPrefixOf(view, userId, prefix, nowMs)
      }),
    handle: (deps: Deps, request) => signIn(deps, request),
  }),
  operation({
    id: 'newPasskeyOptions',
    method: 'POST',
    path: '/app/api/user/passkeys/options',
    tag: 'user',
    summary: 'Options for an authenticator to make a passkey',
    access: 'session',
    replies: { 200: PasskeyCreationOptions },
    codes: ['PASSKEYS_OFF', 'STEP_UP_REQUIRED', 'DELIVERY_UNAVAILABLE'],
    rates: [PROFILE_RATE],
    handle: async (deps: Deps, request) => {
      const { requester, nowMs } = request
      // Before a code is sent for nothing, where passkeys are off.
      const body = deps.passkeys.creationOptions(useOf('register', requester), requester.userId, nowMs)
      await requireFreshProof(deps, request)
      return { status: 200, body }
    },
  }),
  operationWithBody(AddPasskeyRequest, {
    id: 'addPasskey',
    method: 'POST',
    path: '/app/api/user/passkeys',
    tag: 'user',
    summary: 'Add a passkey as a login method',
    access: 'session',
    replies: { 201: LoginMethodView },
    codes: [
      ...PASSKEY_CODES,
      'PASSKEY_NOT_PRIMARY',
      'METHOD_EXISTS',
      'LOGIN_METHOD_LIMIT',
      'ACCOUNT_EXISTS',
      'STEP_UP_REQUIRED',
      'DELIVERY_UNAVAILABLE',
    ],
    rates: [PROFILE_RATE],
    handle: (deps: Deps, request) => add(deps, request),
  }),
]

async function signIn({ passkeys, signIns }: Deps, request: CheckedLogin): Promise<Reply> {
  const judged = await passkeys.judge(request.body.credential, SIGN_IN)
  return request.commit(change => {
    const { userId, methodId } = passkeys.accept(change, judged)
    const known = { userId, isNewUser: false, proof: 'passkey', methodId } as const
    return { status: 200, body: signIns.open(change, known, request).reply }
  })
}

async function add(deps: Deps, request: CheckedAdd): Promise<Reply> {
  const { loginMethods, passkeys, sessions } = deps
  const { body, requester } = request
  const { userId, sessionName } = requester
  const label = readLabel(body.label)
  const judged = await passkeys.judgeRegistration(body.credential, useOf('register', requester))
  await requireFreshProof(deps, request)
  return request.commit(change => {
    // The signature took its time: by then the user may have ended a thief's session.
    assertLasts(sessions.read(change, sessionIdOf(sessionName)))
    const passkey = passkeys.acceptRegistration(change, judged, userId, label)
    const refusal = loginMethods.refusalOf(change, userId, passkey)
    if (refusal !== undefined)
      throw refusalOfMethod({ code: refusal === 'taken' ? 'ACCOUNT_EXISTS' : refusal })
    const method = loginMethods.add(change, changeRequestOf(request), passkey)
    const { primaryMethodId } = loginMethods.held(change, userId)
    return { status: 201, body: loginMethodViews({ methods: [method], primaryMethodId })[0]! }
  })
}

/** Challenges of one session are good for no other. */
export function useOf(purpose: 'register' | 'step-up', { sessionName }: Requester): PasskeyUse {
  return { purpose, sessionId: sessionIdOf(sessionName) }
}

function readLabel(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const label = normalizeDisplayName(text)
  if (label !== undefined) return label
  const detail = 'has 1 to 50 characters in at most 200 bytes, one of them visible, and no line breaks'
  throw invalidMember('/label', 'FORMAT', detail)
}

const SIGN_IN: PasskeyUse = { purpose: 'sign-in' }

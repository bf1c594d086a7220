/**
 * The ways in which a user signs in (contract 2.9): listed, added, made the primary, removed. An address is added by
 * a code that was sent to it (`verify`), an identity at a provider by its token.
 *
 * `Choice:` an address of another account is answered like any other, with a challenge that can't be confirmed and a
 * letter to its owner, so that the reply never reveals who has an account. An identity of another account is refused
 * by name: its token proves that the one who asks owns it, and hears that it signs in to an account of its own.
 */

import type { Static } from 'typebox'
import type { Address } from '../../domain/accounts/challenge.ts'
import type { MethodsHeld } from '../../domain/accounts/login-method.ts'
import type { UserId } from '../../domain/ids.ts'
import { type ErrorCode, SignalError } from '../../errors.ts'
import { Challenge } from '../../schema/account.ts'
import {
  AddLoginMethodRequest,
  LoginMethodList,
  LoginMethodView,
  SetPrimaryRequest,
} from '../../schema/login-method.ts'
import { timeText } from '../../schema/time.ts'
import type { AccountStore } from '../../store/accounts/account-store.ts'
import { type ChangeRequest, methodsHeld } from '../../store/accounts/login-methods.ts'
import { sessionIdOf } from '../../store/accounts/session-store.ts'
import type { View } from '../../store/engine/store.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import {
  type Operation,
  type OperationRequest,
  operation,
  operationWithBody,
  pathId,
  type RateRule,
  type Reply,
  read,
} from '../table/operation.ts'
import { assertLasts, type Requester } from './authentication.ts'
import { tokenUsed } from './social-identities.ts'
import { requireFreshProof } from './step-up.ts'

type Deps = Pick<
  ApiDeps,
  | 'accounts'
  | 'addresses'
  | 'challenges'
  | 'database'
  | 'deviceLists'
  | 'identities'
  | 'identityTokens'
  | 'loginMethods'
  | 'sessions'
  | 'passkeys'
  | 'stepUpSeconds'
  | 'waitingSignIns'
>

type CheckedAdd = OperationRequest<Static<typeof AddLoginMethodRequest>, undefined, 'session'>

/** Shared by all changes of a profile (contract 8). */
export const PROFILE_RATE: RateRule = { name: 'profile', by: 'user' }

export const listLoginMethods = read({
  id: 'listLoginMethods',
  method: 'GET',
  path: '/app/api/user/login-methods',
  tag: 'user',
  summary: 'How the user signs in; there are never more than a page',
  access: 'session',
  replies: { 200: LoginMethodList },
  codes: [],
  handle: ({ accounts, database }: Pick<ApiDeps, 'accounts'> & Pick<Reading, 'database'>, { requester }) => ({
    status: 200,
    body: database.view(view => listOf(view, accounts, requester.userId)),
  }),
})

const addMethod = operationWithBody(AddLoginMethodRequest, {
  id: 'addLoginMethod',
  method: 'POST',
  path: '/app/api/user/login-methods',
  tag: 'user',
  summary: 'Add an address, once its code is confirmed, or an identity at a provider',
  access: 'session',
  replies: { 201: LoginMethodView, 202: Challenge },
  codes: [
    'METHOD_EXISTS',
    'LOGIN_METHOD_LIMIT',
    'STEP_UP_REQUIRED',
    'BLOCKED_COUNTRY',
    'DELIVERY_UNAVAILABLE',
    'PROVIDER_TOKEN_REQUIRED',
    'PROVIDER_TOKEN_INVALID',
    'PROVIDER_UNAVAILABLE',
    'AUTH_CODE_INVALID',
    'ACCOUNT_EXISTS',
  ],
  rates: [PROFILE_RATE],
  handle: (deps: Deps, request) =>
    request.body.kind === 'social' ? addSocial(deps, request) : addAddress(deps, request, request.body.kind),
})

const setPrimary = operationWithBody(SetPrimaryRequest, {
  id: 'setPrimaryLoginMethod',
  method: 'PUT',
  path: '/app/api/user/login-methods/primary',
  tag: 'user',
  summary: 'Make a login method the primary one',
  access: 'session',
  replies: { 200: LoginMethodList },
  codes: ['LOGIN_METHOD_NOT_FOUND', 'PASSKEY_NOT_PRIMARY', 'STEP_UP_REQUIRED', 'DELIVERY_UNAVAILABLE'],
  rates: [PROFILE_RATE],
  handle: async (deps: Deps, request) => {
    await requireFreshProof(deps, request)
    return request.commit(change => {
      deps.loginMethods.makePrimary(change, changeRequestOf(request), request.body.id)
      return { status: 200, body: listOf(change, deps.accounts, request.requester.userId) }
    })
  },
})

const removeMethod = operation({
  id: 'removeLoginMethod',
  method: 'DELETE',
  path: '/app/api/user/login-methods/{id}',
  tag: 'user',
  summary: 'Remove a login method',
  access: 'session',
  replies: { 204: null },
  codes: ['LOGIN_METHOD_NOT_FOUND', 'LAST_LOGIN_METHOD', 'STEP_UP_REQUIRED', 'DELIVERY_UNAVAILABLE'],
  rates: [PROFILE_RATE],
  handle: async (deps: Deps, request) => {
    const methodId = pathId(request.params)
    if (methodId === undefined)
      throw new SignalError('LOGIN_METHOD_NOT_FOUND', 'there is no such login method')
    await requireFreshProof(deps, request)
    return request.commit(change => {
      deps.loginMethods.remove(change, changeRequestOf(request), methodId)
      return { status: 204 }
    })
  },
})

export const LOGIN_METHODS: readonly Operation<Deps>[] = [
  listLoginMethods,
  addMethod,
  setPrimary,
  removeMethod,
]

/** The methods as the client is shown them, oldest first. */
export function loginMethodViews({ methods, primaryMethodId }: MethodsHeld) {
  return methods.map(method => ({
    id: method.id,
    kind: method.kind,
    value: method.kind === 'passkey' ? undefined : method.shown,
    provider: method.kind === 'social' ? method.provider : undefined,
    label: method.kind === 'passkey' ? method.label : undefined,
    backedUp: method.kind === 'passkey' ? method.isBackedUp : undefined,
    verified: true,
    primary: method.id === primaryMethodId,
    addedAt: timeText(method.addedAtMs),
    lastUsedAt: timeText(method.lastUsedAtMs),
  }))
}

/** A method that a user may not have, as a result of a change. */
export interface MethodRefusal {
  readonly kind: 'method-refused'
  readonly code: ErrorCode
}

/** The same as they hear it. */
export function refusalOfMethod({ code }: Pick<MethodRefusal, 'code'>): SignalError {
  return new SignalError(code, SENTENCES[code] ?? 'it can not be a login method')
}

function listOf(view: View, accounts: AccountStore, userId: UserId): { readonly items: readonly object[] } {
  return { items: loginMethodViews(methodsHeld(view, accounts, userId)) }
}

export function changeRequestOf({ requester }: { readonly requester: Requester }): ChangeRequest {
  return { userId: requester.userId, deviceId: requester.deviceId }
}

async function addAddress(deps: Deps, request: CheckedAdd, kind: Address['kind']): Promise<Reply> {
  const { value = '', country } = request.body
  const { requester, network, acceptLanguage: language } = request
  const { userId } = requester
  const address = deps.addresses.read(kind, value, country, '/value')
  await requireProofToAdd(deps, request)
  return request.commit(change => {
    const refusal = deps.loginMethods.refusalOf(change, userId, address)
    const isConfirmed = refusal === 'METHOD_EXISTS' && deps.waitingSignIns.isRefused(change, userId, address)
    if (refusal !== undefined && refusal !== 'taken' && !isConfirmed) throw refusalOfMethod({ code: refusal })
    const purpose = { kind: 'bind', userId, isTaken: refusal === 'taken' } as const
    return {
      status: 202,
      body: deps.challenges.begin(change, { purpose, address, network, language }),
    }
  })
}

/** An account that has lost its last login method has nothing left to prove itself by. */
async function requireProofToAdd(deps: Deps, request: CheckedAdd): Promise<void> {
  const methods = deps.database.view(view => deps.accounts.methodsOf(view, request.requester.userId))
  if (methods.length > 0) await requireFreshProof(deps, request)
}

async function addSocial(deps: Deps, request: CheckedAdd): Promise<Reply> {
  const { loginMethods, identities, identityTokens, sessions } = deps
  await requireProofToAdd(deps, request)
  const token = await identities.verify(request.body)
  const identity = await identities.complete(token, request.body)
  return request.commit(change => {
    // The provider may have taken long: by then the user may have ended a thief's session.
    assertLasts(sessions.read(change, sessionIdOf(request.requester.sessionName)))
    const use = { tokenDigest: token.tokenDigest, attempt: undefined }
    if (identityTokens.find(change, use) !== undefined) throw tokenUsed()
    const refusal = loginMethods.refusalOf(change, request.requester.userId, identity)
    if (refusal !== undefined)
      throw refusalOfMethod({ code: refusal === 'taken' ? 'ACCOUNT_EXISTS' : refusal })
    const method = loginMethods.add(change, changeRequestOf(request), identity)
    identityTokens.keep(change, use, undefined, token.expiresAtMs)
    const { primaryMethodId } = loginMethods.held(change, request.requester.userId)
    return { status: 201, body: loginMethodViews({ methods: [method], primaryMethodId })[0]! }
  })
}

const SENTENCES: Partial<Record<ErrorCode, string>> = {
  METHOD_EXISTS: 'it is one of the login methods already',
  LOGIN_METHOD_LIMIT: 'there are as many login methods of this kind as an account can have',
  ACCOUNT_EXISTS: 'it signs in to another account',
  CHALLENGE_GONE: 'the challenge is over: begin again',
  PASSKEY_NOT_PRIMARY:
    'a passkey stands beside an address or an identity at a provider: add one of those first',
}

/**
 * Changes of the profile (contract 2.8). A name and settings are in force at once. An address is in force when its code
 * is confirmed: until then the old one is, and afterwards the old one and the other devices are told.
 */

import { isDeepStrictEqual } from 'node:util'
import type { Static } from 'typebox'
import type { User, UserSettings } from '../../domain/accounts/account.ts'
import type { Address } from '../../domain/accounts/challenge.ts'
import { profileAddress } from '../../domain/accounts/login-method.ts'
import { SignalError } from '../../errors.ts'
import { ChangedUser, PutUserRequest } from '../../schema/profile.ts'
import type { ChallengeRequest } from '../../store/accounts/challenge-store.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { type OperationRequest, operationWithBody, type Reply } from '../table/operation.ts'
import { readDisplayName } from './addresses.ts'
import { PROFILE_RATE } from './login-methods.ts'
import { requireFreshProof } from './step-up.ts'
import { userView } from './user-view.ts'

type Deps = Pick<
  ApiDeps,
  | 'accounts'
  | 'addresses'
  | 'badgeOf'
  | 'challenges'
  | 'contacts'
  | 'database'
  | 'deviceLists'
  | 'devices'
  | 'loginMethods'
  | 'notices'
  | 'restrictions'
  | 'passkeys'
  | 'stepUpSeconds'
>

type CheckedPut = OperationRequest<Static<typeof PutUserRequest>, undefined, 'session'>

export const putUser = operationWithBody(PutUserRequest, {
  id: 'putUser',
  method: 'PUT',
  path: '/app/api/user',
  tag: 'user',
  summary: 'Change name and settings at once, addresses once their codes are confirmed',
  access: 'session',
  replies: { 200: ChangedUser, 202: ChangedUser },
  codes: ['METHOD_EXISTS', 'STEP_UP_REQUIRED', 'BLOCKED_COUNTRY', 'RATE_LIMITED', 'DELIVERY_UNAVAILABLE'],
  rates: [PROFILE_RATE],
  handle: async (deps: Deps, request) => {
    const displayName = readDisplayName(request.body.displayName)
    const addresses = readAddresses(deps, request)
    if (addresses.length > 0) await requireFreshProof(deps, request)
    return request.commit(change => changeProfile(change, deps, request, { displayName, addresses }))
  },
})

function readAddresses({ addresses }: Deps, { body }: CheckedPut): readonly Address[] {
  const { email, phone, country } = body
  return [
    ...(email === undefined ? [] : [addresses.read('email', email, country, '/email')]),
    ...(phone === undefined ? [] : [addresses.read('phone', phone, country, '/phone')]),
  ]
}

/** Where one address is refused, nothing is written of the other. */
function changeProfile(
  change: Change,
  deps: Deps,
  request: CheckedPut,
  { displayName, addresses }: { displayName: string | undefined; addresses: readonly Address[] },
): Reply {
  const { userId, deviceId } = request.requester
  const bindings = addresses.flatMap(address => bindingOf(change, deps, request, address) ?? [])
  const pending = change.attempt(() =>
    bindings.map(binding => ({ ...deps.challenges.begin(change, binding), kind: binding.address.kind })),
  )
  changeAtOnce(change, deps, request, displayName)
  const user = userView(change, deps, userId, deviceId)
  return pending.length === 0 ? { status: 200, body: { user } } : { status: 202, body: { user, pending } }
}

/** The challenge that an address takes, undefined for the one that is in force already. */
function bindingOf(
  view: View,
  deps: Deps,
  request: CheckedPut,
  address: Address,
): ChallengeRequest | undefined {
  const { userId } = request.requester
  const held = deps.loginMethods.held(view, userId)
  const current = profileAddress(held, address.kind)
  if (current?.key === address.key) return undefined
  const refusal = deps.loginMethods.refusalOf(view, userId, address, current?.id)
  if (refusal === 'METHOD_EXISTS') {
    throw new SignalError('METHOD_EXISTS', 'it is one of the login methods: make it the primary one instead')
  }
  const replaces = current === undefined ? {} : { replaces: current.id }
  const isTaken = refusal === 'taken'
  const purpose = { kind: 'bind', userId, isTaken, ...replaces } as const
  return { purpose, address, network: request.network, language: request.acceptLanguage }
}

/** A name and settings; the other devices are told when anything is another than it was. */
function changeAtOnce(
  change: Change,
  deps: Deps,
  { requester, body }: CheckedPut,
  displayName: string | undefined,
): void {
  const { userId, deviceId } = requester
  const user = deps.accounts.read(change, userId)
  if (user === undefined) return
  const settings = settingsAfter(user.settings, body.settings)
  const changed: User = { ...user, settings, displayName: displayName ?? user.displayName }
  if (isDeepStrictEqual(changed, user)) return
  deps.accounts.put(change, userId, changed)
  deps.notices.tell(change, userId, { kind: 'profile_changed' }, deviceId)
  if (changed.displayName !== user.displayName) deps.contacts.onNewName(change, userId)
}

function settingsAfter(before: UserSettings, changes: CheckedPut['body']['settings'] = {}): UserSettings {
  const { discoverableByEmail, discoverableByPhone, callsFromContactsOnly } = { ...before, ...changes }
  return { discoverableByEmail, discoverableByPhone, callsFromContactsOnly }
}

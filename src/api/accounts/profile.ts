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
import type { AccountStore } from '../../store/accounts/account-store.ts'
import type { ChallengeRequest, ChallengeStore } from '../../store/accounts/challenge-store.ts'
import type { LoginMethods } from '../../store/accounts/login-methods.ts'
import type { Change, Store, View } from '../../store/engine/store.ts'
import type { Notices } from '../../store/messages/notices.ts'
import { type Call, type Operation, operationWithBody, type Reply } from '../table/operation.ts'
import type { AddressReader } from './addresses.ts'
import { readDisplayName } from './addresses.ts'
import { PROFILE_RATE } from './login-methods.ts'
import { requireFreshProof, type StepUpWorld } from './step-up.ts'
import { type UserViewWorld, userView } from './user-view.ts'

export interface ProfileWorld extends StepUpWorld, UserViewWorld {
  readonly database: Pick<Store, 'change' | 'view'>
  readonly accounts: AccountStore
  readonly loginMethods: LoginMethods
  readonly challenges: ChallengeStore
  readonly notices: Pick<Notices, 'tell'>
  readonly addresses: Pick<AddressReader, 'read'>
}

type PutCall = Call<Static<typeof PutUserRequest>, undefined, 'session'>

export function profileOperations(world: ProfileWorld): readonly Operation[] {
  return [putUser(world)]
}

function putUser(world: ProfileWorld): Operation {
  return operationWithBody(PutUserRequest, {
    id: 'putUser',
    method: 'PUT',
    path: '/app/api/user',
    tag: 'user',
    summary: 'Change name and settings at once, addresses once their codes are confirmed',
    access: 'session',
    replies: { 200: ChangedUser, 202: ChangedUser },
    codes: ['METHOD_EXISTS', 'STEP_UP_REQUIRED', 'BLOCKED_COUNTRY', 'RATE_LIMITED', 'DELIVERY_UNAVAILABLE'],
    rates: [PROFILE_RATE],
    async handle(call) {
      const displayName = readDisplayName(call.body.displayName)
      const addresses = readAddresses(world, call)
      if (addresses.length > 0) await requireFreshProof(world, call)
      return call.commit(change => changeProfile(change, world, call, displayName, addresses))
    },
  })
}

function readAddresses({ addresses }: ProfileWorld, { body }: PutCall): readonly Address[] {
  const { email, phone, country } = body
  return [
    ...(email === undefined ? [] : [addresses.read('email', email, country, '/email')]),
    ...(phone === undefined ? [] : [addresses.read('phone', phone, country, '/phone')]),
  ]
}

/** Everything that can be refused is looked at before anything is written. */
function changeProfile(
  change: Change,
  world: ProfileWorld,
  call: PutCall,
  displayName: string | undefined,
  addresses: readonly Address[],
): Reply {
  const { userId, deviceId } = call.caller
  const requests = addresses.flatMap(address => bindingOf(change, world, call, address) ?? [])
  const pending = requests.map(request => ({
    ...world.challenges.begin(change, request),
    kind: request.address.kind,
  }))
  changeAtOnce(change, world, call, displayName)
  const user = userView(change, world, userId, deviceId)
  return pending.length === 0 ? { status: 200, body: { user } } : { status: 202, body: { user, pending } }
}

/** The challenge that an address takes, undefined for the one that is in force already. */
function bindingOf(
  view: View,
  world: ProfileWorld,
  call: PutCall,
  address: Address,
): ChallengeRequest | undefined {
  const { userId } = call.caller
  const held = world.loginMethods.held(view, userId)
  const current = profileAddress(held, address.kind)
  if (current?.key === address.key) return undefined
  const refusal = world.loginMethods.refusalOf(view, userId, address, current?.id)
  if (refusal === 'METHOD_EXISTS') {
    throw new SignalError('METHOD_EXISTS', 'it is one of the login methods: make it the primary one instead')
  }
  const replaces = current === undefined ? {} : { replaces: current.id }
  const isTaken = refusal === 'taken'
  const purpose = { kind: 'bind', userId, isTaken, ...replaces } as const
  return { purpose, address, network: call.network, language: call.acceptLanguage }
}

/** A name and settings; the other devices are told when anything is another than it was. */
function changeAtOnce(
  change: Change,
  world: ProfileWorld,
  { caller, body }: PutCall,
  displayName: string | undefined,
): void {
  const { userId, deviceId } = caller
  const user = world.accounts.read(change, userId)
  if (user === undefined) return
  const settings = settingsAfter(user.settings, body.settings)
  const changed: User = { ...user, settings, displayName: displayName ?? user.displayName }
  if (isDeepStrictEqual(changed, user)) return
  world.accounts.put(change, userId, changed)
  world.notices.tell(change, userId, { kind: 'profile_changed' }, deviceId)
}

function settingsAfter(before: UserSettings, changes: PutCall['body']['settings'] = {}): UserSettings {
  const { discoverableByEmail, discoverableByPhone, callsFromContactsOnly } = { ...before, ...changes }
  return { discoverableByEmail, discoverableByPhone, callsFromContactsOnly }
}

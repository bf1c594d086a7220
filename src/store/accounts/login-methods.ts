/**
 * Changes to the login methods of a user, each decided and written in one change, and told to all other methods and
 * devices of the user (contract 2.8, 2.9). Limits and owners are looked up here, when the proof is in, not at the
 * request: in between, another session or account may have been quicker.
 */

import {
  type AddressMethod,
  identifierOf,
  isAddress,
  type LoginMethod,
  type PasskeyMethod,
} from '../../domain/accounts/account.ts'
import type { Address, SocialIdentity } from '../../domain/accounts/challenge.ts'
import {
  decideRemoval,
  isPasskey,
  type MethodsHeld,
  refusalOfAddition,
} from '../../domain/accounts/login-method.ts'
import { type DeviceId, type MethodId, newId, type UserId } from '../../domain/ids.ts'
import type { Letter } from '../../domain/messages/outbox-message.ts'
import { type ErrorCode, SignalError } from '../../errors.ts'
import type { Change, View } from '../engine/store.ts'
import type { Notices } from '../messages/notices.ts'
import type { AccountLetters } from './account-letters.ts'
import type { AccountStore } from './account-store.ts'
import type { AppleConsents } from './apple-consents.ts'

export interface LoginMethodsDeps {
  readonly accounts: AccountStore
  readonly letters: AccountLetters
  readonly notices: Notices
  readonly appleConsents: AppleConsents
  readonly randomBytes: (length: number) => Uint8Array
}

/** The user to change, and the device that asks: it gets no notice. */
export interface ChangeRequest {
  readonly userId: UserId
  readonly deviceId?: DeviceId | undefined
}

/** A proven method that is to be one of a user's. */
export type NewMethod = Address | SocialIdentity | Omit<PasskeyMethod, 'id' | 'addedAtMs' | 'lastUsedAtMs'>

export class LoginMethods {
  readonly #deps: LoginMethodsDeps

  constructor(deps: LoginMethodsDeps) {
    this.#deps = deps
  }

  /** The user's methods, oldest first, and the primary. Throws `USER_NOT_FOUND` when the account was erased. */
  held(view: View, userId: UserId): MethodsHeld {
    return methodsHeld(view, this.#deps.accounts, userId)
  }

  /**
   * Why the user may not have this method, or have it replace the named one; `taken` when another account has it.
   */
  refusalOf(
    view: View,
    userId: UserId,
    candidate: NewMethod,
    replaces?: MethodId,
  ): ErrorCode | 'taken' | undefined {
    const identifier = identifierOf(candidate)
    const others = this.held(view, userId).methods.filter(({ id }) => id !== replaces)
    const refusal = refusalOfAddition(others, { kind: candidate.kind, identifier })
    if (refusal !== undefined) return refusal
    const owner = this.#deps.accounts.ownerOf(view, identifier)
    return owner === undefined || owner.methodId === replaces ? undefined : 'taken'
  }

  /** Adds what `refusalOf` has nothing against. */
  add(change: Change, request: ChangeRequest, candidate: NewMethod): LoginMethod {
    const { accounts, letters, randomBytes } = this.#deps
    const { userId } = request
    const { nowMs } = change
    const id = newId(randomBytes) as MethodId
    const method: LoginMethod = { ...candidate, id, addedAtMs: nowMs, lastUsedAtMs: nowMs }
    accounts.putMethod(change, userId, method)
    this.#noteOwn(change, userId)
    if (this.held(change, userId).primaryMethodId === undefined) this.#setPrimary(change, userId, id)
    letters.tellAll(change, userId, { kind: 'login-method-added', method: method.kind }, id)
    this.#tellDevices(change, request)
    return method
  }

  /** Replaces an address by a proven one under the same id, and tells the old address that it is no longer in force. */
  replace(change: Change, request: ChangeRequest, old: AddressMethod, address: Address): void {
    const { accounts, letters } = this.#deps
    const { userId } = request
    const { nowMs } = change
    accounts.removeMethod(change, userId, old)
    accounts.putMethod(change, userId, { ...old, ...address, addedAtMs: nowMs, lastUsedAtMs: nowMs })
    letters.tell(change, userId, old, REPLACED)
    letters.tellAll(change, userId, { kind: 'login-method-added', method: address.kind }, old.id)
    this.#tellDevices(change, request)
  }

  /**
   * The code of an address was confirmed: it is added, or replaces the method that it was to replace if that is still
   * there. Returns why it can't be, with nothing written: `CHALLENGE_GONE` when another account has it,
   * `LOGIN_METHOD_LIMIT`.
   */
  bind(
    change: Change,
    request: ChangeRequest,
    address: Address,
    replaces: MethodId | undefined,
  ): ErrorCode | undefined {
    const { methods } = this.held(change, request.userId)
    const old = methods.find(({ id, kind }) => id === replaces && kind === address.kind)
    const refusal = this.refusalOf(change, request.userId, address, old?.id)
    if (refusal === 'METHOD_EXISTS') return undefined
    if (refusal !== undefined) return refusal === 'taken' ? 'CHALLENGE_GONE' : refusal
    if (old === undefined || !isAddress(old)) this.add(change, request, address)
    else this.replace(change, request, old, address)
    return undefined
  }

  /**
   * A user has confirmed that an identity is theirs: it becomes a method of theirs, unless it is one, another account
   * was quicker to have it, or they have as many as there may be. They are signed in by their code in any case.
   */
  link(change: Change, request: ChangeRequest, identity: SocialIdentity): void {
    if (this.refusalOf(change, request.userId, identity) === undefined) this.add(change, request, identity)
  }

  /** Throws `LOGIN_METHOD_NOT_FOUND` or `PASSKEY_NOT_PRIMARY`. */
  makePrimary(change: Change, request: ChangeRequest, methodId: bigint): void {
    const { userId } = request
    const { methods, primaryMethodId } = this.held(change, userId)
    const method = methods.find(({ id }) => id === methodId)
    if (method === undefined) throw refusal('LOGIN_METHOD_NOT_FOUND')
    if (method.id === primaryMethodId) return
    if (isPasskey(method)) throw refusal('PASSKEY_NOT_PRIMARY')
    this.#setPrimary(change, userId, method.id)
    this.#deps.letters.tellAll(change, userId, { kind: 'primary-method-changed' })
    this.#tellDevices(change, request)
  }

  /** Throws `LOGIN_METHOD_NOT_FOUND` or `LAST_LOGIN_METHOD`. */
  remove(change: Change, request: ChangeRequest, methodId: bigint): void {
    const { accounts, letters, appleConsents } = this.#deps
    const { userId } = request
    const decision = decideRemoval(this.held(change, userId), methodId)
    if (decision.kind === 'refused') throw refusal(decision.code)
    const { method, primaryMethodId } = decision
    accounts.removeMethod(change, userId, method)
    this.#setPrimary(change, userId, primaryMethodId)
    if (method.kind === 'social') appleConsents.revoke(change, method)
    else if (isAddress(method)) letters.tell(change, userId, method, REPLACED)
    letters.tellAll(change, userId, { kind: 'login-method-removed', method: method.kind })
    this.#tellDevices(change, request)
  }

  /** The address has come to another account. The account stays, with the methods that are left. */
  lose(change: Change, userId: UserId, method: AddressMethod): void {
    const { accounts, letters, notices } = this.#deps
    const { methods, primaryMethodId } = this.held(change, userId)
    const oldest = methods.find(each => each.id !== method.id && !isPasskey(each))
    accounts.removeMethod(change, userId, method)
    if (primaryMethodId === method.id) this.#setPrimary(change, userId, oldest?.id)
    letters.tellAll(change, userId, { kind: 'login-method-lost', method: method.kind })
    notices.tell(change, userId, { kind: 'login_method_lost', method: method.kind, value: method.shown })
    this.#tellDevices(change, { userId })
  }

  /** The user signs in by a method of their own, so the operator's backend may not sign them in any more. */
  #noteOwn(change: Change, userId: UserId): void {
    const { accounts } = this.#deps
    const user = accounts.read(change, userId)
    if (user?.isMadeByServer === undefined) return
    const { isMadeByServer: _, ...kept } = user
    accounts.put(change, userId, kept)
  }

  #setPrimary(change: Change, userId: UserId, primaryMethodId: MethodId | undefined): void {
    const { accounts } = this.#deps
    const user = accounts.read(change, userId)
    if (user === undefined) return
    const { primaryMethodId: _, ...kept } = user
    accounts.put(change, userId, primaryMethodId === undefined ? kept : { ...kept, primaryMethodId })
  }

  #tellDevices(change: Change, { userId, deviceId }: ChangeRequest): void {
    this.#deps.notices.tell(change, userId, { kind: 'profile_changed' }, deviceId)
  }
}

/** Throws `USER_NOT_FOUND` when the account was erased. */
export function methodsHeld(view: View, accounts: AccountStore, userId: UserId): MethodsHeld {
  const user = accounts.read(view, userId)
  if (user === undefined) throw new SignalError('USER_NOT_FOUND', 'there is no such user')
  return { methods: accounts.methodsOf(view, userId), primaryMethodId: user.primaryMethodId }
}

function refusal(code: ErrorCode): SignalError {
  return new SignalError(code, SENTENCES[code] ?? 'the login methods stay as they are')
}

const SENTENCES: Partial<Record<ErrorCode, string>> = {
  LOGIN_METHOD_NOT_FOUND: 'there is no login method of this id',
  LAST_LOGIN_METHOD: 'it is the only login method besides passkeys: add another one first',
  PASSKEY_NOT_PRIMARY: 'a passkey is never the primary login method',
}
const REPLACED: Letter = { kind: 'address-replaced' }

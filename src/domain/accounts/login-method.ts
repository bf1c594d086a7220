/**
 * The rules over the login methods of one user (contract 2.8, 2.9): how many there are, which one is the primary, which
 * address is the one of the profile. Every method that is kept was proven, an address by a code and a subject by its
 * provider, so none waits for its proof here.
 */

import type { ErrorCode } from '../../errors.ts'
import type { MethodId } from '../ids.ts'
import { type AddressMethod, identifierOf, isAddress, type LoginMethod } from './account.ts'

export type MethodKind = LoginMethod['kind']

/** A user's methods, oldest first, and the primary one. */
export interface MethodsHeld {
  readonly methods: readonly LoginMethod[]
  readonly primaryMethodId: MethodId | undefined
}

/** Why a user may not have this method too, or undefined when they may. */
export function refusalOfAddition(
  methods: readonly LoginMethod[],
  candidate: { readonly kind: MethodKind; readonly identifier: string },
): ErrorCode | undefined {
  if (methods.some(method => identifierOf(method) === candidate.identifier)) return 'METHOD_EXISTS'
  // It stands beside another method, which is left when all authenticators are lost.
  if (candidate.kind === 'passkey' && methods.every(isPasskey)) return 'PASSKEY_NOT_PRIMARY'
  const count = methods.filter(({ kind }) => kind === candidate.kind).length
  return count < METHODS_MAX[candidate.kind] ? undefined : 'LOGIN_METHOD_LIMIT'
}

export type Removal =
  | { readonly kind: 'refused'; readonly code: ErrorCode }
  | {
      readonly kind: 'accepted'
      readonly method: LoginMethod
      readonly primaryMethodId: MethodId | undefined
    }

/** The methods after a removal: without the primary, the oldest remaining one that is no passkey takes its place. */
export function decideRemoval({ methods, primaryMethodId }: MethodsHeld, methodId: bigint): Removal {
  const method = methods.find(({ id }) => id === methodId)
  if (method === undefined) return { kind: 'refused', code: 'LOGIN_METHOD_NOT_FOUND' }
  const oldest = methods.find(other => other !== method && !isPasskey(other))
  if (oldest === undefined) return { kind: 'refused', code: 'LAST_LOGIN_METHOD' }
  return {
    kind: 'accepted',
    method,
    primaryMethodId: primaryMethodId === method.id ? oldest.id : primaryMethodId,
  }
}

/** The one address of a kind that a profile shows and a profile change replaces: the primary, else the oldest. */
export function profileAddress(
  { methods, primaryMethodId }: MethodsHeld,
  kind: AddressMethod['kind'],
): AddressMethod | undefined {
  const addresses = methods.filter((method): method is AddressMethod => method.kind === kind)
  return addresses.find(({ id }) => id === primaryMethodId) ?? addresses[0]
}

/** Where a code goes by which the user proves once more who they are; undefined for who has no address. */
export function proofAddress({ methods, primaryMethodId }: MethodsHeld): AddressMethod | undefined {
  const addresses = methods.filter(isAddress)
  return addresses.find(({ id }) => id === primaryMethodId) ?? addresses[0]
}

/** One that is never the primary, nor the last. */
export function isPasskey({ kind }: LoginMethod): boolean {
  return kind === 'passkey'
}

/** Contract 2.9. */
export const METHODS_MAX: Readonly<Record<MethodKind, number>> = {
  email: 5,
  phone: 3,
  social: 5,
  passkey: 10,
}

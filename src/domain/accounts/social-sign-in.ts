/**
 * Whose account an identity at a provider opens (contract 2.6). The subject alone decides: an address that a provider
 * vouches for never opens the account that it signs in to here. Its owner confirms that by a code first, else control
 * of the address at any provider would open the account.
 */

import type { UserId } from '../ids.ts'
import { addressIdentifier } from './account.ts'
import { displayNameFromEmail, normalizeDisplayName } from './display-name.ts'
import { parseEmail } from './email.ts'

/** A provider's claims about a person; see `ProvenIdentity` of `src/identity`. */
export interface Vouched {
  readonly email?: string
  readonly isEmailVerified: boolean
  readonly name?: string
}

export type SocialSignIn =
  | { readonly kind: 'known'; readonly userId: UserId }
  | { readonly kind: 'new' }
  /** A user here has the address that the provider vouches for: is it the same person? */
  | { readonly kind: 'confirm'; readonly userId: UserId; readonly email: string }

/** `ownerOf` tells who signs in with an identifier, `subject` is the identity's own. */
export function decideSocialSignIn(
  subject: string,
  vouched: Vouched,
  ownerOf: (identifier: string) => UserId | undefined,
): SocialSignIn {
  const known = ownerOf(subject)
  if (known !== undefined) return { kind: 'known', userId: known }
  const email = vouched.isEmailVerified ? parseEmail(vouched.email ?? '')?.key : undefined
  const owner = email === undefined ? undefined : ownerOf(addressIdentifier('email', email))
  if (owner === undefined || email === undefined) return { kind: 'new' }
  return { kind: 'confirm', userId: owner, email }
}

/**
 * What a new account is called (contract 2.7): as the app says, since Apple tells a name once and only to the app; as
 * the provider says; else by the local part of the address, so that no forwarding address is shown; else `User`.
 */
export function nameOfNewcomer(asked: string | undefined, { name, email }: Vouched): string {
  return asked ?? normalizeDisplayName(name ?? '') ?? displayNameFromEmail(email ?? '')
}

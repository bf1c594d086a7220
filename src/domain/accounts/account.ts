/** A user and the ways in which they sign in (contract 2.4, 2.9). */

import type { MethodId } from '../ids.ts'

export interface UserSettings {
  readonly discoverableByEmail: boolean
  readonly discoverableByPhone: boolean
  readonly callsFromContactsOnly: boolean
}

export interface User {
  readonly displayName: string
  readonly createdAtMs: number
  readonly settings: UserSettings
  /** Missing where the account has lost its last login method to another account. */
  readonly primaryMethodId?: MethodId
  /** Language of texts to the user, as the client last asked for it: an RFC 4647 range list. */
  readonly acceptLanguage: string
  /** When the account will be erased, if its user asked for it and does not sign in before. */
  readonly erasesAtMs?: number
  /** The backend's own id of the user: 1 to 256 octets of UTF-8, compared by octets. */
  readonly externalId?: string
  /** Made by the server API, and without a login method of the user's own since: the backend may sign them in. */
  readonly isMadeByServer?: true
  /** Addresses by the backend's word. No code has proven them, so they are no login methods, and no search finds the user by them. */
  readonly contactData?: ContactData
  readonly suspension?: Suspension
}

export interface ContactData {
  readonly email?: string
  /** E.164. */
  readonly phone?: string
}

/** A moderator's act: no session, no call, until it is taken back. */
export interface Suspension {
  /** A code for the app, such as `abuse`. */
  readonly reason: string
  /** For moderators. */
  readonly note?: string
  readonly atMs: number
  /** When it ends by itself; absent: never. */
  readonly untilMs?: number
}

interface LoginMethodBase {
  readonly id: MethodId
  readonly addedAtMs: number
  readonly lastUsedAtMs: number
}

/** An address that was proven by a one-time code. */
export interface AddressMethod extends LoginMethodBase {
  readonly kind: 'email' | 'phone'
  /** `parseEmail` and `parsePhone` make it; what codes are sent to and users are found by. */
  readonly key: string
  /** As the user spelled it. */
  readonly shown: string
}

/** A subject of an identity provider. */
export interface SocialMethod extends LoginMethodBase {
  readonly kind: 'social'
  readonly provider: string
  readonly issuer: string
  readonly subject: string
  /** The address that the provider named, for display only: searches ignore it and no message goes to it. */
  readonly shown?: string
  /** Apple's refresh token, sealed, and the client it was issued to: account deletion revokes it. */
  readonly sealedRefreshToken?: Uint8Array
  readonly clientId?: string
}

/** A credential of WebAuthn, which the user's authenticator keeps. */
export interface PasskeyMethod extends LoginMethodBase {
  readonly kind: 'passkey'
  /** Base64url of at most 1,023 octets. */
  readonly credentialId: string
  /** A COSE_Key (RFC 9052). */
  readonly publicKey: Uint8Array
  /** The user's name for the authenticator. */
  readonly userHandle: Uint8Array
  /** Signatures that the authenticator says it has made: a hint. Synced passkeys say 0. */
  readonly counter: number
  /** How clients reach the authenticator, as they put it. */
  readonly transports: readonly string[]
  /** The authenticator's model, a UUID. */
  readonly aaguid: string
  /** Whether it may be synced to other devices, and whether it is. */
  readonly isSyncable: boolean
  readonly isBackedUp: boolean
  readonly label?: string
}

export type LoginMethod = AddressMethod | SocialMethod | PasskeyMethod

export const DEFAULT_SETTINGS: UserSettings = {
  discoverableByEmail: true,
  discoverableByPhone: true,
  callsFromContactsOnly: true,
}

/** Whether a stranger may ring the user, and read their keys to do so. */
export function takesCallsFromStrangers({ settings, erasesAtMs, suspension }: User): boolean {
  return !settings.callsFromContactsOnly && erasesAtMs === undefined && suspension === undefined
}

/** Identifies one sign-in method among all accounts: an address, issuer and subject, never a provider's email, or a passkey. */
export function identifierOf(
  method:
    | Pick<AddressMethod, 'kind' | 'key'>
    | Pick<SocialMethod, 'kind' | 'issuer' | 'subject'>
    | Pick<PasskeyMethod, 'kind' | 'credentialId'>,
): string {
  switch (method.kind) {
    case 'social':
      return socialIdentifier(method.issuer, method.subject)
    case 'passkey':
      return passkeyIdentifier(method.credentialId)
    default:
      return addressIdentifier(method.kind, method.key)
  }
}

export function isAddress(method: LoginMethod): method is AddressMethod {
  return method.kind === 'email' || method.kind === 'phone'
}

export function addressIdentifier(kind: 'email' | 'phone', key: string): string {
  return `${kind}:${key}`
}

export function socialIdentifier(issuer: string, subject: string): string {
  return `social:${issuer}|${subject}`
}

export function passkeyIdentifier(credentialId: string): string {
  return `passkey:${credentialId}`
}

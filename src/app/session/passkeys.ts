/** Passkeys: the authenticator that the platform gives, and the browser's in the form of WebAuthn's JSON. */

import { encodeBase64 } from '../../log/base64.ts'
import { CallsignError } from '../callsign-error.ts'
import { fromBase64Url } from '../devices/octets.ts'
import type { SignedIn } from '../wire.ts'
import type { BodyOf, ReplyOf } from './operations.ts'
import type { Session } from './session.ts'

type CreationOptions = ReplyOf<'POST user/passkeys/options'>['options']
type RequestOptions = ReplyOf<'POST passkey/options'>['options']
type NewCredential = BodyOf<'POST user/passkeys'>['credential']
type Assertion = BodyOf<'POST login/passkey'>['credential']

/**
 * Makes passkeys and signs with them. Takes and gives the JSON of WebAuthn, as phones do too. Reject with `PASSKEY_CANCELLED` when
 * the person declines.
 */
export interface PasskeyAuthenticator {
  create(options: CreationOptions): Promise<NewCredential>
  get(options: RequestOptions): Promise<Assertion>
}

/** Has the authenticator make a passkey, which becomes a login method of the user. */
export async function addPasskey(
  session: Session,
  authenticator: PasskeyAuthenticator | undefined,
  label: string | undefined,
): Promise<ReplyOf<'POST user/passkeys'>> {
  const present = assertPresent(authenticator)
  const { options } = await session.request('POST user/passkeys/options', undefined)
  const credential = await present.create(options)
  return session.request('POST user/passkeys', { credential, ...(label !== undefined && { label }) })
}

export async function signInByPasskey(
  session: Session,
  authenticator: PasskeyAuthenticator | undefined,
): Promise<SignedIn> {
  const present = assertPresent(authenticator)
  return session.passkeyLogin({ credential: await present.get(await session.passkeyOptions()) })
}

export function assertPresent(authenticator: PasskeyAuthenticator | undefined): PasskeyAuthenticator {
  if (authenticator !== undefined) return authenticator
  throw new CallsignError('PASSKEY_UNAVAILABLE', 'This platform has no passkeys, and the app gave none.')
}

/** Undefined where the platform has no WebAuthn. */
export function browserPasskeys(): PasskeyAuthenticator | undefined {
  const { PublicKeyCredential: webAuthn, navigator } = globalThis as Partial<typeof globalThis>
  const credentials = navigator?.credentials
  if (webAuthn === undefined || credentials === undefined) return undefined
  return {
    create: options =>
      asked<NewCredential>(() =>
        credentials.create({
          publicKey:
            webAuthn.parseCreationOptionsFromJSON?.(options as PublicKeyCredentialCreationOptionsJSON) ??
            creationOptions(options),
        }),
      ),
    get: options =>
      asked<Assertion>(() =>
        credentials.get({
          publicKey:
            webAuthn.parseRequestOptionsFromJSON?.(options as PublicKeyCredentialRequestOptionsJSON) ??
            requestOptions(options),
        }),
      ),
  }
}

function creationOptions({ challenge, user, excludeCredentials, ...more }: CreationOptions) {
  return {
    ...more,
    challenge: fromBase64Url(challenge),
    user: { ...user, id: fromBase64Url(user.id) },
    excludeCredentials: excludeCredentials.map(withOctets),
  } as unknown as PublicKeyCredentialCreationOptions
}

function requestOptions({ challenge, allowCredentials, ...more }: RequestOptions) {
  return {
    ...more,
    challenge: fromBase64Url(challenge),
    allowCredentials: allowCredentials.map(withOctets),
  } as unknown as PublicKeyCredentialRequestOptions
}

function withOctets<Descriptor extends { readonly id: string }>(descriptor: Descriptor) {
  return { ...descriptor, id: fromBase64Url(descriptor.id) }
}

/** Browsers say the same of a person who declines, of a question that has waited too long, and of no passkey at all. */
async function asked<Json>(ask: () => Promise<Credential | null>): Promise<Json> {
  try {
    return jsonOf(await ask()) as Json
  } catch (cause) {
    const { name } = cause as Error
    const sentence = 'The passkey was not given.'
    if (name === 'NotAllowedError' || name === 'AbortError')
      throw new CallsignError('PASSKEY_CANCELLED', sentence, { cause })
    if (name === 'InvalidStateError')
      throw new CallsignError('METHOD_EXISTS', 'You have a passkey of this device already.', { cause })
    throw new CallsignError('PASSKEY_UNAVAILABLE', sentence, { cause })
  }
}

function jsonOf(credential: Credential | null): unknown {
  const { id, type, response, toJSON } = credential as PublicKeyCredential
  try {
    return toJSON.call(credential)
  } catch {
    // The browser, or the password manager that stands in for it, has none.
    const octets = response as unknown as Readonly<Record<string, ArrayBuffer | null | undefined>>
    const members = MEMBERS.flatMap(name => (octets[name] ? [[name, base64Url(octets[name])]] : []))
    const transports = (response as AuthenticatorAttestationResponse).getTransports?.()
    return {
      ...{ id, rawId: id, type },
      response: { ...Object.fromEntries(members), ...(transports && { transports }) },
    }
  }
}

function base64Url(octets: ArrayBuffer): string {
  const text = encodeBase64(new Uint8Array(octets))
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Members of either kind of answer. */
const MEMBERS = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']

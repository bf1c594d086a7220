/**
 * The cryptographic half of passkeys: registrations and assertions as `@simplewebauthn/server` judges them. Challenge,
 * origin and domain are judged before (`src/domain/accounts/passkey.ts`). The library is loaded by the first passkey, since
 * it takes as long to load as much of a start.
 *
 * Attestation is not asked for and not looked at: to check it is to read certificates of strangers, and to ask the addresses in
 * them for lists of revoked ones.
 */

/** An answer is signed over these. */
interface Expected {
  readonly challenge: string
  readonly origin: string
  readonly rpId: string
}

/** A credential of WebAuthn as JSON, as far as it is read here. */
interface Credential<Response> {
  readonly id: string
  readonly rawId: string
  readonly response: Response
}

interface SignedResponse {
  readonly clientDataJSON: string
  readonly authenticatorData: string
  readonly signature: string
}

interface RegisteredPasskey {
  readonly credentialId: string
  readonly publicKey: Uint8Array
  readonly counter: number
  readonly aaguid: string
  readonly isSyncable: boolean
  readonly isBackedUp: boolean
  /** Whether the authenticator verified its user, as by a PIN. */
  readonly isUserVerified: boolean
}

type Assertion = Pick<RegisteredPasskey, 'counter' | 'isBackedUp' | 'isSyncable' | 'isUserVerified'>

/** The authenticator data of an attestation object; undefined for any other text. */
export async function authenticatorDataOf(attestationObject: string): Promise<Uint8Array | undefined> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  return unlessRefused(async () => {
    const data = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url'))).get(
      'authData',
    )
    return data instanceof Uint8Array && data.length < AUTHENTICATOR_DATA_END ? data : undefined
  })
}

/** The passkey that a registration makes; undefined for a registration that is not as it must be. */
export async function readRegistration(
  { id, rawId, response }: Credential<{ readonly clientDataJSON: string }>,
  authenticatorData: Uint8Array,
  algorithms: readonly number[],
  expected: Expected,
): Promise<RegisteredPasskey | undefined> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  const { verifySignature } = await import('@simplewebauthn/server/helpers')
  return unlessRefused(async () => {
    const attestationObject = withoutAttestation(authenticatorData).toString('base64url')
    const { registrationInfo } = await verifyRegistrationResponse({
      ...expectedOf(expected),
      response: {
        ...{ id, rawId, type: 'public-key' as const, clientExtensionResults: {} },
        response: { clientDataJSON: response.clientDataJSON, attestationObject },
      },
      supportedAlgorithmIDs: [...algorithms],
    })
    // The library takes the id of the answer for granted.
    if (registrationInfo?.credential.id !== id) return undefined
    const { publicKey } = registrationInfo.credential
    if (publicKey.length > PUBLIC_KEY_BYTES_MAX) return undefined
    // Throws where the key is none, which would show only at the first sign-in: nothing is signed by it yet.
    await verifySignature({ signature: SOME_SIGNATURE, data: SOME_SIGNATURE, credentialPublicKey: publicKey })
    const { credential, aaguid, credentialDeviceType, credentialBackedUp, userVerified } = registrationInfo
    return {
      credentialId: credential.id,
      publicKey,
      counter: credential.counter,
      aaguid,
      isSyncable: credentialDeviceType === 'multiDevice',
      isBackedUp: credentialBackedUp,
      isUserVerified: userVerified,
    }
  })
}

/** The content of an assertion by this key; undefined where its signature, or anything else of it, is wrong. */
export async function readAssertion(
  { id, rawId, response }: Credential<SignedResponse>,
  publicKey: Uint8Array,
  expected: Expected,
): Promise<Assertion | undefined> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  return unlessRefused(async () => {
    const { clientDataJSON, authenticatorData, signature } = response
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      ...expectedOf(expected),
      response: {
        ...{ id, rawId, type: 'public-key' as const, clientExtensionResults: {} },
        response: { clientDataJSON, authenticatorData, signature },
      },
      // A count that went back is no reason for a refusal.
      credential: { id, publicKey: new Uint8Array(publicKey), counter: 0 },
    })
    if (!verified) return undefined
    const { newCounter, credentialDeviceType, credentialBackedUp, userVerified } = authenticationInfo
    return {
      counter: newCounter,
      isSyncable: credentialDeviceType === 'multiDevice',
      isBackedUp: credentialBackedUp,
      isUserVerified: userVerified,
    }
  })
}

function expectedOf({ challenge, origin, rpId }: Expected) {
  return {
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: rpId,
    // Judged by the caller, so that it has a code of its own, and none for a forger.
    requireUserVerification: false,
  }
}

/** The library throws a plain `Error` at whatever is wrong with an answer. */
async function unlessRefused<Value>(read: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await read()
  } catch {
    return undefined
  }
}

/** An attestation object without a statement: CBOR of `fmt` `none`, an empty `attStmt`, and `authData`. */
function withoutAttestation(authenticatorData: Uint8Array): Buffer {
  const length = Buffer.from([0x59, 0, 0])
  length.writeUInt16BE(authenticatorData.length, 1)
  return Buffer.concat([NO_ATTESTATION, length, authenticatorData])
}

/** An RSA key of 4,096 bits has half of it. */
const PUBLIC_KEY_BYTES_MAX = 1_024
/** As DER has r and s, each 1. */
const SOME_SIGNATURE = Uint8Array.from([0x30, 6, 2, 1, 1, 2, 1, 1])
const NO_ATTESTATION = Buffer.from('\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData', 'latin1')
const AUTHENTICATOR_DATA_END = 2 ** 16

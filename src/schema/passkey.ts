/**
 * Wire shapes of passkeys: the JSON of WebAuthn Level 3, as `PublicKeyCredential.toJSON()` and Android's Credential Manager
 * write it and `parseCreationOptionsFromJSON` and `parseRequestOptionsFromJSON` read it.
 */

import Type from 'typebox'
import { oneOf } from './one-of.ts'

function octets(charactersMax: number, description: string) {
  return Type.String({ pattern: '^[A-Za-z0-9_-]*$', maxLength: charactersMax, description })
}

/** 1,023 octets, the most that a credential's id has. */
const CREDENTIAL_ID_CHARS_MAX = 1_364
const CLIENT_DATA_CHARS_MAX = 4_096

const CREDENTIAL_ID = octets(CREDENTIAL_ID_CHARS_MAX, 'Base64url of the credential’s id')
const CLIENT_DATA = octets(CLIENT_DATA_CHARS_MAX, 'Base64url of the client data that was signed')
const TRANSPORTS = Type.Array(Type.String({ maxLength: 32 }), { maxItems: 8 })

const CREDENTIAL = {
  id: CREDENTIAL_ID,
  rawId: { ...CREDENTIAL_ID, description: 'The same as `id`' },
  type: oneOf(['public-key']),
  authenticatorAttachment: Type.Optional(Type.Unknown({ description: 'Not looked at' })),
  clientExtensionResults: Type.Optional(Type.Unknown({ description: 'Not looked at' })),
}

/** `AuthenticationResponseJSON`. */
export const PasskeyAssertion = Type.Object(
  {
    ...CREDENTIAL,
    response: Type.Object({
      clientDataJSON: CLIENT_DATA,
      authenticatorData: octets(2_048, 'Base64url'),
      signature: octets(1_024, 'Base64url'),
      userHandle: Type.Optional(octets(88, 'Base64url of the user’s handle; needed to sign in')),
    }),
  },
  { description: 'What `navigator.credentials.get` answers, as JSON' },
)

export const PasskeyLoginRequest = Type.Object({ credential: PasskeyAssertion })

/** `RegistrationResponseJSON`. */
export const AddPasskeyRequest = Type.Object({
  credential: Type.Object(
    {
      ...CREDENTIAL,
      response: Type.Object({
        clientDataJSON: CLIENT_DATA,
        attestationObject: octets(10_240, 'Base64url; its statement is not looked at'),
        transports: Type.Optional(TRANSPORTS),
        authenticatorData: Type.Optional(Type.Unknown({ description: 'Not looked at' })),
        publicKey: Type.Optional(Type.Unknown({ description: 'Not looked at' })),
        publicKeyAlgorithm: Type.Optional(Type.Unknown({ description: 'Not looked at' })),
      }),
    },
    { description: 'What `navigator.credentials.create` answers, as JSON' },
  ),
  label: Type.Optional(
    Type.String({
      maxLength: 512,
      description: 'What the user calls it: 1 to 50 characters in at most 200 bytes',
    }),
  ),
})

const CHALLENGE = Type.String({ description: 'Base64url; good once, for five minutes' })
const TIMEOUT = Type.Integer({ description: 'Milliseconds' })
const USER_VERIFICATION = oneOf(['required'])
const DESCRIPTORS = Type.Array(
  Type.Object({
    id: Type.String({ description: 'Base64url' }),
    type: oneOf(['public-key']),
    transports: Type.Optional(Type.Array(Type.String())),
  }),
)

/** `PublicKeyCredentialRequestOptionsJSON`. */
export const PasskeyRequestOptions = Type.Object({
  options: Type.Object(
    {
      challenge: CHALLENGE,
      timeout: TIMEOUT,
      rpId: Type.String(),
      allowCredentials: { ...DESCRIPTORS, description: 'Empty for a sign-in: any passkey of the domain' },
      userVerification: USER_VERIFICATION,
    },
    { description: 'For `PublicKeyCredential.parseRequestOptionsFromJSON`' },
  ),
})

/** `PublicKeyCredentialCreationOptionsJSON`. */
export const PasskeyCreationOptions = Type.Object({
  options: Type.Object(
    {
      rp: Type.Object({ id: Type.String(), name: Type.String() }),
      user: Type.Object({
        id: Type.String({ description: 'Base64url of 32 octets that tell nothing' }),
        name: Type.String({ description: 'The primary address' }),
        displayName: Type.String(),
      }),
      challenge: CHALLENGE,
      timeout: TIMEOUT,
      pubKeyCredParams: Type.Array(Type.Object({ type: oneOf(['public-key']), alg: Type.Integer() })),
      excludeCredentials: { ...DESCRIPTORS, description: 'The passkeys that the user has' },
      authenticatorSelection: Type.Object({
        residentKey: oneOf(['required']),
        requireResidentKey: Type.Boolean(),
        userVerification: USER_VERIFICATION,
      }),
      attestation: oneOf(['none']),
    },
    { description: 'For `PublicKeyCredential.parseCreationOptionsFromJSON`' },
  ),
})

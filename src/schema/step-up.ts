/** Wire shapes of a proof after the sign-in (contract 0.1, "2.9, 2.10"). */

import Type from 'typebox'
import { Challenge, ChallengeId, Otp, optionalText } from './account.ts'
import { PasskeyAssertion } from './passkey.ts'
import { Time } from './time.ts'

export const DeviceSignature = Type.Optional(
  Type.String({
    maxLength: 128,
    description:
      'Needed from a device of the device list. Base64 of r and s: ECDSA P-256 with SHA-256 by its signing key, over ' +
      '`callsign step-up v1`, a newline, the user id (8 octets) and the SHA-256 of `challengeId`, of `idToken` or of the challenge that the passkey signed, as UTF-8',
  }),
)

export const StepUpRequest = Type.Object(
  {
    challengeId: Type.Optional(ChallengeId),
    otp: Type.Optional(Otp),
    passkey: Type.Optional(PasskeyAssertion),
    provider: optionalText('A provider that the user signs in with, such as `google`', 64),
    idToken: Type.Optional(Type.String({ description: 'What the provider signed since the session began' })),
    nonce: optionalText('The nonce of the token, required if it has one; for Apple the raw nonce'),
    send: Type.Optional(
      Type.Literal('code', { description: 'Has a code sent, which the next request brings' }),
    ),
    deviceSignature: DeviceSignature,
  },
  { examples: [{ send: 'code' }] },
)

export const StepUpReply = Type.Object({
  provenUntil: { ...Time, description: 'Until then this session may do what needs a proof' },
})

export const StepUpChallenge = Type.Object({ challenge: Challenge })

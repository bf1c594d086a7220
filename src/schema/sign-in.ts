/** Wire shapes of sign-ins that wait (contract 0.1, "2.2, 2.4"). */

import Type from 'typebox'
import { oneOf } from './one-of.ts'
import { Time } from './time.ts'

export const SignInId = Type.String({ description: 'Names a sign-in that waits; 22 base64url characters' })

export const NetworkPrefix = Type.String({ description: 'Of where it came from, such as `203.0.113.0/24`' })

/** By what a sign-in is asked for. */
export const AskedBy = oneOf(
  ['email', 'phone', 'server'],
  'Whose code was right; `server`: a token of the operator’s backend',
)

export const WaitingLoginRequest = Type.Object({
  waitingId: Type.String({
    maxLength: 64,
    description: 'From `SIGN_IN_WAITING`; whoever has it gets the session',
  }),
})

export const WaitingSignInList = Type.Object({
  items: Type.Array(
    Type.Object({
      id: SignInId,
      signInCode: Type.String({ description: 'Twenty digits, which the screen that waits shows, too' }),
      method: AskedBy,
      userAgent: Type.String({ description: 'As the client that waits calls itself' }),
      network: Type.Optional(NetworkPrefix),
      createdAt: Time,
      until: { ...Time, description: 'Then it goes through without an answer' },
    }),
  ),
})

export const AnswerSignInRequest = Type.Object({
  approve: Type.Boolean(),
  signature: Type.String({
    maxLength: 128,
    description:
      'Base64 of r and s: ECDSA P-256 with SHA-256 by the signing key of the device that answers, over ' +
      '`callsign sign-in answer v1`, a newline, the user id (8 octets), the id (16 octets), and 1 or 0',
  }),
})

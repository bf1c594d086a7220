/** Wire shapes of tokens by which a backend signs in its users. */

import Type from 'typebox'
import { Uint64Text } from './uint64.ts'

export const CreatedSignInToken = Type.Object({
  token: Type.String({
    description: 'For the app, which signs in by it once: `login` with `verified: true` and `signInToken`',
  }),
  expiresIn: Type.Integer({ description: 'Seconds' }),
  userId: Uint64Text,
})

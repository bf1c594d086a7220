/** Wire shapes of suspensions in the server API. */

import Type from 'typebox'
import { Time } from './time.ts'
import { Uint64Text } from './uint64.ts'

const MEMBERS = {
  reason: Type.String({
    pattern: '^[a-z0-9][a-z0-9_-]{0,63}$',
    description: 'A code of your own, such as `abuse`, which the suspended user’s app is told at a sign-in',
  }),
  note: Type.Optional(
    Type.String({ maxLength: 2_000, description: 'For moderators. The user never sees it' }),
  ),
}

export const SuspendRequest = Type.Object({
  ...MEMBERS,
  untilAt: Type.Optional({ ...Time, description: 'When it ends by itself; left out: when you lift it' }),
})

export const SuspensionView = Type.Object({
  userId: Uint64Text,
  ...MEMBERS,
  at: Time,
  untilAt: Type.Optional(Time),
})

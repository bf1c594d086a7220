/** A user as `GET user` has them, for tests that only need one. */

import { DEFAULT_SETTINGS } from '../../src/domain/accounts/account.ts'
import type { UserId } from '../../src/domain/ids.ts'
import type { EventReader } from '../../src/schema/event-form.ts'

export function profileOf({
  userId,
}: {
  readonly userId: UserId
}): ReturnType<NonNullable<EventReader['user']>> {
  return {
    userId,
    displayName: 'Ännchen "A"',
    email: undefined,
    phone: undefined,
    emailVerified: false,
    phoneVerified: false,
    primaryMethodId: 5n,
    loginMethods: [],
    device: undefined,
    badge: { total: 0, friendRequests: 0, missedCalls: 0 },
    createdAt: '2026-11-20T00:00:00.000Z',
    settings: DEFAULT_SETTINGS,
    restriction: undefined,
  }
}

/** A moderator's suspension of a user (operators.md section 2): no session, no sign-in, no call, until it is lifted or ends by its time. */

import { SignalError } from '../../errors.ts'
import type { Suspension, User } from '../accounts/account.ts'

/** The suspension that keeps the user out now. The sweep that lifts it may be late. */
export function suspensionAt(
  user: Pick<User, 'suspension'> | undefined,
  nowMs: number,
): Suspension | undefined {
  const suspension = user?.suspension
  const isOver = suspension?.untilMs !== undefined && suspension.untilMs <= nowMs
  return isOver ? undefined : suspension
}

/**
 * Throws `ACCOUNT_SUSPENDED` to a client that has just proven who its user is. Other clients may not hear of it, so a sign-in asks this
 * after the proof.
 */
export function assertNotSuspended(user: Pick<User, 'suspension'> | undefined, nowMs: number): void {
  const suspension = suspensionAt(user, nowMs)
  if (suspension === undefined) return
  const { reason, untilMs } = suspension
  const until = untilMs === undefined ? {} : { until: new Date(untilMs).toISOString() }
  throw new SignalError('ACCOUNT_SUSPENDED', 'the operator has suspended this account', {
    members: { reason, ...until },
  })
}

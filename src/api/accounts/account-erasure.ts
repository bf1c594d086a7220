/** The end of an account, by its user's wish (contract 2.10): `src/store/accounts/account-erasure.ts` has its effects. */

import type { UserId } from '../../domain/ids.ts'
import { DeleteUserReply, DeleteUserRequest } from '../../schema/profile.ts'
import { timeText } from '../../schema/time.ts'
import type { ErasureWish } from '../../store/accounts/account-erasure.ts'
import type { Change } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { tellSignedOut } from '../devices/device-removal.ts'
import { operationWithBody } from '../table/operation.ts'
import { PROFILE_RATE } from './login-methods.ts'
import { requireFreshProof } from './step-up.ts'

type Deps = Pick<
  ApiDeps,
  | 'challenges'
  | 'database'
  | 'deviceLists'
  | 'devices'
  | 'erasure'
  | 'loginMethods'
  | 'sessions'
  | 'passkeys'
  | 'restrictions'
  | 'stepUpSeconds'
  | 'waitingSignIns'
>

export const deleteUser = operationWithBody(DeleteUserRequest, {
  id: 'deleteUser',
  method: 'DELETE',
  path: '/app/api/user',
  tag: 'user',
  summary: 'Have the account erased in seven days, unless its user signs in again before',
  access: 'session',
  replies: { 202: DeleteUserReply },
  codes: ['STEP_UP_REQUIRED', 'DELIVERY_UNAVAILABLE'],
  rates: [PROFILE_RATE],
  handle: async (deps: Deps, request) => {
    await requireFreshProof(deps, request)
    const { userId, deviceId } = request.requester
    return request.commit(change => {
      const erasesAtMs = endAccount(change, deps, userId, { ownDeviceId: deviceId })
      return { status: 202, body: { erasesAt: timeText(erasesAtMs) } }
    })
  },
})

/** Signs its devices out, and has the account erased; returns when, milliseconds since 1970. */
export function endAccount(
  change: Change,
  deps: Pick<ApiDeps, 'devices' | 'erasure' | 'sessions' | 'waitingSignIns'>,
  userId: UserId,
  wish?: ErasureWish,
): number {
  // The signed-out devices could not say no to a sign-in that waits.
  deps.waitingSignIns.eraseOf(change, userId)
  const erasesAtMs = deps.erasure.plan(change, userId, wish)
  tellSignedOut(change, deps, userId)
  change.happened({ kind: 'account-ended', userId })
  return erasesAtMs
}

/** The end of an account, by its user's wish (contract 2.10): `src/store/accounts/account-erasure.ts` says what follows. */

import { DeleteUserReply, DeleteUserRequest } from '../../schema/profile.ts'
import { timeText } from '../../schema/time.ts'
import type { AccountErasure } from '../../store/accounts/account-erasure.ts'
import { type SignedOutWorld, tellSignedOut } from '../devices/device-removal.ts'
import { type Operation, operationWithBody } from '../table/operation.ts'
import { PROFILE_RATE } from './login-methods.ts'
import { requireFreshProof, type StepUpWorld } from './step-up.ts'

export interface AccountErasureWorld extends StepUpWorld, SignedOutWorld {
  readonly erasure: Pick<AccountErasure, 'plan'>
}

export function accountErasureOperations(world: AccountErasureWorld): readonly Operation[] {
  return [
    operationWithBody(DeleteUserRequest, {
      id: 'deleteUser',
      method: 'DELETE',
      path: '/app/api/user',
      tag: 'user',
      summary: 'Have the account erased in seven days, unless its user signs in again before',
      access: 'session',
      replies: { 202: DeleteUserReply },
      codes: ['STEP_UP_REQUIRED', 'DELIVERY_UNAVAILABLE'],
      rates: [PROFILE_RATE],
      async handle(call) {
        await requireFreshProof(world, call)
        const { userId, deviceId } = call.caller
        return call.commit(change => {
          const erasesAtMs = world.erasure.plan(change, userId, deviceId)
          tellSignedOut(change, world, userId)
          change.happened({ kind: 'account-ended', userId })
          return { status: 202, body: { erasesAt: timeText(erasesAtMs) } }
        })
      },
    }),
  ]
}

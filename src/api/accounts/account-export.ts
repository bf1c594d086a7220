/** All that the server holds of a user, for the user, in one document (contract 0.1, "2.9, 2.10"; GDPR, article 20). */

import { UserExport } from '../../schema/export.ts'
import { sessionIdOf } from '../../store/accounts/session-store.ts'
import type { ApiDeps } from '../deps.ts'
import { read } from '../table/operation.ts'
import { assertLasts } from './authentication.ts'
import { type PersonalDataDeps, personalData } from './personal-data.ts'
import { assertFreshProof } from './step-up.ts'

type Deps = PersonalDataDeps &
  Pick<ApiDeps, 'deviceLists' | 'idsAs' | 'loginMethods' | 'passkeys' | 'requestRates' | 'stepUpSeconds'>

export const exportUser = read({
  id: 'exportUser',
  method: 'GET',
  path: '/app/api/user/export',
  tag: 'user',
  summary: 'All that the server holds of the user, in one document that is sent as it is made',
  access: 'session',
  replies: { 200: UserExport },
  codes: ['STEP_UP_REQUIRED', 'RATE_LIMITED', 'USER_NOT_FOUND', 'OVERLOADED'],
  handle: (deps: Deps, request) => {
    assertFreshProof(deps, request)
    const { userId, deviceId, sessionName } = request.requester
    // Requests without a proof, which are refused at once, are not counted.
    deps.requestRates?.takeMany('export', 'user', `${userId}`, 1)
    const sessionId = sessionIdOf(sessionName)
    const body = personalData(deps, {
      ...{ userId, sessionId, nowMs: request.nowMs, idsAs: deps.idsAs },
      ...(deviceId !== undefined && { deviceId }),
      // It takes a while, in which the owner may end a session that is not theirs.
      assertAllowed: view => assertLasts(deps.sessions.read(view, sessionId)),
    })
    return { status: 200, body }
  },
})

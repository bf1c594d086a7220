/** All that the server keeps of a user and shows to them, in one document (contract 0.1, "2.9, 2.10"; GDPR, article 20). */

import { setImmediate } from 'node:timers/promises'
import { UserExport } from '../../schema/export.ts'
import { timeText } from '../../schema/time.ts'
import { listCallHistory } from '../calls/call-history.ts'
import { listBlocks, listContacts } from '../contacts/contacts.ts'
import { listRequests } from '../contacts/friend-requests.ts'
import { listShareTokens } from '../contacts/share-tokens.ts'
import type { ApiDeps } from '../deps.ts'
import { listDevices } from '../devices/devices.ts'
import { type Read, type ReadRequest, read } from '../table/operation.ts'
import { assertFreshProof } from './step-up.ts'
import { listSessions } from './user-sessions.ts'
import { userView } from './user-view.ts'

type Deps = Pick<
  ApiDeps,
  | 'accounts'
  | 'badgeOf'
  | 'contacts'
  | 'database'
  | 'deviceLists'
  | 'devices'
  | 'history'
  | 'lifetimes'
  | 'loginMethods'
  | 'passkeys'
  | 'requestRates'
  | 'restrictions'
  | 'sessionNetworks'
  | 'sessions'
  | 'shareTokens'
  | 'stepUpSeconds'
>

type CheckedExport = ReadRequest<unknown, unknown, 'session'>

export const exportUser = read({
  id: 'exportUser',
  method: 'GET',
  path: '/app/api/user/export',
  tag: 'user',
  summary: 'All that the server keeps of the user and shows to them, in one document',
  access: 'session',
  replies: { 200: UserExport },
  codes: ['STEP_UP_REQUIRED', 'RATE_LIMITED', 'USER_NOT_FOUND'],
  handle: async (deps: Deps, request) => {
    assertFreshProof(deps, request)
    const { userId, deviceId } = request.requester
    // Requests without a proof, which are refused at once, are not counted.
    deps.requestRates?.takeMany('export', 'user', `${userId}`, 1)
    const user = deps.database.view(view => userView(view, deps, userId, deviceId))
    const body = {
      exportedAt: timeText(request.nowMs),
      user,
      sessions: await allOf(listSessions, deps, request),
      devices: await allOf(listDevices, deps, request),
      contacts: await allOf(listContacts, deps, request),
      incomingRequests: await allOf(listRequests, deps, request, { direction: 'incoming' }),
      outgoingRequests: await allOf(listRequests, deps, request, { direction: 'outgoing' }),
      blocks: await allOf(listBlocks, deps, request),
      shareTokens: await allOf(listShareTokens, deps, request),
      calls: await allOf(listCallHistory, deps, request),
    }
    return { status: 200, body }
  },
})

/** The items of a list as its own operation shows them, page by page, so that other requests have their turns. */
async function allOf<Given>(
  list: Read<Given>,
  deps: Given,
  { requester, requestId, network, nowMs }: CheckedExport,
  query: object = {},
): Promise<readonly object[]> {
  const items: object[] = []
  let cursor: string | undefined
  do {
    const asked = { query: { ...query, limit: PAGE_ITEMS, cursor }, body: undefined, params: [] }
    const reply = await list.handle(deps, { ...asked, requester, requestId, network, nowMs })
    const page = reply.body as Page
    items.push(...page.items)
    cursor = page.nextCursor
    await setImmediate()
  } while (cursor !== undefined)
  return items
}

interface Page {
  readonly items: readonly object[]
  readonly nextCursor?: string
}

const PAGE_ITEMS = 200

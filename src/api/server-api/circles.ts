/** Circles, as the operator's backend makes and ends them. */

import type { UserId } from '../../domain/ids.ts'
import { circleTarget } from '../../domain/operators/circle.ts'
import { isExternalId, readUserRef, type UserRef } from '../../domain/operators/user-ref.ts'
import { invalidMember } from '../../schema/check.ts'
import { PageQuery } from '../../schema/page.ts'
import { CircleMemberPage } from '../../schema/server-contact.ts'
import { timeText } from '../../schema/time.ts'
import type { ListEntry } from '../../store/tables/id-lists.ts'
import { pageOf, rangeOf } from '../table/page.ts'
import { type ServerOperation, serverOperation, serverReadWithQuery } from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<ServerApiDeps, 'accounts' | 'circles' | 'database' | 'serverUsers'>

const MEMBER = '/server/api/v1/circles/{circleId}/members/{ref}'
const CIRCLE = { tag: 'contacts and circles', scope: 'contacts' } as const

export const CIRCLES: readonly ServerOperation<Deps>[] = [
  serverOperation({
    ...CIRCLE,
    id: 'addCircleMember',
    method: 'PUT',
    path: MEMBER,
    summary: 'Makes a user a member of a circle, and the circle with its first member',
    replies: { 204: null },
    codes: ['VALIDATION_FAILED', 'USER_NOT_FOUND', 'CIRCLE_FULL'],
    handle({ circles, serverUsers }: Deps, { params, commit }) {
      const { name, ref } = memberIn(params)
      return commit(change => {
        const userId = serverUsers.userOf(change, ref)
        const isNew = circles.add(change, name, userId)
        return { status: 204, target: isNew ? `${circleTarget(name)} id:${userId}` : undefined }
      })
    },
  }),
  serverOperation({
    ...CIRCLE,
    id: 'removeCircleMember',
    method: 'DELETE',
    path: MEMBER,
    summary:
      'Takes a user out of a circle, which goes with its last member; no error where they are no member',
    replies: { 204: null },
    codes: ['VALIDATION_FAILED', 'USER_NOT_FOUND'],
    handle({ circles, serverUsers }: Deps, { params, commit }) {
      const { name, ref } = memberIn(params)
      return commit(change => {
        const userId = serverUsers.userOf(change, ref)
        const wasMember = circles.remove(change, name, userId)
        return { status: 204, target: wasMember ? `${circleTarget(name)} id:${userId}` : undefined }
      })
    },
  }),
  serverReadWithQuery(PageQuery, {
    ...CIRCLE,
    id: 'listCircleMembers',
    method: 'GET',
    path: '/server/api/v1/circles/{circleId}/members',
    summary: 'The members of a circle, by user id; none of a circle that there is not',
    replies: { 200: CircleMemberPage },
    codes: [],
    handle({ accounts, circles, database }: Deps, { params, query }) {
      const name = nameIn(params)
      return database.view(view => {
        const found = circles.readMembers(view, name, rangeOf(query))
        const itemOf = ({ id, atMs }: ListEntry) => ({
          userId: id,
          externalId: accounts.read(view, id as UserId)?.externalId,
          displayName: accounts.displayNameOf(view, id as UserId),
          since: timeText(atMs),
        })
        return { status: 200, body: pageOf(query, found, entry => entry, itemOf) }
      })
    },
  }),
  serverOperation({
    ...CIRCLE,
    id: 'endCircle',
    method: 'DELETE',
    path: '/server/api/v1/circles/{circleId}',
    summary: 'Ends a circle for all of its members; no error where there is none',
    replies: { 204: null },
    codes: ['VALIDATION_FAILED'],
    handle({ circles }: Deps, { params, commit }) {
      const name = nameIn(params)
      return commit(change => ({
        status: 204,
        target: circles.end(change, name) ? circleTarget(name) : undefined,
      }))
    },
  }),
]

/** Throws `VALIDATION_FAILED`. */
function nameIn([name = '']: readonly string[]): string {
  if (isExternalId(name)) return name
  throw invalidMember(
    '/circleId',
    'FORMAT',
    'is your id for the circle: 1 to 256 octets of UTF-8',
    'the path',
  )
}

function memberIn(params: readonly string[]): { readonly name: string; readonly ref: UserRef } {
  const [, ref = ''] = params
  return { name: nameIn(params), ref: readUserRef(ref) }
}

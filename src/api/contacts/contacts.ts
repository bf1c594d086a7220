/** Contacts and blocks (contract 3.4): list, remove, block, unblock. */

import type { Static } from 'typebox'
import { BLOCKS_MAX } from '../../domain/contacts/friend-request.ts'
import type { UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import {
  BlockPage,
  ContactPage,
  ContactView,
  RenameContactRequest,
  UserIdRequest,
} from '../../schema/contact.ts'
import { PageQuery } from '../../schema/page.ts'
import { timeText } from '../../schema/time.ts'
import type { Change, View } from '../../store/engine/store.ts'
import { readDisplayName } from '../accounts/addresses.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import {
  type Operation,
  type OperationRequest,
  operation,
  operationWithBody,
  pathId,
  type Reply,
  readWithQuery,
} from '../table/operation.ts'
import { type Page, pageOf, rangeOf } from '../table/page.ts'
import { contactOf, isReachable, personOf, userNotFound } from './people.ts'

type Deps = Pick<ApiDeps, 'accounts' | 'contacts' | 'devices'> & Pick<Reading, 'database'>

type ListDeps = Pick<ApiDeps, 'accounts' | 'devices'> & Pick<Reading, 'contacts' | 'database'>

export const listContacts = readWithQuery(PageQuery, {
  id: 'listContacts',
  method: 'GET',
  path: '/app/api/friend',
  tag: 'contacts',
  summary: 'The contacts, newest first',
  access: 'session',
  replies: { 200: ContactPage },
  codes: [],
  handle: (deps: ListDeps, { requester: { userId }, query }) => ({
    status: 200,
    body: deps.database.view(view => contactPage(view, deps, userId, query)),
  }),
})

export function contactPage(
  view: View,
  deps: Omit<ListDeps, 'database'>,
  userId: UserId,
  query: Static<typeof PageQuery>,
): Page {
  const found = deps.contacts.readContacts(view, userId, rangeOf(query))
  const itemOf = (entry: (typeof found)[number]) => contactOf(view, deps, userId, entry)
  return pageOf(query, found, entry => entry, itemOf)
}

const renameContact = operationWithBody(RenameContactRequest, {
  id: 'renameContact',
  method: 'PUT',
  path: '/app/api/friend/{userId}',
  tag: 'contacts',
  summary: 'Give a contact a name of your own, which every screen of yours shows; they never see it',
  access: 'session',
  replies: { 200: ContactView },
  codes: ['USER_NOT_FOUND'],
  rates: [{ name: 'contact-name', by: 'user' }],
  handle: (deps: Deps, { requester: { userId, deviceId }, body, params, commit }) => {
    const { contacts } = deps
    const otherId = pathId<UserId>(params)
    if (otherId === undefined) throw userNotFound()
    const alias = body.alias?.trim() ? readDisplayName(body.alias, '/alias') : undefined
    return commit(change => {
      if (!contacts.rename(change, userId, { userId: otherId, alias }, deviceId)) throw userNotFound()
      const { sinceMs: atMs } = contacts.linkOf(change, userId, otherId)!
      return { status: 200, body: contactOf(change, deps, userId, { id: otherId, atMs }) }
    })
  },
})

const removeContact = operation({
  id: 'removeContact',
  method: 'DELETE',
  path: '/app/api/friend/{userId}',
  tag: 'contacts',
  summary: 'Remove a contact, for both sides',
  access: 'session',
  replies: { 204: null },
  codes: ['USER_NOT_FOUND'],
  handle: ({ contacts }: Deps, { requester: { userId }, params, commit }) => {
    const otherId = pathId<UserId>(params)
    if (otherId === undefined) throw userNotFound()
    return commit(change => {
      if (!contacts.unlink(change, userId, otherId)) throw userNotFound()
      return { status: 204 }
    })
  },
})

const blockUser = operationWithBody(UserIdRequest, {
  id: 'blockUser',
  method: 'POST',
  path: '/app/api/block',
  tag: 'contacts',
  summary:
    'Block a user, who does not hear of it; contact and requests between the two end, and a call of theirs that rings',
  access: 'session',
  replies: { 204: null },
  codes: ['USER_NOT_FOUND', 'SELF_REQUEST', 'BLOCK_LIMIT'],
  // Unused ids are refused: this must not be a faster way to try them than asking is.
  rates: [{ name: 'block', by: 'user' }],
  handle: (deps: Deps, { requester: { userId }, body, commit }) => {
    const otherId = body.userId as UserId
    if (otherId === userId) throw new SignalError('SELF_REQUEST', 'nobody blocks themselves')
    return commit(change => {
      if (!isVisible(change, deps, userId, otherId)) throw userNotFound()
      if (!deps.contacts.block(change, userId, otherId)) {
        throw new SignalError('BLOCK_LIMIT', `nobody blocks more than ${BLOCKS_MAX} users`)
      }
      change.happened({ kind: 'blocked', userId, otherId })
      return { status: 204 }
    })
  },
})

/** Also those who wait for their account to be erased, where the user has to do with them already. */
function isVisible(change: Change, deps: Deps, userId: UserId, otherId: UserId): boolean {
  const { contacts } = deps
  return (
    isReachable(change, deps, otherId) ||
    contacts.isContact(change, userId, otherId) ||
    contacts.incomingFrom(change, otherId, userId, change.nowMs) !== undefined
  )
}

const UNBLOCK = {
  method: 'DELETE',
  tag: 'contacts',
  access: 'session',
  replies: { 204: null },
  codes: [],
} as const

const unblockUser = operationWithBody(UserIdRequest, {
  ...UNBLOCK,
  id: 'unblockUser',
  path: '/app/api/block',
  summary: 'Unblock a user; requests that the block kept away stay away',
  handle: (deps: Deps, request) => unblock(deps, request, request.body.userId),
})

/** For clients and proxies that have no body with DELETE. */
const unblockUserAt = operation({
  ...UNBLOCK,
  id: 'unblockUserAt',
  path: '/app/api/block/{userId}',
  summary: 'Unblock a user, named by the path',
  handle: (deps: Deps, request) => unblock(deps, request, pathId(request.params)),
})

type Unblocking = Pick<OperationRequest<unknown, undefined, 'session'>, 'requester' | 'commit'>

function unblock(
  { contacts }: Deps,
  { requester, commit }: Unblocking,
  otherId: bigint | undefined,
): Promise<Reply> {
  return commit(change => {
    if (otherId !== undefined) contacts.unblock(change, requester.userId, otherId)
    return { status: 204 }
  })
}

export const listBlocks = readWithQuery(PageQuery, {
  id: 'listBlocks',
  method: 'GET',
  path: '/app/api/block',
  tag: 'contacts',
  summary: 'Those whom the user has blocked, newest first',
  access: 'session',
  replies: { 200: BlockPage },
  codes: [],
  handle: (deps: ListDeps, { requester: { userId }, query }) => ({
    status: 200,
    body: deps.database.view(view => blockPage(view, deps, userId, query)),
  }),
})

export function blockPage(
  view: View,
  deps: Omit<ListDeps, 'database'>,
  userId: UserId,
  query: Static<typeof PageQuery>,
): Page {
  const found = deps.contacts.readBlocks(view, userId, rangeOf(query))
  const itemOf = ({ id, atMs }: (typeof found)[number]) => ({
    ...personOf(view, deps, id as UserId),
    since: timeText(atMs),
  })
  return pageOf(query, found, entry => entry, itemOf)
}

export const CONTACTS: readonly Operation<Deps>[] = [
  listContacts,
  renameContact,
  removeContact,
  blockUser,
  unblockUser,
  unblockUserAt,
  listBlocks,
]

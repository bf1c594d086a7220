/** Contacts that the operator's backend makes and ends: both sides hear of it, as if they had done it themselves. */

import { readUserRef } from '../../domain/operators/user-ref.ts'
import { SignalError } from '../../errors.ts'
import { ContactPair, LinkedContacts } from '../../schema/server-contact.ts'
import { timeText } from '../../schema/time.ts'
import type { View } from '../../store/engine/store.ts'
import {
  type ServerOperation,
  serverOperationWithBody,
  serverOperationWithQuery,
} from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<ServerApiDeps, 'contacts' | 'serverUsers'>

const CONTACTS_RULES = {
  path: '/server/api/v1/contacts',
  tag: 'contacts and circles',
  scope: 'contacts',
} as const

export const SERVER_CONTACTS: readonly ServerOperation<Deps>[] = [
  serverOperationWithBody(ContactPair, {
    ...CONTACTS_RULES,
    id: 'linkContacts',
    method: 'PUT',
    summary: 'Makes two users contacts; requests between them are accepted by it',
    replies: { 200: LinkedContacts },
    codes: ['USER_NOT_FOUND', 'SELF_REQUEST', 'USER_BLOCKED', 'CONTACT_LIMIT'],
    handle(deps: Deps, { body, commit }) {
      const refs = refsOf(body)
      return commit(change => {
        const { contacts } = deps
        const [one, other] = pairOf(change, deps, refs)
        const decision = contacts.link(change, one, other)
        if (decision.kind === 'refused') throw new SignalError(decision.code, SENTENCES[decision.code]!)
        const { sinceMs } = contacts.linkOf(change, one, other)!
        const reply = { status: 200, body: { userIds: [one, other], since: timeText(sinceMs) } } as const
        return { ...reply, target: decision.kind === 'links' ? `id:${one} id:${other}` : undefined }
      })
    },
  }),
  serverOperationWithQuery(ContactPair, {
    ...CONTACTS_RULES,
    id: 'unlinkContacts',
    method: 'DELETE',
    summary: 'Ends a contact for both users; no error where they are none',
    replies: { 204: null },
    codes: ['USER_NOT_FOUND', 'SELF_REQUEST'],
    handle(deps: Deps, { query, commit }) {
      const refs = refsOf(query)
      return commit(change => {
        const [one, other] = pairOf(change, deps, refs)
        const isEnded = deps.contacts.unlink(change, one, other)
        return { status: 204, target: isEnded ? `id:${one} id:${other}` : undefined }
      })
    },
  }),
]

function refsOf({ a, b }: { readonly a: string; readonly b: string }) {
  return [readUserRef(a, '/a'), readUserRef(b, '/b')] as const
}

function pairOf(view: View, { serverUsers }: Deps, [a, b]: ReturnType<typeof refsOf>) {
  const [one, other] = [serverUsers.userOf(view, a), serverUsers.userOf(view, b)]
  if (one === other) throw new SignalError('SELF_REQUEST', 'a and b are the same user')
  return [one, other] as const
}

const SENTENCES: Partial<Record<SignalError['code'], string>> = {
  USER_BLOCKED: 'one of the two has blocked the other, who may be contacts again once the block is gone',
  CONTACT_LIMIT: 'one of the two has as many contacts as there may be',
}

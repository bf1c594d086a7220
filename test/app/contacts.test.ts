/** Contacts of `callsign/app` with a server that names another person than a link does. */

import t from 'tap'
import { Contacts, type ContactsDeps } from '../../src/app/contacts.ts'
import { rejectionOf } from '../support/app-sessions.ts'

t.test('whom the server names in place of a link’s person is no contact, and asked no more', async t => {
  for (const [status, takenBack] of [
    ['accepted', ['DELETE friend/{userId}', { userId: '3' }]],
    ['pending', ['POST friend-request/cancel', { requestId: '9' }]],
  ] as const) {
    const asked: unknown[] = []
    const request = async (operation: string, body: unknown, params: unknown) => {
      asked.push([operation, body ?? params])
      return { user: { userId: '3' }, status, requestId: '9' }
    }
    const keyLog = { openShared: async () => ({ userId: 2n }), expect: async () => {} }
    const contacts = new Contacts({ session: { request }, keyLog } as unknown as ContactsDeps)
    const link = `https://call.example.org/c_${'a'.repeat(22)}#u=2`
    t.equal(await rejectionOf(contacts.request({ link })), 'KEYS_REFUSED')
    t.same(asked.slice(1), [takenBack])
  }
})

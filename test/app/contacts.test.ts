/** Contacts of `@callsign/sdk/app` with a server that names another person than a link does. */

import { join } from 'node:path'
import t from 'tap'
import { Contacts } from '../../src/app/contacts.ts'
import type { KeyLog } from '../../src/app/devices/key-log.ts'
import { Names } from '../../src/app/names.ts'
import type { Session } from '../../src/app/session/session.ts'
import { startPerson } from '../support/app-people.ts'
import { rejectionOf } from '../support/app-sessions.ts'
import { settingsFor } from '../support/call-people.ts'
import { startLog } from '../support/live-log.ts'
import { readVectors } from '../support/vectors.ts'

const names = new Names(() => {})
const scans = readVectors<readonly Scan[]>('contact-scans')

type Scan = { readonly name: string; readonly text: string } & (
  | { readonly kind: 'link'; readonly token: string; readonly fragment: string }
  | { readonly kind: 'user'; readonly userId: string }
  | { readonly kind: 'invalid' }
)

/** Opens a text for a user whose server answers all. Gives the result, the requests, and the fragments. */
function opener() {
  const [asked, fragments]: [unknown[], string[]] = [[], []]
  const request = async (operation: string, body: unknown) => {
    asked.push([operation, body])
    return { displayName: 'Bob', relation: 'none', user: { userId: '2' }, status: 'pending', requestId: '9' }
  }
  const openShared = async (fragment: string) => void fragments.push(fragment)
  const [session, keyLog] = [{ request } as unknown as Session, { openShared } as unknown as KeyLog]
  return { contacts: new Contacts(session, keyLog, names), asked, fragments }
}

for (const scan of scans) {
  t.test(`opens ${scan.name}`, async t => {
    const { contacts, asked, fragments } = opener()
    if (scan.kind === 'invalid') {
      t.equal(await rejectionOf(contacts.open(scan.text)), 'INVALID_QR')
      t.same(asked, [])
      return
    }
    const opened = await contacts.open(scan.text)
    t.equal(opened.kind, scan.kind)
    if (scan.kind === 'user') {
      t.match(opened, { userId: scan.userId })
      t.same(asked, [], 'nothing is asked before the request')
      await opened.request('It is Ann')
      t.same(asked, [['POST friend-request/by-id', { targetUserId: scan.userId, message: 'It is Ann' }]])
      return
    }
    t.match(opened, { displayName: 'Bob', relation: 'none', isNamed: false })
    t.same(asked.splice(0), [['POST share-token/resolve', { token: scan.token }]])
    await opened.request()
    t.same(asked, [['POST friend-request/by-token', { token: scan.token }]])
    t.same(fragments, [scan.fragment, scan.fragment])
  })
}

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
    const contacts = new Contacts({ request } as unknown as Session, keyLog as unknown as KeyLog, names)
    const link = `https://call.example.org/c_${'a'.repeat(22)}#u=2`
    t.equal(await rejectionOf(contacts.request({ link })), 'KEYS_REFUSED')
    t.same(asked.slice(1), [takenBack])
  }
})

t.test('a report reaches the moderators, once', async t => {
  const server = await startLog(t, t.testdir(), settingsFor(2))
  const [ann, bob] = [await startPerson(server, 0), await startPerson(server, 1)]
  const contacts = new Contacts(ann.session, ann.keyLog, names)
  const [first] = await contacts.reportReasons()
  t.match(first, { reason: 'harassment', title: /[a-z]/ })
  const [annId, userId] = [ann.session.userId!, bob.session.userId!]
  t.match(await contacts.report(userId, { reason: first!.reason, text: 'At night' }), {
    reportId: /^[0-9]+$/,
  })
  t.equal(await rejectionOf(contacts.report('7', { reason: 'other' })), 'USER_NOT_FOUND')
  t.equal(await rejectionOf(contacts.report(annId, { reason: 'other' })), 'SELF_REQUEST')
})

t.test('the name of a link’s owner is not asked for where the fragment does not hold', async t => {
  const folder = t.testdir({ one: {}, other: {} })
  const server = await startLog(t, join(folder, 'one'), settingsFor(2))
  const [ann, bob] = [await startPerson(server, 0), await startPerson(server, 1)]
  const asked: string[] = []
  ann.lie = path => void asked.push(path)
  const contacts = new Contacts(ann.session, ann.keyLog, names)
  const bobs = new Contacts(bob.session, bob.keyLog, names)
  const { link } = await bobs.shareLink()
  const [url, fragment] = link.split('#') as [string, string]
  const swapped = fragment.replace(/^u=\d+/, '')
  const other = await startLog(t, join(folder, 'other'), settingsFor(1))
  const foreign = await (await startPerson(other, 0)).keyLog.shareFragment()
  for (const damaged of [
    swapped,
    fragment.slice(0, -4),
    fragment.replace('l=', 'l=A'),
    fragment.replace(/n=(.{40})./, (_, kept) => `n=${kept}${fragment.includes(`${kept}A`) ? 'B' : 'A'}`),
    fragment.slice(1),
    'top',
    foreign.slice(1),
  ]) {
    t.equal(await rejectionOf(contacts.open(`${url}#${damaged}`)), 'MALFORMED', damaged)
    t.equal(await rejectionOf(contacts.request({ link: `${url}#${damaged}` })), 'MALFORMED')
  }
  t.notOk(asked.some(path => /share-token|friend-request/.test(path)))
  t.match(await contacts.open(link), { displayName: String, isNamed: true })
  t.match(await contacts.open(url), { isNamed: false })
})

/** A device that may do little: what it subscribes to and sends, asked anew each time. */

import t, { type Test } from 'tap'
import type { Restriction } from '../../../src/domain/devices/restriction.ts'
import type { MemoryClient } from '../../support/memory-client.ts'
import { headerOf } from '../../support/naive-stomp.ts'
import { newPerson, openTestActors, type TestActors } from '../../support/test-actors.ts'

interface Restricted {
  readonly actors: TestActors
  readonly peer: MemoryClient
  restriction: Restriction | undefined
}

/** A connection with its errors subscribed, of a device on no list. */
async function begin(t: Test): Promise<Restricted> {
  const restricted: { restriction: Restriction | undefined } = { restriction: 'DEVICE_NOT_LISTED' }
  const actors = openTestActors(t, { deps: { restrictionOf: () => restricted.restriction } })
  const peer = await actors.connect(newPerson())
  peer.write('SUBSCRIBE\nid:errors\ndestination:/user/queue/errors\nreceipt:errors\n\n\0')
  await actors.settle()
  t.same(
    peer.take().map(({ command }) => command),
    ['RECEIPT'],
  )
  return Object.assign(restricted, { actors, peer })
}

/** The receipts and messages that it got: each by its receipt, its error's code, or its type. */
async function heard(
  { actors, peer }: Restricted,
  ...frames: readonly string[]
): Promise<(string | undefined)[]> {
  for (const frame of frames) peer.write(frame)
  await actors.settle()
  return peer.take().map(frame => {
    if (frame.command !== 'MESSAGE') return headerOf(frame, 'receipt-id') ?? frame.command
    const type = headerOf(frame, 'type')
    return type === 'error' ? JSON.parse(String(frame.body)).problem.code : type
  })
}

const subscribe = (destination: string) =>
  `SUBSCRIBE\nid:${destination}\ndestination:${destination}\nreceipt:${destination}\n\n\0`
const send = (destination: string) => `SEND\ndestination:${destination}\nreceipt:${destination}\n\n{}\0`

t.test('it hears of the account alone, without a badge, and says nothing', async t => {
  const restricted = await begin(t)
  t.same(await heard(restricted, subscribe('/user/queue/account')), ['/user/queue/account'])
  for (const destination of [
    '/user/queue/calls',
    '/user/queue/contacts',
    '/topic/call.7',
    '/topic/dev.t',
    '/user/queue/dev.q',
  ]) {
    t.same(await heard(restricted, subscribe(destination)), ['DEVICE_NOT_LISTED'], `SUBSCRIBE ${destination}`)
  }
  for (const destination of ['/app/call/7/leave', '/topic/dev.t', '/user/queue/dev.q']) {
    t.same(await heard(restricted, send(destination)), ['DEVICE_NOT_LISTED'], `SEND ${destination}`)
  }
  t.same(await heard(restricted, subscribe('/user/queue/nothing')), ['NOT_FOUND'], 'a name is a name')
  t.notOk(restricted.peer.isClosed)
})

t.test('it gets a badge once it may know it', async t => {
  const restricted = await begin(t)
  const { actors } = restricted
  const person = newPerson()
  const peer = await actors.connect(person)
  peer.write(subscribe('/user/queue/account'))
  await actors.settle()
  peer.take()
  await actors.setBadge(person, 2)
  t.same(peer.take(), [])
  restricted.restriction = undefined
  await actors.setBadge(person, 3)
  t.equal(JSON.parse(String(peer.take()[0]?.body)).missedCalls, 3)
})

t.test('the restriction of the moment counts, not the one of CONNECT', async t => {
  const restricted = await begin(t)
  restricted.restriction = undefined
  t.same(await heard(restricted, subscribe('/user/queue/calls')), ['/user/queue/calls'])
  const begun = ['BEGIN\ntransaction:t\n\n\0', send('/topic/dev.t').replace('\n', '\ntransaction:t\n')]
  t.same(await heard(restricted, ...begun), ['/topic/dev.t'])
  restricted.restriction = 'DEVICE_NOT_LISTED'
  t.same(await heard(restricted, 'COMMIT\ntransaction:t\nreceipt:commit\n\n\0'), ['DEVICE_NOT_LISTED'])
  t.same(await heard(restricted, subscribe('/user/queue/contacts')), ['DEVICE_NOT_LISTED'])
  t.same(await heard(restricted, send('/topic/dev.t')), ['DEVICE_NOT_LISTED'])
})

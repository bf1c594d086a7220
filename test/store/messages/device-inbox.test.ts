/** The inbox as a connection uses it: one change for a frame, nothing given again while it is being settled. */

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { SignalError } from '../../../src/errors.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { DeviceInbox } from '../../../src/store/messages/device-inbox.ts'
import { InboxStore } from '../../../src/store/messages/inbox-store.ts'
import { type InboxWrites, LocalInboxWrites } from '../../../src/store/messages/inbox-writes.ts'

const [ANN, PHONE, TABLET] = [1n as UserId, 2n as DeviceId, 3n as DeviceId]

function open(t: Test) {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const news: string[] = []
  const store = new InboxStore({
    database,
    expiries: new Expiries(),
    secrets: deriveSecrets(Buffer.alloc(32, 1)),
    randomBytes,
  })
  database.subscribe('inbox-news', ({ userId, deviceId }) => news.push(`${userId} ${deviceId}`))
  const due: (() => void)[] = []
  const soon = (run: () => void) => void due.push(run)
  const faults: unknown[] = []
  const onFault = (error: unknown) => void faults.push(error)
  const local = new LocalInboxWrites(database, store)
  // As another process has them written: all that goes through is data.
  const writes: InboxWrites = {
    settle: (...asked) => local.settle(...structuredClone(asked)),
    markDelivered: (...asked) => local.markDelivered(...structuredClone(asked)),
  }
  const inbox = new DeviceInbox({ database, inbox: store, writes, nowMs: () => 1_000, soon, onFault })
  const assertConsistent = () => database.view(view => store.assertConsistent(view))
  return { database, news, due, faults, inbox, assertConsistent }
}

function item(body: string) {
  return { kind: 'dev', queue: 'dev.t', headers: [['a', 'b']], body: Buffer.from(body) } as const
}

t.test('a change settles and sends together', async t => {
  const { inbox, news } = open(t)
  await inbox.change(ANN, PHONE, { settled: [], sent: [item('1'), item('2')] })
  await inbox.change(ANN, PHONE, { settled: [1], sent: [item('3')] })
  t.same(
    inbox.after(ANN, PHONE, 0, 10).map(({ offset }) => offset),
    [2, 3],
  )
  t.same(news, ['1 2', '1 2'])
})

t.test('messages being settled are known, for this device, until they are gone', async t => {
  const { inbox } = open(t)
  await inbox.change(ANN, PHONE, { settled: [], sent: [item('1'), item('2')] })
  const settled = inbox.change(ANN, PHONE, { settled: [1], sent: [] })
  t.ok(inbox.isSettling(ANN, PHONE, 1))
  t.notOk(inbox.isSettling(ANN, PHONE, 2))
  t.notOk(inbox.isSettling(ANN, TABLET, 1))
  await settled
  t.notOk(inbox.isSettling(ANN, PHONE, 1))
})

t.test('a message that could not be settled is there again', async t => {
  const { database, inbox } = open(t)
  await inbox.change(ANN, PHONE, { settled: [], sent: [item('1')] })
  database.change = () => Promise.reject(new SignalError('STORE_UNAVAILABLE', 'no room'))
  await t.rejects(inbox.change(ANN, PHONE, { settled: [1], sent: [] }), { code: 'STORE_UNAVAILABLE' })
  t.notOk(inbox.isSettling(ANN, PHONE, 1))
  t.equal(inbox.after(ANN, PHONE, 0, 10).length, 1)
})

t.test('what devices are done with is collected and settled in one change', async t => {
  const { database, inbox, due, assertConsistent } = open(t)
  for (const device of [PHONE, TABLET]) {
    await inbox.change(ANN, device, { settled: [], sent: [item('1'), item('2'), item('3')] })
  }
  let changes = 0
  const change = database.change.bind(database)
  database.change = (write, atMs) => {
    changes += 1
    return change(write, atMs)
  }
  inbox.settleSoon(ANN, PHONE, [1])
  inbox.settleSoon(ANN, TABLET, [1, 2])
  inbox.settleSoon(ANN, PHONE, [3])
  t.same([due.length, changes], [1, 0])
  t.ok(inbox.isSettling(ANN, PHONE, 3), 'it is known from the first moment on')
  t.notOk(inbox.isSettling(ANN, PHONE, 2))
  due[0]!()
  t.equal(changes, 1)
  t.ok(inbox.isSettling(ANN, PHONE, 3), 'and while it is written')
  await inbox.settleNow()
  t.notOk(inbox.isSettling(ANN, PHONE, 3))
  const left = (device: DeviceId) => inbox.after(ANN, device, 0, 10).map(({ offset }) => offset)
  t.same([left(PHONE), left(TABLET)], [[2], [3]])
  assertConsistent()
})

t.test('users whose devices have one id settle each their own', async t => {
  const { inbox } = open(t)
  const BEN = 9n as UserId
  for (const user of [ANN, BEN]) {
    await inbox.change(user, PHONE, { settled: [], sent: [item('1'), item('2')] })
  }
  inbox.settleSoon(ANN, PHONE, [1])
  inbox.settleSoon(BEN, PHONE, [2])
  t.same([inbox.isSettling(ANN, PHONE, 2), inbox.isSettling(BEN, PHONE, 1)], [false, false])
  await inbox.settleNow()
  const left = (user: UserId) => inbox.after(user, PHONE, 0, 10).map(({ offset }) => offset)
  t.same([left(ANN), left(BEN)], [[2], [1]])
})

t.test('a change of many messages is one write, without other changes’ parts', async t => {
  const { database, inbox, due } = open(t)
  const sent = Array.from({ length: 300 }, (_, at) => item(String(at)))
  await inbox.change(ANN, PHONE, { settled: [], sent })
  await inbox.change(ANN, TABLET, { settled: [], sent: [item('1')] })
  inbox.settleSoon(ANN, TABLET, [1])
  const settled = sent.map((_, at) => at + 1)
  const change = database.change.bind(database)
  let changes = 0
  database.change = (write, atMs) => {
    changes += 1
    return changes === 1
      ? Promise.reject(new SignalError('STORE_UNAVAILABLE', 'no room'))
      : change(write, atMs)
  }
  await t.rejects(inbox.change(ANN, PHONE, { settled, sent: [item('x')] }), { code: 'STORE_UNAVAILABLE' })
  t.equal(inbox.after(ANN, PHONE, 0, 1_000).length, 300)
  await inbox.change(ANN, PHONE, { settled, sent: [item('x')] })
  t.equal(changes, 2)
  t.equal(inbox.after(ANN, PHONE, 0, 1_000).length, 1)
  t.equal(inbox.after(ANN, TABLET, 0, 10).length, 1)
  t.equal(due.length, 1)
})

t.test('so many messages are not collected longer', async t => {
  const { database, inbox, due } = open(t)
  for (let device = 10n; device < 138n; device++) {
    await inbox.change(ANN, device as DeviceId, { settled: [], sent: [item('1'), item('2')] })
  }
  const change = database.change.bind(database)
  let writes = 0
  database.change = (write, atMs) => {
    writes += 1
    return change(write, atMs)
  }
  for (let device = 10n; device < 138n; device++) inbox.settleSoon(ANN, device as DeviceId, [1, 2])
  t.equal(due.length, 1)
  inbox.settleSoon(ANN, PHONE, [2])
  t.equal(due.length, 2, 'another collection has begun')
  t.same([writes, inbox.isSettling(ANN, PHONE, 2)], [1, true], 'it is as long as the first')
  await inbox.settleNow()
  t.equal(inbox.after(ANN, 137n as DeviceId, 0, 10).length, 0)
})

t.test('an item that could not be settled soon comes again; a fault of ours is reported', async t => {
  const { database, inbox, due, faults } = open(t)
  await inbox.change(ANN, PHONE, { settled: [], sent: [item('1')] })
  for (const error of [new SignalError('STORE_UNAVAILABLE', 'no room'), new Error('a mistake')]) {
    const change = database.change.bind(database)
    database.change = () => Promise.reject(error)
    inbox.settleSoon(ANN, PHONE, [1])
    due.pop()!()
    database.change = change
    await inbox.settleNow()
    t.notOk(inbox.isSettling(ANN, PHONE, 1))
    t.equal(inbox.after(ANN, PHONE, 0, 10).length, 1)
  }
  t.match(faults, [{ message: 'a mistake' }])
})

t.test('marks are of the device, by queue, and only grow', async t => {
  const { inbox, assertConsistent } = open(t)
  await inbox.markDelivered(ANN, PHONE, { calls: 1 })
  t.equal(inbox.head(ANN, PHONE).delivered, undefined, 'an inbox that is not there has none')
  await inbox.change(ANN, PHONE, { settled: [], sent: [item('1')] })
  await inbox.markDelivered(ANN, PHONE, { 'dev.t': 5 })
  await inbox.markDelivered(ANN, PHONE, { 'dev.t': 3, calls: 2 })
  t.same(inbox.head(ANN, PHONE).delivered, { 'dev.t': 5, calls: 2 })
  await inbox.change(ANN, PHONE, { settled: [1], sent: [item('2')] })
  t.same(inbox.head(ANN, PHONE).delivered, { 'dev.t': 5, calls: 2 })
  assertConsistent()
})

t.test('a mark counts from when it is made, not only from when it is durable', async t => {
  const { inbox } = open(t)
  await inbox.change(ANN, PHONE, { settled: [], sent: [item('1'), item('2')] })
  const first = inbox.markDelivered(ANN, PHONE, { 'dev.t': 1 })
  t.same(inbox.head(ANN, PHONE).delivered, { 'dev.t': 1 })
  const second = inbox.markDelivered(ANN, PHONE, { 'dev.t': 2, calls: 1 })
  t.same(inbox.head(ANN, PHONE).delivered, { 'dev.t': 2, calls: 1 })
  t.equal(inbox.head(ANN, TABLET).delivered, undefined)
  await Promise.all([first, second])
  t.same(inbox.head(ANN, PHONE).delivered, { 'dev.t': 2, calls: 1 })
})

t.test('a mark counts on while an earlier one becomes durable', async t => {
  const { database, inbox } = open(t)
  await inbox.change(ANN, PHONE, { settled: [], sent: [item('1'), item('2')] })
  const first = inbox.markDelivered(ANN, PHONE, { 'dev.t': 1 })
  const change = database.change.bind(database)
  let goOn = () => {}
  const held = new Promise<void>(resolve => (goOn = resolve))
  database.change = (write, atMs) => held.then(() => change(write, atMs))
  const second = inbox.markDelivered(ANN, PHONE, { 'dev.t': 2 })
  await first
  t.same(inbox.head(ANN, PHONE).delivered, { 'dev.t': 2 })
  goOn()
  await second
  t.same(inbox.head(ANN, PHONE).delivered, { 'dev.t': 2 })
})

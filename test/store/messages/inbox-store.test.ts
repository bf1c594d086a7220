/** Inboxes on a real store: order, bounds, endings, messages that replace an invitation, and a long random run. */

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import type { InboxItem } from '../../../src/domain/messages/inbox.ts'
import { type NoticeItem, noticeOf } from '../../../src/domain/messages/inbox.ts'
import type { Notice } from '../../../src/domain/messages/notice.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { readChangedRows } from '../../../src/store/engine/changed-rows.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { newsSubjectOf } from '../../../src/store/engine/lmdb-change.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { InboxStore, inboxNewsOf } from '../../../src/store/messages/inbox-store.ts'
import { InboxModel } from '../../support/inbox-model.ts'
import { itemOf } from '../../support/notice-item.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'

const [ANN, BOB] = [5_000_000_001n as UserId, 5_000_000_002n as UserId]
const [PHONE, TABLET] = [6_000_000_001n as DeviceId, 6_000_000_002n as DeviceId]
const DAY_MS = 86_400_000
const RING_MS = 60_000

type House = ReturnType<typeof open>

function open(t: Test, { folder = t.testdir(), secret = 7 } = {}) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const expiries = new Expiries()
  const news: string[] = []
  const inbox = new InboxStore({
    database,
    expiries,
    secrets: deriveSecrets(Buffer.alloc(32, secret)),
    randomBytes,
  })
  let inRows = new Set<bigint | undefined>()
  database.follow(({ rows }) => {
    inRows = new Set()
    readChangedRows(rows, (table, key) => {
      for (const found of database.view(view => [...inboxNewsOf(view, table, key)]))
        if (found.kind === 'inbox-news') inRows.add(newsSubjectOf(found))
    })
  })
  database.subscribe('inbox-news', happening => {
    news.push(`${happening.userId}_${happening.deviceId}`)
    if (!inRows.has(newsSubjectOf(happening))) t.fail('a front would find no news in the rows')
  })
  const sweep = async (nowMs: number) => {
    while ((await expiries.sweep(database, nowMs, 100)) > 0);
  }
  const head = (device = PHONE) => database.view(view => inbox.head(view, ANN, device))
  const after = (device: DeviceId, offset: number, limit: number, nowMs: number, queue?: string) =>
    database.view(view => inbox.after(view, ANN, device, { offset, limit, nowMs, queue }))
  const rowCount = (table: string) => database.rowCount(database.storedRows(table))
  const assertConsistent = () => database.view(view => inbox.assertConsistent(view))
  return { database, inbox, news, folder, sweep, head, after, rowCount, assertConsistent }
}

function dev(label: string, queue = 'dev.t', body: Uint8Array = Uint8Array.of(0, 255)): InboxItem {
  return { kind: 'dev', queue, headers: [['label', label]], body }
}

function invitation(callId: number, expiresAtMs: number): InboxItem {
  const notice: Notice = {
    kind: 'call_invitation',
    callId: BigInt(callId) as CallId,
    version: 1,
    callerId: BOB,
    callerName: 'Bobby',
    displayName: 'Bob',
    alias: 'Bobby',
    isContact: true,
    roomId: 3,
    isVideo: false,
    isOnGoing: false,
    expiresAtMs,
    participants: [],
    keyEpoch: 1,
    keyFromUserId: BOB,
    keyFromDeviceId: 5n as DeviceId,
    encryptedAESKey: 'the-key-of-this-device',
    eventId: 'an-event',
    sentAtMs: expiresAtMs - RING_MS,
  }
  return itemOf(notice)
}

function labelOf(item: InboxItem): string {
  if (item.kind === 'dev') return item.headers[0]![1]
  return 'callId' in item.body ? `${item.body.kind} ${item.body.callId}` : item.body.kind
}

function append({ database, inbox }: House, labels: readonly string[], nowMs = 0, device = PHONE) {
  return database.change(
    change => labels.map(label => inbox.append(change, ANN, device, { item: dev(label) })),
    nowMs,
  )
}

function invite({ database, inbox }: House, callId: number, nowMs: number) {
  const expiresAtMs = nowMs + RING_MS
  const entry = { item: invitation(callId, expiresAtMs), expiresAtMs }
  return database.change(change => inbox.append(change, ANN, PHONE, entry), nowMs)
}

/** Labels of what a device is shown. */
function shown({ database, inbox }: House, nowMs = 0, device = PHONE, userId = ANN): string[] {
  const messages = database.view(view =>
    inbox.after(view, userId, device, { offset: 0, limit: 1_000, nowMs }),
  )
  return messages.map(({ item }) => labelOf(item))
}

function drop({ database, inbox }: House, callId: bigint, device = PHONE): Promise<boolean> {
  return database.change(change => inbox.dropInvitation(change, ANN, device, callId))
}

function settle({ database, inbox }: House, offsets: readonly number[], userId = ANN): Promise<void> {
  return database.change(change => inbox.settle(change, userId, PHONE, offsets))
}

t.test('messages come in order behind an offset, as many as are asked for', async t => {
  const house = open(t)
  t.same(await append(house, ['a', 'b']), [1, 2])
  t.same(await append(house, ['c', 'd']), [3, 4])
  const read = (offset: number, limit: number) =>
    house.after(PHONE, offset, limit, 0).map(({ offset, item }) => `${offset}${labelOf(item)}`)
  t.same(read(0, 10), ['1a', '2b', '3c', '4d'])
  t.same(read(1, 2), ['2b', '3c'])
  t.same(read(4, 10), [])
  t.equal(house.head().nextOffset, 5)
})

t.test('a queue is read alone', async t => {
  const house = open(t)
  const queues = ['dev.a', 'dev.b', 'dev.a', 'dev.b', 'dev.a']
  await house.database.change(change => {
    for (const queue of queues) house.inbox.append(change, ANN, PHONE, { item: dev('x', queue) })
    house.inbox.append(change, ANN, PHONE, { item: invitation(1, RING_MS) })
  }, 0)
  const offsets = (queue: string, offset = 0, limit = 10) =>
    house.after(PHONE, offset, limit, 0, queue).map(message => message.offset)
  t.same(offsets('dev.a'), [1, 3, 5])
  t.same(offsets('dev.b', 2, 1), [4])
  t.same(offsets('calls'), [6])
  t.same(offsets('dev.'), [])
})

t.test('a message comes out as it was put in', async t => {
  const house = open(t)
  const items = [invitation(1, RING_MS), dev('a')]
  await house.database.change(change => {
    for (const item of items) house.inbox.append(change, ANN, PHONE, { item, expiresAtMs: RING_MS })
  }, 5)
  const messages = house.after(PHONE, 0, 10, 5)
  t.same(messages, [
    { offset: 1, queue: 'calls', item: items[0], atMs: 5, expiresAtMs: RING_MS },
    { offset: 2, queue: 'dev.t', item: items[1], atMs: 5, expiresAtMs: RING_MS },
  ])
})

t.test('a message is the same to its writer and after a restart', async t => {
  const folder = t.testdir()
  const house = open(t, { folder })
  const invited = invitation(1, RING_MS) as NoticeItem
  const people = { participants: [{ userId: BOB, displayName: 'Bob' }] }
  const item = { ...invited, body: { ...invited.body, ...people } } as InboxItem
  const read = ({ after }: House) =>
    [PHONE, TABLET].flatMap(device => after(device, 0, 9, 1).map(({ item }) => item))
  await house.database.change(change => {
    for (const device of [PHONE, TABLET]) house.inbox.append(change, ANN, device, { item })
  }, 0)
  t.same(read(house), [item, item])
  await house.database.close()
  t.same(read(open(t, { folder })), [item, item])
})

t.test('the last message stands in the head, older ones in rows, and all in order', async t => {
  const folder = t.testdir()
  let house = open(t, { folder })
  const labels = Array.from({ length: 20 }, (_, at) => `${at + 1}`)
  const rows = () => house.rowCount('inbox')
  await append(house, labels.slice(0, 16))
  t.equal(rows(), 0)
  await invite(house, 1, 0)
  t.same([shown(house), rows()], [[...labels.slice(0, 16), 'call_invitation 1'], 9])
  await append(house, labels.slice(16))
  const all = [...labels.slice(0, 16), 'call_invitation 1', ...labels.slice(16)]
  await house.database.change(change => house.inbox.markDelivered(change, ANN, PHONE, { calls: 2 }))
  await house.database.close()
  house = open(t, { folder })
  t.same([shown(house), rows(), house.head().count], [all, 9, 21])
  t.same(house.head().delivered, { calls: 2 })
  await settle(house, [1, 9, 10, 17])
  t.same(
    shown(house),
    all.filter((_, at) => ![1, 9, 10, 17].includes(at + 1)),
  )
  t.same([rows(), house.head().count], [7, 17])
  t.notOk(await drop(house, 1n), 'settled, it is taken back no more')
  house.assertConsistent()
})

t.test('messages of one change share a row, which goes with the last of them', async t => {
  const house = open(t)
  const counts = () => ['inbox-groups', 'inbox-settled'].map(house.rowCount)
  const devices = Array.from({ length: 40 }, (_, at) => BigInt(at + 1) as DeviceId)
  const item = invitation(1, RING_MS)
  const settleAt = (ids: readonly DeviceId[]) =>
    house.database.change(change => {
      for (const id of ids) house.inbox.settle(change, ANN, id, [1])
    })
  await house.database.change(change => {
    for (const id of devices) house.inbox.append(change, ANN, id, { item })
  }, 0)
  t.same(counts(), [2, 0], 'of 32 at most')
  await settleAt(devices.slice(0, 5))
  t.same(counts(), [2, 1])
  t.same(
    devices.map(id => shown(house, 0, id).length),
    devices.map((_, at) => (at < 5 ? 0 : 1)),
  )
  await settleAt(devices.slice(2, 32))
  t.same(counts(), [1, 0])
  await settleAt(devices)
  t.same(counts(), [0, 0])
  house.assertConsistent()
})

t.test('a message that comes and goes in one change leaves nothing', async t => {
  const house = open(t)
  await append(house, ['a'])
  await house.database.change(change => {
    house.inbox.settle(change, ANN, PHONE, [1])
    for (const label of ['b', 'c']) house.inbox.append(change, ANN, PHONE, { item: dev(label) })
    house.inbox.append(change, ANN, PHONE, { item: invitation(1, RING_MS) })
    house.inbox.settle(change, ANN, PHONE, [2])
    house.inbox.dropInvitation(change, ANN, PHONE, 1n)
  }, 0)
  t.same(shown(house), ['c'])
  t.equal(house.rowCount('inbox-groups'), 1)
  house.assertConsistent()
})

t.test('what an attempt took back is not settled, nor any message of another lost', async t => {
  const house = open(t)
  await append(house, ['a'])
  await house.database.change(change => {
    house.inbox.append(change, ANN, PHONE, { item: dev('b') })
    t.throws(() =>
      change.attempt(() => {
        house.inbox.settle(change, ANN, PHONE, [1])
        house.inbox.append(change, ANN, PHONE, { item: invitation(1, RING_MS) })
        throw new Error('changed its mind')
      }),
    )
    house.inbox.append(change, ANN, PHONE, { item: dev('c') })
  }, 0)
  t.same(shown(house), ['a', 'b', 'c'])
  house.assertConsistent()
  await settle(house, [1, 2, 3])
  t.equal(house.rowCount('inbox-groups'), 0)
})

t.test('every device has its own', async t => {
  const house = open(t)
  await append(house, ['a'])
  await append(house, ['b', 'c'], 0, TABLET)
  t.same(shown(house), ['a'])
  t.same(shown(house, 0, TABLET), ['b', 'c'])
  t.same(shown(house, 0, PHONE, BOB), [])
})

t.test('settled messages are gone, and settling them again changes nothing', async t => {
  const house = open(t)
  await append(house, ['a', 'b', 'c'])
  for (let times = 0; times < 2; times++) {
    await settle(house, [1, 3, 17, 0])
    t.same(shown(house), ['b'])
    t.equal(house.head().count, 1)
  }
  await settle(house, [2], BOB)
  await append(house, ['d'])
  t.same(shown(house), ['b', 'd'])
  house.assertConsistent()
})

t.test('messages, epoch and offsets are there after a restart', async t => {
  const folder = t.testdir()
  const before = open(t, { folder })
  await append(before, ['a', 'b'])
  await settle(before, [1])
  const head = before.head()
  await before.database.close()
  const after = open(t, { folder })
  t.same(after.head(), head)
  t.same(shown(after), ['b'])
  t.same(await append(after, ['c']), [3])
})

t.test(
  'an inbox that nothing was put into has no epoch; one that was erased begins anew in another',
  async t => {
    const house = open(t)
    const { database, inbox } = house
    t.same(house.head(), { epoch: 0, nextOffset: 1, givenBelow: 1, lostOffset: 0, count: 0 })
    await append(house, ['a', 'b'])
    await invite(house, 1, 0)
    await append(house, ['x'], 0, TABLET)
    const { epoch } = house.head()
    t.ok(epoch > 0 && epoch < 2 ** 32 && Number.isInteger(epoch))
    await database.change(change => inbox.eraseDevice(change, ANN, PHONE))
    t.same([shown(house), shown(house, 0, TABLET)], [[], ['x']])
    t.equal(house.head().epoch, 0)
    t.same(await append(house, ['c']), [1])
    t.not(house.head().epoch, epoch)
    house.assertConsistent()
  },
)

t.test('nothing remains of an erased user, and everything of the rest', async t => {
  const house = open(t)
  const { database, inbox } = house
  await append(house, ['a'])
  await append(house, ['b'], 0, TABLET)
  await invite(house, 1, 0)
  await database.change(change => inbox.append(change, BOB, PHONE, { item: dev('c') }), 0)
  await database.change(change => inbox.eraseOf(change, ANN))
  t.same([shown(house), shown(house, 0, TABLET), shown(house, 0, PHONE, BOB)], [[], [], ['c']])
  house.assertConsistent()
  await house.sweep(8 * DAY_MS)
  t.same(['inbox', 'inbox-heads', 'expiries'].map(house.rowCount), [0, 1, 0])
})

t.test('a restored store goes on in new epochs with the same messages', async t => {
  const house = open(t)
  await append(house, ['a'])
  const before = house.head()
  await house.database.change(change => house.inbox.renewEpochs(change))
  const after = house.head()
  t.not(after.epoch, before.epoch)
  t.same({ ...after, epoch: 0 }, { ...before, epoch: 0 })
  t.same(shown(house), ['a'])
})

t.test('there is room for five hundred: the oldest goes, counted and remembered as lost', async t => {
  const house = open(t)
  const { inbox } = house
  await append(house, ['first', 'second'])
  await append(
    house,
    Array.from({ length: 498 }, (_, at) => `${at}`),
  )
  t.same([house.head().count, inbox.dropped.get('full'), house.head().lostOffset], [500, 0, 0])
  await append(house, ['one more', 'and another'])
  const all = shown(house)
  t.same([all.length, all[0], all.at(-1)], [500, '0', 'and another'])
  t.same([house.head().count, inbox.dropped.get('full'), house.head().lostOffset], [500, 2, 2])
  await append(house, ['elsewhere'], 0, TABLET)
  t.equal(inbox.dropped.get('full'), 2)
  house.assertConsistent()
})

t.test('an invitation that had to make room is not found by its call any more', async t => {
  const house = open(t)
  await invite(house, 1, 0)
  await append(
    house,
    Array.from({ length: 500 }, () => 'x'),
  )
  t.notOk(await drop(house, 1n))
  house.assertConsistent()
})

t.test('a message is kept for seven days', async t => {
  const house = open(t)
  const { inbox, sweep } = house
  await append(house, ['a'], 1_000)
  await append(house, ['b'], 2_000)
  await sweep(1_000 + 7 * DAY_MS - 1)
  t.same(shown(house, 1_000 + 7 * DAY_MS - 1), ['a', 'b'])
  t.same(shown(house, 1_000 + 7 * DAY_MS), ['b'], 'not shown, though no sweep has come by')
  t.equal(house.head().count, 2)
  await sweep(1_000 + 7 * DAY_MS)
  t.same([house.head().count, inbox.dropped.get('expired'), house.head().lostOffset], [1, 1, 1])
  await sweep(2_000 + 7 * DAY_MS)
  t.same([house.head().count, inbox.dropped.get('expired')], [0, 2])
  house.assertConsistent()
})

t.test('a message with a time of its own is not shown after it, and counts as no loss', async t => {
  const house = open(t)
  const { database, inbox, sweep } = house
  await database.change(change => {
    inbox.append(change, ANN, PHONE, { item: dev('short'), expiresAtMs: 30_000 })
    inbox.append(change, ANN, PHONE, { item: dev('long'), expiresAtMs: 90 * DAY_MS })
  }, 0)
  t.same(shown(house, 29_999), ['short', 'long'])
  t.same(shown(house, 30_000), ['long'])
  await sweep(30_000)
  t.same([house.head().count, inbox.dropped.get('expired'), house.head().lostOffset], [1, 0, 0])
  await sweep(7 * DAY_MS)
  t.equal(house.head().count, 0, 'no longer than seven days')
})

t.test('an invitation past its time is not shown, and the word of its room takes its place', async t => {
  const house = open(t)
  const { sweep } = house
  await invite(house, 1, 0)
  await append(house, ['a'], 1)
  t.same(shown(house, RING_MS - 1), ['call_invitation 1', 'a'])
  await sweep(RING_MS + 5_000)
  t.same(shown(house, RING_MS), ['a'])
  t.ok(await drop(house, 1n))
  await sweep(10 * RING_MS)
  t.same(shown(house, 10 * RING_MS), ['a'], 'nothing but what the room says')
  house.assertConsistent()
})

t.test('where a room says nothing for a minute, the call was missed, and the device hears so', async t => {
  const house = open(t)
  const { inbox, news, sweep } = house
  await invite(house, 1, 0)
  await append(house, ['a'], 1)
  news.length = 0
  await sweep(2 * RING_MS - 1)
  t.same([shown(house, 2 * RING_MS - 1), news], [['a'], []])
  await sweep(2 * RING_MS)
  t.same([shown(house, 2 * RING_MS), news], [['a', 'call_missed 1'], [`${ANN}_${PHONE}`]])
  const { item } = house.after(PHONE, 2, 1, 2 * RING_MS)[0]!
  const notice = item.kind === 'notice' ? noticeOf(item) : undefined
  t.match(notice, {
    callerId: BOB,
    callerName: 'Bobby',
    displayName: 'Bob',
    alias: 'Bobby',
    isContact: true,
    isVideo: false,
    atMs: RING_MS,
    sentAtMs: 2 * RING_MS,
  })
  t.match(notice?.eventId, /^[A-Za-z0-9_-]{22}$/)
  t.notOk(JSON.stringify(notice, (_, value) => String(value)).includes('the-key'))
  t.equal(inbox.dropped.get('expired'), 0)
  await sweep(9 * DAY_MS)
  t.equal(house.head().count, 0, 'that too is kept for seven days')
  house.assertConsistent()
})

t.test('an invitation that was settled leaves nothing behind', async t => {
  const house = open(t)
  const { sweep } = house
  const offset = await invite(house, 1, 0)
  await settle(house, [offset])
  t.notOk(await drop(house, 1n))
  await sweep(DAY_MS)
  t.same(shown(house, DAY_MS), [])
})

t.test('a message replaces its invitation, and no other', async t => {
  const house = open(t)
  const { database, inbox } = house
  for (const callId of [1, 2]) await invite(house, callId, 0)
  const replace = (callId: bigint) =>
    database.change(
      change => inbox.append(change, ANN, PHONE, { item: dev(`over ${callId}`), replaces: callId }),
      0,
    )
  for (const callId of [1n, 1n, 3n]) await replace(callId)
  t.same(shown(house), ['call_invitation 2', 'over 1', 'over 1', 'over 3'])
  house.assertConsistent()
})

t.test('a device has one invitation to a call, the last one', async t => {
  const house = open(t)
  for (const callId of [1, 2, 1]) await invite(house, callId, 0)
  t.same(shown(house), ['call_invitation 2', 'call_invitation 1'])
  t.equal(house.after(PHONE, 0, 10, 0)[1]!.offset, 3)
  t.notOk(await drop(house, 1n, TABLET))
  t.same([await drop(house, 3n), await drop(house, 1n), await drop(house, 1n)], [false, true, false])
  t.same(shown(house), ['call_invitation 2'])
  house.assertConsistent()
})

t.test('a device hears of its news once for a change, when they are durable', async t => {
  const house = open(t)
  const { database, inbox, news } = house
  const durable = database.change(change => {
    for (const device of [PHONE, TABLET, PHONE]) inbox.append(change, ANN, device, { item: dev('a') })
    inbox.settle(change, ANN, PHONE, [1])
    t.same(news, [])
  }, 0)
  const next = append(house, ['b'])
  await durable
  t.same(news.slice(0, 2), [`${ANN}_${PHONE}`, `${ANN}_${TABLET}`])
  await next
  t.same(news.slice(2), [`${ANN}_${PHONE}`], 'and again for the next one')
})

t.test('a failed change is never announced, and does not hush the next one', async t => {
  const house = open(t)
  const failed = house.database.change(change => {
    house.inbox.append(change, ANN, PHONE, { item: dev('a') })
    throw new Error('changed its mind')
  }, 0)
  const next = append(house, ['b'])
  await t.rejects(failed, { message: 'changed its mind' })
  await next
  t.same(house.news, [`${ANN}_${PHONE}`])
})

t.test('an inbox has one ending, however often it rings while something else waits', async t => {
  const house = open(t)
  const endings: number[] = []
  let oldest = await append(house, ['a'])
  for (let call = 1; call <= 50; call++) {
    const nowMs = call * 5 * RING_MS
    const next = await append(house, ['a'], nowMs)
    await invite(house, call, nowMs)
    await drop(house, BigInt(call))
    // The oldest goes, so that the waiting ones end later.
    await settle(house, oldest)
    oldest = next
    await house.sweep(nowMs + 4 * RING_MS)
    endings.push(house.rowCount('expiries'))
  }
  t.same([...new Set(endings)], [1])
  await house.sweep(30 * DAY_MS)
  t.equal(house.rowCount('expiries'), 0)
})

t.test('settled messages leave no endings behind', async t => {
  const house = open(t)
  for (let minute = 0; minute < 50; minute++) {
    const nowMs = minute * 60_000
    const offsets = await append(house, ['a', 'b', 'c'], nowMs)
    await settle(house, offsets)
  }
  t.equal(house.rowCount('expiries'), 1)
  await house.sweep(8 * DAY_MS)
  t.equal(house.rowCount('expiries'), 0)
  await append(house, ['d'], 8 * DAY_MS)
  await house.sweep(15 * DAY_MS)
  t.same(shown(house, 15 * DAY_MS), [], 'and the next one ends in its time')
})

t.test('nothing of a message can be read in the file', async t => {
  const house = open(t)
  await invite(house, 1, 0)
  await settle(house, [1])
  await append(house, ['a-label-of-a-message'])
  const file = readFileSync(join(house.folder, 'store', 'data.mdb'))
  for (const text of ['the-key-of-this-device', 'a-label-of-a-message']) t.notOk(file.includes(text), text)
})

t.test('what another secret sealed is not shown, not in the way, and goes in its time', async t => {
  const folder = t.testdir()
  const before = open(t, { folder, secret: 1 })
  await append(before, ['old'])
  await invite(before, 1, 0)
  await before.database.close()
  const after = open(t, { folder, secret: 2 })
  await append(after, ['new'], 1)
  t.same(shown(after, 1), ['new'])
  await after.sweep(7 * DAY_MS)
  t.equal(after.head().count, 1)
  after.assertConsistent()
})

t.test('a long random run is as a list on paper has it', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const pick = (count: number) => Math.floor(random() * count)
  const folder = t.testdir()
  let house = open(t, { folder })
  let model = new InboxModel()
  let nowMs = 0
  let lostBefore = { full: 0, expired: 0 }
  let differences = 0
  const steps: (() => Promise<unknown>)[] = [
    async () => {
      const count = random() < 0.02 ? 300 : 1 + pick(4)
      const entries = Array.from({ length: count }, () => ({
        label: `${pick(1e6)}`,
        queue: `dev.${pick(3)}`,
        body: new Uint8Array(random() < 0.1 ? 2_000 : 2),
        expiresAtMs: random() < 0.3 ? nowMs + pick(5 * RING_MS) : Number.POSITIVE_INFINITY,
      }))
      for (const entry of entries) model.append(entry, nowMs)
      await house.database.change(change => {
        for (const { label, queue, body, expiresAtMs } of entries) {
          house.inbox.append(change, ANN, PHONE, { item: dev(label, queue, body), expiresAtMs })
        }
      }, nowMs)
    },
    async () => {
      const callId = 1 + pick(4)
      const expiresAtMs = nowMs + RING_MS
      const label = `call_invitation ${callId}`
      model.append({ queue: 'calls', label, callId: BigInt(callId), expiresAtMs }, nowMs)
      await invite(house, callId, nowMs)
    },
    async () => {
      const isGone = random() < 0.2
      const share = random() < 0.3 ? 1 : 0.4
      const offsets = isGone ? [pick(model.nextOffset + 5)] : model.offsets.filter(() => random() < share)
      model.settle(offsets)
      await settle(house, offsets)
    },
    async () => {
      const callId = BigInt(1 + pick(4))
      const wasThere = model.drop(callId)
      if (wasThere !== (await drop(house, callId))) differences += 1
    },
    async () => {
      nowMs += random() < 0.1 ? pick(4 * DAY_MS) : pick(2 * RING_MS)
    },
    async () => {
      model.sweep(nowMs)
      await house.sweep(nowMs)
    },
    async () => {
      if (random() > 0.1) return
      await house.database.close()
      lostBefore = { ...model.lost }
      house = open(t, { folder })
    },
    async () => {
      if (random() > 0.03) return
      const lost = model.lost
      model = new InboxModel()
      model.lost = lost
      await house.database.change(change => house.inbox.eraseDevice(change, ANN, PHONE))
    },
  ]
  const isAsOnPaper = () => {
    const head = house.head()
    const [offset, limit, queue] = [pick(model.nextOffset), pick(20), `dev.${pick(3)}`]
    const seen = (messages: ReturnType<InboxStore['after']>) =>
      messages.map(({ offset, item, expiresAtMs }) => `${offset} ${labelOf(item)} ${expiresAtMs}`)
    const paper = (isWanted: (message: { queue: string; offset: number }) => boolean) =>
      model
        .shown(nowMs)
        .filter(isWanted)
        .map(({ offset, label, expiresAtMs }) => `${offset} ${label} ${expiresAtMs}`)
    const pairs = [
      [seen(house.after(PHONE, 0, 1_000, nowMs)), paper(() => true)],
      [
        seen(house.after(PHONE, offset, limit, nowMs, queue)),
        paper(message => message.queue === queue && message.offset > offset).slice(0, limit),
      ],
      [head.nextOffset, model.nextOffset],
      [head.lostOffset, model.lostOffset],
      [house.inbox.dropped.get('full'), model.lost.full - lostBefore.full],
      [house.inbox.dropped.get('expired'), model.lost.expired - lostBefore.expired],
    ]
    return pairs.every(([one, other]) => JSON.stringify(one) === JSON.stringify(other))
  }
  for (let step = 0; step < 600 && differences === 0; step++) {
    await steps[pick(steps.length)]!()
    if (!isAsOnPaper()) differences += 1
    house.assertConsistent()
  }
  t.equal(differences, 0, `as on paper; CALLSIGN_SEED=${seed} runs it again`)
})

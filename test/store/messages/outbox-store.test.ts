/** Waiting messages: by channel and time, sealed, gone when they are done, later when they are postponed. */

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Lane, OutboxMessage } from '../../../src/domain/messages/outbox-message.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { SignalError } from '../../../src/errors.ts'
import { LmdbView } from '../../../src/store/engine/lmdb-change.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { OUTBOX } from '../../../src/store/messages/message-tables.ts'
import type { Settlement, WaitingMessage } from '../../../src/store/messages/outbox-queue.ts'
import { OutboxStore } from '../../../src/store/messages/outbox-store.ts'
import { SealedValues } from '../../../src/store/tables/sealed-values.ts'

function open(t: Test, { folder = t.testdir(), secret = 7 } = {}) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const added: Lane[] = []
  const secrets = deriveSecrets(Buffer.alloc(32, secret))
  const outbox = new OutboxStore(database, secrets, randomBytes)
  database.subscribe('outbox-news', ({ lane }) => added.push(lane))
  const add = (atMs: number, ...messages: readonly OutboxMessage[]) =>
    database.change(change => {
      for (const message of messages) outbox.add(change, message)
    }, atMs)
  const rowCount = () => database.rowCount(database.storedRows('outbox'))
  return { database, secrets, outbox, add, added, rowCount }
}

function mail(to: string, channel: 'mail' | 'sms' = 'mail'): OutboxMessage {
  return {
    channel,
    to,
    language: 'en',
    letter: { kind: 'otp', otp: '424242', lifetimeS: 300, binds: false },
    expiresAtMs: 9e12,
  }
}

/** As a sender that has just started finds them. */
function recipients(outbox: OutboxStore, lane: Lane, nowMs: number, countMax = 100): unknown[] {
  return addressees(outbox.queue(lane).take(nowMs, countMax))
}

function addressees(waiting: readonly WaitingMessage[]): unknown[] {
  return waiting.map(({ message }) => 'to' in message && message.to)
}

function gone(waiting: readonly WaitingMessage[]): Settlement[] {
  return waiting.map(each => ({ waiting: each }))
}

t.test('messages wait in order of their time, each channel by itself', async t => {
  const { outbox, add } = open(t)
  await add(30, mail('late@a.b'))
  await add(10, mail('+1', 'sms'))
  await add(20, mail('early@a.b'))
  t.same(recipients(outbox, 'mail', 100), ['early@a.b', 'late@a.b'])
  t.same(recipients(outbox, 'mail', 100, 1), ['early@a.b'])
  t.same(recipients(outbox, 'mail', 20), ['early@a.b'])
  t.same(recipients(outbox, 'mail', 19), [])
  t.same(recipients(outbox, 'sms', 100), ['+1'])
  t.same(recipients(outbox, 'apns', 100), [])
  t.same(recipients(outbox, 'apple', 100), [])
})

t.test('a message comes back as it was handed in, and as new', async t => {
  const { database, secrets, outbox, add } = open(t)
  const message: OutboxMessage = {
    channel: 'push',
    userId: (2n ** 64n - 1n) as never,
    deviceId: 7n as never,
    notice: { kind: 'session_revoked', reason: 'account_deleted', eventId: 'e', sentAtMs: 5 },
    expiresAtMs: 1_767_225_600_123,
    provider: 'apns',
  }
  await add(0, message)
  // The store that has written it remembers it, the other one reads.
  for (const store of [outbox, new OutboxStore(database, secrets, randomBytes)]) {
    t.same(
      store
        .queue('apns')
        .take(0, 10)
        .map(({ message, row }) => ({ message, tries: row.tries })),
      [{ message, tries: 0 }],
    )
  }
})

t.test('the sender hears of a message once it is durable, and never of a rolled-back one', async t => {
  const { database, add, added } = open(t)
  const adding = add(0, mail('a@b.c'))
  t.same(added, [])
  await adding
  t.same(added, ['mail'])
  const failing = database.change(() => {
    throw new Error('refused before anything was written')
  })
  await t.rejects(failing)
  t.same(added, ['mail'])
})

t.test('a settled message is gone', async t => {
  const { outbox, add } = open(t)
  await add(0, mail('one@a.b'))
  await add(1, mail('two@a.b'))
  const queue = outbox.queue('mail')
  await queue.settle(gone(queue.take(5, 1)))
  t.same(recipients(outbox, 'mail', 5), ['two@a.b'])
})

t.test('a postponed message comes later, and counts its tries', async t => {
  const { outbox, add, rowCount } = open(t)
  await add(0, mail('a@b.c'))
  const queue = outbox.queue('mail')
  const [waiting] = queue.take(0, 1)
  await queue.settle([{ waiting: waiting!, untilMs: 1_000 }])
  t.same(queue.take(999, 10), [])
  t.equal(queue.nextDueMs, 1_000)
  const [again] = queue.take(1_000, 10)
  t.equal(again!.row.tries, 1)
  await queue.settle([{ waiting: again!, untilMs: 2_000 }])
  t.equal(queue.take(2_000, 10)[0]!.row.tries, 2)
  t.equal(rowCount(), 1)
})

t.test('a message settled since is not postponed back into life', async t => {
  const { outbox, add } = open(t)
  await add(0, mail('a@b.c'))
  const queue = outbox.queue('mail')
  const [waiting] = queue.take(0, 1)
  await queue.settle(gone([waiting!]))
  await queue.settle([{ waiting: waiting!, untilMs: 1_000 }])
  t.same(recipients(outbox, 'mail', 9_999), [])
})

t.test('sent and postponed messages are settled in one change', async t => {
  const { database, outbox, add } = open(t)
  for (let at = 0; at < 6; at++) await add(at, mail(`${at}@a.b`))
  const queue = outbox.queue('mail')
  const change = database.change.bind(database)
  let changes = 0
  database.change = (write, atMs) => {
    changes++
    return change(write, atMs)
  }
  const taken = queue.take(9, 6)
  await queue.settle(
    taken.map((waiting, at) => (at % 2 === 0 ? { waiting } : { waiting, untilMs: 100 - at })),
  )
  t.equal(changes, 1)
  t.same(addressees(queue.take(100, 10)), ['5@a.b', '3@a.b', '1@a.b'])
})

t.test('the time of the next message is known once it has been looked for', async t => {
  const { outbox, add } = open(t)
  const queue = outbox.queue('mail')
  t.same(queue.take(0, 10), [])
  t.equal(queue.nextDueMs, undefined)
  await add(500, mail('a@b.c'))
  await add(400, mail('a@b.c'))
  await add(100, mail('+1', 'sms'))
  t.equal(queue.nextDueMs, 400)
  t.equal(queue.take(400, 10).length, 1)
  t.equal(queue.nextDueMs, 500)
  t.equal(queue.take(500, 10).length, 1)
  t.equal(queue.nextDueMs, undefined, 'those that are taken are not asked for here')
})

t.test('a message is taken once until it is settled, whatever is written before and behind it', async t => {
  const { outbox, add } = open(t)
  const queue = outbox.queue('mail')
  await add(1_000, mail('second@a.b'))
  t.same(addressees(queue.take(1_000, 10)), ['second@a.b'])
  // As by a change with an earlier instant, or a clock that was set back.
  await add(10, mail('first@a.b'))
  await add(2_000, mail('third@a.b'))
  t.same(addressees(queue.take(10, 10)), ['first@a.b'])
  t.same(addressees(queue.take(2_000, 10)), ['third@a.b'])
  t.equal(queue.takenCount, 3)
  t.same(addressees(outbox.queue('mail').take(2_000, 10)), ['first@a.b', 'second@a.b', 'third@a.b'])
})

t.test('a message that could not be settled is not taken again by the same queue', async t => {
  const { database, outbox, add } = open(t)
  await add(0, mail('a@b.c'))
  const queue = outbox.queue('mail')
  const taken = queue.take(0, 1)
  const { change } = database
  database.change = () => Promise.reject(new SignalError('STORE_UNAVAILABLE', 'no room'))
  await t.rejects(queue.settle(gone(taken)), { code: 'STORE_UNAVAILABLE' })
  database.change = change
  await add(0, mail('before@b.c'))
  t.same(addressees(queue.take(9, 10)), ['before@b.c'])
  t.same(recipients(outbox, 'mail', 9), ['a@b.c', 'before@b.c'], 'a new one takes it')
})

/** Rows that were read in views, and rows that were opened, since it was asked last. */
function countRows(t: Test): () => { read: number; opened: number } {
  const counts = { read: 0, opened: 0 }
  const { range } = LmdbView.prototype
  LmdbView.prototype.range = function* (this: LmdbView, ...args: Parameters<typeof range>) {
    for (const row of range.apply(this, args)) {
      counts.read++
      yield row
    }
  } as typeof range
  const { open } = SealedValues.prototype
  t.teardown(() => {
    SealedValues.prototype.open = open
    LmdbView.prototype.range = range
  })
  SealedValues.prototype.open = function (sealed) {
    counts.opened++
    return open.call(this, sealed)
  }
  return () => {
    const since = { ...counts }
    Object.assign(counts, { read: 0, opened: 0 })
    return since
  }
}

t.test('each message that is sent is opened once, however many wait and are under way', async t => {
  const { outbox, add } = open(t)
  const counted = countRows(t)
  const [messages, inFlightMax] = [2_000, 128]
  await Promise.all(Array.from({ length: messages }, (_, at) => add(at, mail(`${at}@a.b`))))
  const queue = outbox.queue('mail')
  const underWay: WaitingMessage[] = []
  for (let sent = 0; sent < messages; ) {
    underWay.push(...queue.take(messages, inFlightMax - queue.takenCount))
    const settled = underWay.splice(0, 7)
    await queue.settle(gone(settled))
    sent += settled.length
  }
  const { read, opened } = counted()
  t.equal(opened, messages)
  t.ok(read <= messages * 1.2, `${read} rows were read for ${messages} messages`)
})

/** Adds a message, and its row again and again, each a millisecond later. */
async function addMany({ database, add }: ReturnType<typeof open>, count: number): Promise<void> {
  await add(0, mail('a@b.c'))
  const [first] = database.view(view => [...view.range(OUTBOX)])
  await database.change(change => {
    for (let at = 1; at < count; at++) {
      const key = Buffer.from(first!.key)
      key.writeUIntBE(at, 1, 6)
      change.put(OUTBOX, key, first!.value)
    }
  })
}

t.test('100,000 messages that wait for a provider that is down cost no row while they wait', async t => {
  const house = open(t)
  await addMany(house, 100_000)
  const counted = countRows(t)
  const queue = house.outbox.queue('mail')
  const underWay = queue.take(100_000, 128)
  t.same(counted(), { read: 129, opened: 128 })
  for (let wakes = 0; wakes < 1_000; wakes++) queue.take(100_000 + wakes, 128 - queue.takenCount)
  t.same(counted(), { read: 0, opened: 0 }, 'as many are with the sender as it takes')
  await queue.settle(underWay.map(waiting => ({ waiting, untilMs: 900_000 })))
  queue.take(100_000, 128)
  t.same(counted(), { read: 129, opened: 128 }, 'those that were tried do not stand in the way of the others')
})

t.test('what all waits for a later time is not looked at before', async t => {
  const { outbox, add } = open(t)
  const counted = countRows(t)
  await add(60_000, ...Array.from({ length: 5_000 }, () => mail('a@b.c')))
  const queue = outbox.queue('mail')
  for (let nowMs = 0; nowMs < 60_000; nowMs += 100) t.same(queue.take(nowMs, 128), [])
  t.same(counted(), { read: 1, opened: 0 })
  t.equal(queue.take(60_000, 128).length, 128)
})

t.test('messages are there after a restart, and no code or address can be read in the file', async t => {
  const folder = t.testdir()
  const before = open(t, { folder })
  await before.add(0, mail('someone@example.org'))
  await before.database.close()
  const file = readFileSync(join(folder, 'store', 'data.mdb'))
  t.notOk(file.includes('someone@example.org'))
  t.notOk(file.includes('424242'))
  t.same(recipients(open(t, { folder }).outbox, 'mail', 0), ['someone@example.org'])
})

t.test('what another secret sealed can not be sent and does not stay in the way', async t => {
  const folder = t.testdir()
  const before = open(t, { folder, secret: 1 })
  await before.add(0, mail('old@a.b'))
  await before.database.close()
  const { database, outbox, add, rowCount } = open(t, { folder, secret: 2 })
  await add(1, mail('new@a.b'))
  t.same(recipients(outbox, 'mail', 5), ['new@a.b'])
  await database.change(() => undefined)
  t.equal(rowCount(), 1)
})

function push(deviceId: bigint): OutboxMessage {
  const notice = { kind: 'session_revoked', reason: 'signed_out', eventId: 'e', sentAtMs: 0 } as const
  const device = { userId: 1n as never, deviceId: deviceId as never }
  return { channel: 'push', ...device, notice, expiresAtMs: 9e12, provider: 'apns' }
}

function devices(waiting: readonly WaitingMessage[]): unknown[] {
  return waiting.map(({ message }) => 'deviceId' in message && message.deviceId)
}

t.test('pushes of one change share rows, of at most 16, and come in their order', async t => {
  const { outbox, add, rowCount } = open(t)
  const all = Array.from({ length: 41 }, (_, at) => BigInt(at))
  await add(5, ...all.slice(0, 40).map(push))
  await add(5, push(40n))
  t.equal(rowCount(), 4)
  t.same(devices(outbox.queue('apns').take(5, 100)), all)
})

t.test('a row is there until the last of its messages is settled', async t => {
  const { outbox, add } = open(t)
  await add(5, push(0n), push(1n), push(2n))
  const queue = outbox.queue('apns')
  const [first, second, third] = queue.take(5, 100)
  await queue.settle([{ waiting: first! }, { waiting: second!, untilMs: 50 }])
  t.equal(queue.takenCount, 1)
  t.same(devices(outbox.queue('apns').take(5, 100)), [0n, 1n, 2n], 'for another that starts')
  await queue.settle([{ waiting: third! }])
  t.same(devices(outbox.queue('apns').take(50, 100)), [1n])
})

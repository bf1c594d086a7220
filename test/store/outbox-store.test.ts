/** Waiting messages: by channel and time, sealed, gone when they are done, later when they are postponed. */

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Channel, Outgoing } from '../../src/domain/outgoing.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { Database } from '../../src/store/database.ts'
import { OutboxStore } from '../../src/store/outbox-store.ts'

function open(t: Test, { folder = t.testdir(), secret = 7 } = {}) {
  const database = Database.open(folder)
  t.teardown(() => database.close())
  const added: Channel[] = []
  const secrets = deriveSecrets(Buffer.alloc(32, secret))
  const outbox = new OutboxStore(database, secrets, randomBytes, channel => added.push(channel))
  return { database, outbox, added, folder }
}

function mail(to: string, channel: 'mail' | 'sms' = 'mail'): Outgoing {
  return {
    channel,
    to,
    language: 'en',
    letter: { kind: 'otp', otp: '424242', lifetimeS: 300 },
    expiresAtMs: 9e12,
  }
}

function recipients(outbox: OutboxStore, channel: Channel, nowMs: number, countMax = 100): unknown[] {
  return outbox.due(channel, nowMs, countMax).map(({ message }) => 'to' in message && message.to)
}

t.test('messages wait in order of their time, each channel by itself', async t => {
  const { database, outbox } = open(t)
  await database.commit(() => {
    outbox.add(mail('late@a.b'), 30)
    outbox.add(mail('+1', 'sms'), 10)
    outbox.add(mail('early@a.b'), 20)
  })
  t.same(recipients(outbox, 'mail', 100), ['early@a.b', 'late@a.b'])
  t.same(recipients(outbox, 'mail', 100, 1), ['early@a.b'])
  t.same(recipients(outbox, 'mail', 20), ['early@a.b'])
  t.same(recipients(outbox, 'mail', 19), [])
  t.same(recipients(outbox, 'sms', 100), ['+1'])
  t.same(recipients(outbox, 'push', 100), [])
  t.same(recipients(outbox, 'apple', 100), [])
})

t.test('a message comes back as it was handed in, and as new', async t => {
  const { database, outbox } = open(t)
  const message: Outgoing = {
    channel: 'push',
    userId: (2n ** 64n - 1n) as never,
    deviceId: 7n as never,
    notice: { kind: 'session_revoked', reason: 'account_deleted', eventId: 'e', sentAtMs: 5 },
    expiresAtMs: 1_767_225_600_123,
  }
  await database.commit(() => outbox.add(message, 0))
  t.same(
    outbox.due('push', 0, 10).map(({ message, tries }) => ({ message, tries })),
    [{ message, tries: 0 }],
  )
})

t.test('who sends is told once it is durable, and not of what was given up', async t => {
  const { database, outbox, added } = open(t)
  const adding = database.commit(() => outbox.add(mail('a@b.c'), 0))
  t.same(added, [])
  await adding
  t.same(added, ['mail'])
  const failing = database.commit(() => {
    throw new Error('refused before anything was written')
  })
  await t.rejects(failing)
  t.same(added, ['mail'])
})

t.test('what is done is gone', async t => {
  const { database, outbox } = open(t)
  await database.commit(() => {
    outbox.add(mail('one@a.b'), 0)
    outbox.add(mail('two@a.b'), 1)
  })
  await outbox.done(outbox.due('mail', 5, 1)[0]!.key)
  t.same(recipients(outbox, 'mail', 5), ['two@a.b'])
})

t.test('what is postponed comes later, and counts its tries', async t => {
  const { database, outbox } = open(t)
  await database.commit(() => outbox.add(mail('a@b.c'), 0))
  await outbox.postpone(outbox.due('mail', 0, 1)[0]!, 1_000)
  t.same(recipients(outbox, 'mail', 999), [])
  t.equal(outbox.nextDueMs('mail', 999), 1_000)
  const [again] = outbox.due('mail', 1_000, 10)
  t.equal(again!.tries, 1)
  await outbox.postpone(again!, 2_000)
  t.equal(outbox.due('mail', 2_000, 10)[0]!.tries, 2)
  t.equal(database.table('outbox').getKeysCount(), 1)
})

t.test('a message that was done meanwhile is not postponed back into life', async t => {
  const { database, outbox } = open(t)
  await database.commit(() => outbox.add(mail('a@b.c'), 0))
  const [waiting] = outbox.due('mail', 0, 1)
  await outbox.done(waiting!.key)
  await outbox.postpone(waiting!, 1_000)
  t.same(recipients(outbox, 'mail', 9_999), [])
})

t.test('the next message of a channel that is not due yet is known by its time', async t => {
  const { database, outbox } = open(t)
  t.equal(outbox.nextDueMs('mail', 0), undefined)
  await database.commit(() => {
    outbox.add(mail('a@b.c'), 500)
    outbox.add(mail('a@b.c'), 400)
    outbox.add(mail('+1', 'sms'), 100)
  })
  t.equal(outbox.nextDueMs('mail', 0), 400)
  t.equal(outbox.nextDueMs('mail', 400), 500)
  t.equal(outbox.nextDueMs('mail', 500), undefined, 'those that are due are not asked for here')
  t.equal(outbox.nextDueMs('push', 0), undefined)
})

t.test('messages are there after a restart, and no code or address can be read in the file', async t => {
  const folder = t.testdir()
  const before = Database.open(folder)
  const old = new OutboxStore(before, deriveSecrets(Buffer.alloc(32, 7)), randomBytes, () => undefined)
  await before.commit(() => old.add(mail('someone@example.org'), 0))
  await before.close()
  const file = readFileSync(join(folder, 'store', 'data.mdb'))
  t.notOk(file.includes('someone@example.org'))
  t.notOk(file.includes('424242'))
  t.same(recipients(open(t, { folder }).outbox, 'mail', 0), ['someone@example.org'])
})

t.test('what another secret sealed can not be sent and does not stay in the way', async t => {
  const folder = t.testdir()
  const before = Database.open(folder)
  const old = new OutboxStore(before, deriveSecrets(Buffer.alloc(32, 1)), randomBytes, () => undefined)
  await before.commit(() => old.add(mail('old@a.b'), 0))
  await before.close()
  const { database, outbox } = open(t, { folder, secret: 2 })
  await database.commit(() => outbox.add(mail('new@a.b'), 1))
  t.same(recipients(outbox, 'mail', 5), ['new@a.b'])
  await database.commit(() => undefined)
  t.equal(database.table('outbox').getKeysCount(), 1)
})

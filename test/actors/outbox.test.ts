/** The outbox over a real store, with senders that tests answer for and a clock that they move. */

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import type { OutboxCommand } from '../../actors/messages.ts'
import { type OutboxDeps, outboxKind } from '../../actors/outbox.ts'
import type { DeliveryOutcome, Skipped } from '../../src/delivery/outcome.ts'
import { LANES, type Lane, laneOf, type OutboxMessage } from '../../src/domain/messages/outbox-message.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { SignalError } from '../../src/errors.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { OUTBOX } from '../../src/store/messages/message-tables.ts'
import { OutboxStore } from '../../src/store/messages/outbox-store.ts'
import { Sealed } from '../../src/store/tables/sealed.ts'
import { makeStage } from '../support/actors.ts'
import { Deferred } from '../support/deferred.ts'
import { storedTable } from '../support/stored-table.ts'

interface Sending {
  readonly to: string
  readonly outcome: Deferred<DeliveryOutcome | Skipped>
}

function makeOutbox(test: Test, options: { folder?: string } = {}) {
  const stage = makeStage()
  const database = LmdbStore.open(options.folder ?? test.testdir())
  test.teardown(() => database.close())
  const secrets = deriveSecrets(Buffer.alloc(32, 1))
  const refs = new Map<Lane, Ref<OutboxCommand>>()
  const store = new OutboxStore(database, secrets, randomBytes)
  database.subscribe('outbox-news', ({ lane }) => refs.get(lane)?.tell({ kind: 'wake' }))
  const sendings: Sending[] = []
  /** How often a queue was asked for messages. */
  let taken = 0
  const tried: string[] = []
  const errors: unknown[] = []
  const world: OutboxDeps = {
    queueOf(lane) {
      const queue = store.queue(lane)
      const take = queue.take.bind(queue)
      queue.take = (...asked) => {
        taken++
        return take(...asked)
      }
      return queue
    },
    send: message => {
      const outcome = new Deferred<DeliveryOutcome | Skipped>()
      sendings.push({ to: 'to' in message ? message.to : laneOf(message), outcome })
      return Promise.resolve(outcome)
    },
    onTried: (lane, { kind }) => tried.push(`${lane} ${kind}`),
    onNotWritten: error => errors.push(error),
  }
  const define = stage.system.define(outboxKind(world))
  for (const lane of LANES) refs.set(lane, define(lane))
  const until = async (isSo: () => boolean) => {
    for (let turns = 0; !isSo(); turns++) {
      if (turns > 20_000) throw new Error('it never came to that')
      await stage.world.settle()
    }
  }
  const addAt = (atMs: number, ...messages: OutboxMessage[]) =>
    database.change(change => {
      for (const message of messages) store.add(change, message)
    }, atMs)
  return {
    ...stage,
    database,
    /** When the mails that are in the store are due, in order, milliseconds since 1970. */
    dueTimes: () =>
      database.view(view =>
        [...view.keys(OUTBOX, { end: Buffer.of(2) })].map(key => Buffer.from(key).readUIntBE(1, 6)),
      ),
    sendings,
    tried,
    errors,
    until,
    add: (...messages: OutboxMessage[]) => addAt(stage.world.nowMs(), ...messages),
    addAt,
    taken: () => taken,
    wake: () => refs.get('mail')!.tell({ kind: 'wake' }),
  }
}

function mail(to: string, expiresAtMs = Number.MAX_SAFE_INTEGER / 1000): OutboxMessage {
  return { channel: 'mail', to, language: 'en', letter: { kind: 'address-tried' }, expiresAtMs }
}

const LATER = 1_700_000_000_000 + 86_400_000

t.test('a message added in a change is sent once it is durable, and then gone', async t => {
  const { sendings, until, add, dueTimes, world, tried } = makeOutbox(t)
  await add(mail('a@b.example', LATER))
  await until(() => sendings.length === 1)
  t.equal(sendings[0]!.to, 'a@b.example')
  t.equal(dueTimes().length, 1, 'still there: its outcome is not known')
  sendings[0]!.outcome.resolve({ kind: 'sent' })
  await until(() => dueTimes().length === 0)
  world.advance(86_400_000)
  await world.settle()
  t.equal(sendings.length, 1, 'sent once')
  t.same(tried, ['mail sent'])
})

t.test('what failed is tried again after pauses that grow, or as long as the other side asks', async t => {
  const { sendings, until, add, world, dueTimes } = makeOutbox(t)
  await add(mail('a@b.example', LATER))
  const pauses: number[] = []
  for (const outcome of [{}, {}, { afterMs: 100_000 }, {}] as const) {
    await until(() => sendings.length === 1)
    const failedAtMs = world.nowMs()
    sendings.shift()!.outcome.resolve({ kind: 'retry', reason: 'network', ...outcome })
    await until(() => dueTimes()[0]! > failedAtMs)
    const dueAtMs = dueTimes()[0]!
    pauses.push(Math.round((dueAtMs - failedAtMs) / 1000))
    await until(() => {
      world.advance(500)
      return sendings.length === 1
    })
    t.ok(world.nowMs() >= dueAtMs, 'not before it is due')
  }
  for (const [at, expected] of [1, 4, 100, 60].entries()) {
    t.ok(
      pauses[at]! >= expected && pauses[at]! <= expected + 2,
      `pause ${at} of ${pauses[at]} s is ${expected}`,
    )
  }
})

t.test('a message that is refused, or too late, is not tried again', async t => {
  const { sendings, until, add, dueTimes, tried, world } = makeOutbox(t)
  await add(mail('refused@b.example', LATER), mail('late@b.example', world.nowMs()))
  await until(() => sendings.length === 1)
  sendings[0]!.outcome.resolve({ kind: 'refused', reason: 'bad-recipient' })
  await until(() => dueTimes().length === 0)
  t.equal(sendings[0]!.to, 'refused@b.example')
  t.same(tried.sort(), ['mail refused', 'mail too-late'])
})

t.test('a code is not tried again when the next try would come too late', async t => {
  const { sendings, until, add, dueTimes, world } = makeOutbox(t)
  await add(mail('a@b.example', world.nowMs() + 900))
  await until(() => sendings.length === 1)
  sendings[0]!.outcome.resolve({ kind: 'retry', reason: 'network' })
  await until(() => dueTimes().length === 0)
  t.equal(sendings.length, 1)
})

t.test('a sender is handed so many at once and no more; the rest follow in order', async t => {
  const { sendings, until, add, dueTimes } = makeOutbox(t)
  await add(...Array.from({ length: 12 }, (_, at) => mail(`${at}@b.example`, LATER)))
  await until(() => sendings.length === 5)
  const seen: string[] = []
  while (seen.length < 12) {
    await until(() => sendings.length > 0)
    t.ok(sendings.length <= 5)
    const sending = sendings.shift()!
    seen.push(sending.to)
    sending.outcome.resolve({ kind: 'sent' })
  }
  await until(() => dueTimes().length === 0)
  t.equal(new Set(seen).size, 12)
})

t.test('one channel that hangs holds up no other', async t => {
  const { sendings, until, add } = makeOutbox(t)
  await add(...Array.from({ length: 9 }, (_, at) => mail(`${at}@b.example`, LATER)))
  await add({
    channel: 'sms',
    to: '+84',
    language: '',
    letter: { kind: 'address-tried' },
    expiresAtMs: LATER,
  })
  await until(() => sendings.some(({ to }) => to === '+84'))
  t.equal(sendings.length, 6)
})

t.test('a restart sends messages without an outcome', async t => {
  const folder = t.testdir()
  const first = makeOutbox(t, { folder })
  await first.add(mail('a@b.example', LATER), mail('b@b.example', LATER))
  await first.until(() => first.sendings.length === 2)
  first.sendings[0]!.outcome.resolve({ kind: 'sent' })
  await first.until(() => first.dueTimes().length === 1)
  await first.database.close()
  const second = makeOutbox(t, { folder })
  second.wake()
  await second.until(() => second.sendings.length === 1)
  t.equal(second.sendings[0]!.to, first.sendings[1]!.to)
})

t.test('while the store can not note outcomes, no message is sent again, and none is lost', async t => {
  const { sendings, until, add, addAt, world, database, errors } = makeOutbox(t)
  const change = database.change.bind(database)
  await add(mail('a@b.example', LATER), mail('b@b.example', LATER), callPush('apns', world.nowMs() + 60_000))
  await until(() => sendings.length === 3)
  const refuse = async () => {
    throw new SignalError('STORE_UNAVAILABLE', 'no room')
  }
  database.change = refuse
  for (const { to, outcome } of sendings.splice(0)) {
    const isLater = to === 'b@b.example'
    outcome.resolve(isLater ? { kind: 'retry', reason: 'smtp-450', isOfMessage: true } : { kind: 'sent' })
  }
  const rows = () => database.view(view => view.count(OUTBOX))
  for (let seconds = 0; seconds < 30; seconds++) {
    await world.settle()
    world.advance(1_000)
  }
  t.same([sendings.length, rows()], [0, 3])
  t.ok(errors.length > 20 && errors.length <= 60, `${errors.length} writes were tried`)
  database.change = change
  await addAt(world.nowMs(), mail('c@b.example', LATER))
  await until(() => {
    world.advance(500)
    return sendings.length === 2
  })
  t.same(sendings.map(({ to }) => to).sort(), ['b@b.example', 'c@b.example'])
  for (const { outcome } of sendings) outcome.resolve({ kind: 'sent' })
  await until(() => rows() === 0)
})

t.test('waiting messages are unreadable in the store’s file', async t => {
  const { add, database, until, dueTimes } = makeOutbox(t)
  await add({
    channel: 'mail',
    to: 'someone@b.example',
    language: 'en',
    letter: { kind: 'otp', otp: '918273', lifetimeS: 300, binds: false },
    expiresAtMs: LATER,
  })
  await until(() => dueTimes().length === 1)
  const rows = database.view(view =>
    [...view.range(storedTable('outbox'))].map(({ value }) => Buffer.from(value).toString('latin1')),
  )
  t.equal(rows.length, 1)
  t.notMatch(rows[0]!, /918273|someone/)
})

t.test('what another secret sealed keeps nothing that stands behind it waiting', async t => {
  const folder = t.testdir()
  const before = LmdbStore.open(folder)
  const secrets = deriveSecrets(Buffer.alloc(32, 2))
  const old = new OutboxStore(before, secrets, randomBytes)
  // More than are sent at once.
  await before.change(change => {
    for (let count = 0; count < 20; count++) old.add(change, mail('old@b.example'))
  })
  await before.close()
  const { sendings, until, add } = makeOutbox(t, { folder })
  await add(mail('new@b.example'))
  await until(() => sendings.length > 0)
  t.same(
    sendings.map(({ to }) => to),
    ['new@b.example'],
  )
})

t.test('messages whose outcomes come while one is being written are settled in one transaction', async t => {
  const { sendings, until, add, database, dueTimes } = makeOutbox(t)
  await add(...Array.from({ length: 5 }, (_, at) => mail(`${at}@b.example`, LATER)))
  await until(() => sendings.length === 5)
  const change = database.change.bind(database)
  let transactions = 0
  database.change = write => {
    transactions++
    return change(write)
  }
  for (const { outcome } of sendings) outcome.resolve({ kind: 'sent' })
  await until(() => dueTimes().length === 0)
  t.ok(transactions <= 2, `${transactions} transactions`)
})

t.test('a message that is added behind the clock is sent, too', async t => {
  const { sendings, until, add, addAt, world } = makeOutbox(t)
  await add(mail('first@b.example', LATER))
  await until(() => sendings.length === 1)
  await addAt(world.nowMs() - 3_600_000, mail('behind@b.example', LATER))
  await until(() => sendings.length === 2)
  t.equal(sendings[1]!.to, 'behind@b.example')
})

t.test('while as many messages are under way as a sender takes, nothing wakes it', async t => {
  const { sendings, until, add, world, taken } = makeOutbox(t)
  await add(...Array.from({ length: 50 }, (_, at) => mail(`${at}@b.example`, LATER)))
  await until(() => sendings.length === 5)
  const before = taken()
  for (let tick = 0; tick < 300; tick++) {
    world.advance(100)
    await world.settle()
  }
  t.equal(taken(), before, 'for half a minute')
})

function push(provider: 'apns' | 'fcm', deviceId = 1n): OutboxMessage {
  const notice = { kind: 'session_revoked', reason: 'signed_out', eventId: 'e', sentAtMs: 0 } as const
  return {
    channel: 'push',
    userId: 1n as never,
    deviceId: deviceId as never,
    notice,
    expiresAtMs: LATER,
    provider,
  }
}

/** The rows that were opened and written, and the transactions, since it was asked last. */
function countWork(t: Test, database: LmdbStore) {
  const counts = { opened: 0, written: 0, transactions: 0 }
  const { open, seal } = Sealed.prototype
  t.teardown(() => Object.assign(Sealed.prototype, { open, seal }))
  Sealed.prototype.open = function (sealed) {
    counts.opened++
    return open.call(this, sealed)
  }
  Sealed.prototype.seal = function (plain) {
    counts.written++
    return seal.call(this, plain)
  }
  const change = database.change.bind(database)
  database.change = write => {
    counts.transactions++
    return change(write)
  }
  return () => {
    const since = { ...counts }
    Object.assign(counts, { opened: 0, written: 0, transactions: 0 })
    return since
  }
}

t.test('while a provider is out, one message tries it and thousands wait', async t => {
  const { sendings, until, add, world, database } = makeOutbox(t)
  await add(...Array.from({ length: 5_000 }, (_, at) => push('fcm', BigInt(at))))
  await until(() => sendings.length >= 128)
  const underWay = sendings.splice(0)
  const counted = countWork(t, database)
  for (const { outcome } of underWay) outcome.resolve({ kind: 'retry', reason: 'network' })
  const triedAtMs: number[] = []
  const startMs = world.nowMs()
  while (world.nowMs() < startMs + 3_600_000) {
    world.advance(500)
    await world.settle()
    for (const { outcome } of sendings.splice(0)) {
      triedAtMs.push(world.nowMs() - startMs)
      outcome.resolve({ kind: 'retry', reason: 'network' })
    }
  }
  const { opened, written, transactions } = counted()
  t.ok(triedAtMs.length > 50 && triedAtMs.length < 100, `${triedAtMs.length} requests in an hour`)
  const pauses = triedAtMs.slice(1).map((atMs, at) => atMs - triedAtMs[at]!)
  t.ok(pauses[0]! < pauses[2]! && pauses[2]! < pauses.at(-1)!, `pauses of ${pauses} ms grow`)
  // Those that were under way come back; then a row is opened for as many probes as it has messages.
  t.ok(opened <= 20, `${opened} rows were opened`)
  t.ok(written <= 100, `${written} rows were written`)
  t.ok(transactions <= 80, `${transactions} transactions`)
})

t.test('once a provider is back all that waits for it is sent', async t => {
  const { sendings, until, add, world, dueTimes } = makeOutbox(t)
  await add(...Array.from({ length: 300 }, (_, at) => push('apns', BigInt(at))))
  await until(() => sendings.length >= 128)
  for (const { outcome } of sendings.splice(0)) outcome.resolve({ kind: 'retry', reason: 'http-503' })
  await until(() => {
    world.advance(500)
    return sendings.length === 1
  })
  let sent = 0
  await until(() => {
    for (const { outcome } of sendings.splice(0)) {
      sent++
      outcome.resolve({ kind: 'sent' })
    }
    world.advance(500)
    return sent >= 300
  })
  t.equal(sent, 300)
  t.same(dueTimes(), [])
})

t.test('a provider that is out holds up no other', async t => {
  const { sendings, until, add } = makeOutbox(t)
  await add(push('fcm'))
  await until(() => sendings.length === 1)
  sendings.shift()!.outcome.resolve({ kind: 'retry', reason: 'network' })
  await add(push('fcm'), push('apns'))
  await until(() => sendings.length === 1)
  t.same(sendings[0]!.to, 'apns')
})

t.test('a fault of one message holds up no other', async t => {
  const { sendings, until, add } = makeOutbox(t)
  await add(mail('greylisted@b.example', LATER))
  await until(() => sendings.length === 1)
  sendings.shift()!.outcome.resolve({ kind: 'retry', reason: 'smtp-450', isOfMessage: true })
  await add(mail('next@b.example', LATER))
  await until(() => sendings.length === 1)
  t.equal(sendings[0]!.to, 'next@b.example')
})

t.test('a message that is no longer needed says nothing about its provider', async t => {
  const { sendings, until, add, world } = makeOutbox(t)
  await add(push('fcm'))
  await until(() => sendings.length === 1)
  sendings.shift()!.outcome.resolve({ kind: 'retry', reason: 'network' })
  await add(...Array.from({ length: 40 }, (_, at) => push('fcm', BigInt(at))))
  await until(() => {
    world.advance(500)
    return sendings.length === 1
  })
  sendings.shift()!.outcome.resolve({ kind: 'skipped' })
  await until(() => sendings.length > 0)
  t.equal(sendings.length, 1, 'the next one tries')
})

t.test('of messages in one row, those that failed come again alone', async t => {
  const { sendings, until, add, world, database } = makeOutbox(t)
  await add(...Array.from({ length: 10 }, (_, at) => push('apns', BigInt(at))))
  const rows = () => database.view(view => view.count(OUTBOX))
  t.equal(rows(), 1)
  await until(() => sendings.length === 10)
  const [first, ...others] = sendings.splice(0)
  for (const { outcome } of others) outcome.resolve({ kind: 'sent' })
  await world.settle()
  t.equal(rows(), 1, 'a crash now has them sent again')
  first!.outcome.resolve({ kind: 'retry', reason: 'http-429', isOfMessage: true })
  await until(() => {
    world.advance(100)
    return sendings.length === 1
  })
  sendings[0]!.outcome.resolve({ kind: 'sent' })
  await until(() => rows() === 0)
})

/** A ring, or its end. */
function callPush(
  provider: 'apns' | 'fcm',
  expiresAtMs: number,
  kind: 'call_invitation' | 'call_cancelled' = 'call_invitation',
): OutboxMessage {
  const notice = { kind, eventId: 'e', sentAtMs: 0 } as never
  return { channel: 'push', userId: 1n as never, deviceId: 1n as never, notice, expiresAtMs, provider }
}

const NETWORK = { kind: 'retry', reason: 'network' } as const

t.test('a ring waits for no outage of its provider, nor for other messages', async t => {
  const { sendings, until, add, world } = makeOutbox(t)
  await add(...Array.from({ length: 300 }, (_, at) => push('apns', BigInt(at))))
  await until(() => sendings.length === 128)
  for (const { outcome } of sendings.splice(0)) outcome.resolve(NETWORK)
  for (const kind of ['call_invitation', 'call_cancelled'] as const) {
    await add(callPush('apns', world.nowMs() + 60_000, kind))
    await until(() => sendings.length === 1)
    t.equal(sendings[0]!.to, 'apns-calls')
    sendings.shift()!.outcome.resolve(NETWORK)
  }
})

t.test(
  'a ring is tried every few seconds until it expires, even if its provider asks to wait longer',
  async t => {
    const { sendings, until, add, world, database, tried } = makeOutbox(t)
    const startMs = world.nowMs()
    await add(callPush('fcm', startMs + 57_000))
    const triedAtMs: number[] = []
    const rows = () => database.view(view => view.count(OUTBOX))
    while (world.nowMs() < startMs + 70_000) {
      for (const { outcome } of sendings.splice(0)) {
        triedAtMs.push(world.nowMs() - startMs)
        outcome.resolve(triedAtMs.length === 3 ? { ...NETWORK, afterMs: 50_000 } : NETWORK)
      }
      await world.settle()
      world.advance(250)
      await world.settle()
    }
    await until(() => rows() === 0)
    const pauses = triedAtMs.slice(1).map((atMs, at) => Math.round((atMs - triedAtMs[at]!) / 1_000))
    t.same(pauses.slice(0, 5), [1, 2, 10, 5, 5])
    t.ok(triedAtMs.at(-1)! > 55_000 && triedAtMs.at(-1)! < 57_000, 'to its end, and no longer')
    t.equal(tried.length, triedAtMs.length)
  },
)

t.test('a ring that failed waits for no other of its row', async t => {
  const { sendings, until, add, world, database } = makeOutbox(t)
  const expiresAtMs = world.nowMs() + 60_000
  await add(callPush('apns', expiresAtMs), callPush('apns', expiresAtMs))
  const rows = () => database.view(view => view.count(OUTBOX))
  t.equal(rows(), 1)
  await until(() => sendings.length === 2)
  const [silent, failed] = sendings.splice(0)
  failed!.outcome.resolve(NETWORK)
  await until(() => {
    world.advance(100)
    return sendings.length === 1
  })
  sendings[0]!.outcome.resolve({ kind: 'sent' })
  await world.settle()
  t.equal(rows(), 1, 'a crash now has both sent again')
  silent!.outcome.resolve({ kind: 'sent' })
  await until(() => rows() === 0)
})

t.test('rings that wait for another try take no room from new ones', async t => {
  const { sendings, until, add, world } = makeOutbox(t)
  const expiresAtMs = world.nowMs() + 60_000
  await add(...Array.from({ length: 1_200 }, () => callPush('apns', expiresAtMs)))
  await until(() => sendings.length === 1_024)
  for (const { outcome } of sendings.splice(0)) outcome.resolve(NETWORK)
  await until(() => sendings.length === 176)
  await add(callPush('apns', expiresAtMs))
  await until(() => sendings.length === 177)
})

t.test('rings that failed together share a timer, and are all tried again', async t => {
  const { sendings, until, add, world, system } = makeOutbox(t)
  await add(...Array.from({ length: 1_000 }, () => callPush('apns', world.nowMs() + 60_000)))
  await until(() => sendings.length === 1_000)
  const before = system.figures().timersArmed
  for (const { outcome } of sendings.splice(0)) outcome.resolve(NETWORK)
  await world.settle()
  t.ok(system.figures().timersArmed <= before + 2, 'the more timers an actor has, the more each costs')
  await until(() => {
    world.advance(100)
    return sendings.length > 0
  })
  t.equal(sendings.length, 1_000)
})

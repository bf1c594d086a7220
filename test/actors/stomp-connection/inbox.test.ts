/** A connection and its device's inbox: acknowledgement, redelivery, resuming; the stories of section F. */

import t from 'tap'
import type { UserId } from '../../../src/domain/ids.ts'
import { formatPosition } from '../../../src/domain/messages/inbox-position.ts'
import { SignalError } from '../../../src/errors.ts'
import {
  ack,
  begin,
  bodies,
  idsOf,
  QUEUE,
  reconnect,
  subscribe,
  waiting,
} from '../../support/inbox-client.ts'
import { headerOf } from '../../support/naive-stomp.ts'
import { newPerson, openTestActors } from '../../support/test-actors.ts'

t.test('F-01: messages in the modes of acknowledgement carry ack, in 1.2', async t => {
  const { actors, peer } = await begin(t, ['a', 'b'])
  subscribe(peer, 's1', 'client-individual')
  await actors.settle()
  const frames = peer.take()
  t.same(
    frames.map(frame => headerOf(frame, 'ack')),
    idsOf(frames),
  )
  t.equal(new Set(idsOf(frames)).size, 2)
})

t.test('the receipt comes before waiting messages, and later ones follow', async t => {
  const { actors, person, peer } = await begin(t, ['a', 'b'])
  subscribe(peer, 's1', 'auto', 'receipt:r\n')
  await actors.settle()
  await actors.keep(person, 'dev.t', 'c')
  const frames = peer.take()
  t.same(
    frames.map(({ command }) => command),
    ['RECEIPT', 'MESSAGE', 'MESSAGE', 'MESSAGE'],
  )
  t.same(bodies(frames.slice(1)), ['a', 'b', 'c'])
  t.equal(headerOf(frames[0], 'recovered'), undefined)
})

t.test('a notice has its kind, its time and its end in headers, its body as JSON', async t => {
  const { actors, person, peer } = await begin(t)
  subscribe(peer, 's1', 'auto', '', '/user/queue/contacts')
  const expiresAtMs = actors.world.nowMs() + 5_000
  await actors.tell(
    person,
    { kind: 'contact_removed', userId: 5n as UserId, displayName: 'Bea', alias: undefined },
    expiresAtMs,
  )
  const [frame] = peer.take()
  t.equal(headerOf(frame, 'type'), 'contact_removed')
  t.equal(headerOf(frame, 'timestamp'), String(actors.world.nowMs()))
  t.equal(headerOf(frame, 'expires'), String(expiresAtMs))
  t.equal(headerOf(frame, 'content-type'), 'application/json')
  t.equal(headerOf(frame, 'destination'), '/user/queue/contacts')
  t.ok(frame?.isText)
  t.equal(JSON.parse(String(frame?.body)).displayName, 'Bea')
})

t.test('each queue has its own messages, and no device has another’s', async t => {
  const { actors, person, peer } = await begin(t)
  const other = newPerson(person.userId)
  const elsewhere = await actors.connect(other)
  for (const each of [peer, elsewhere]) {
    for (const queue of ['calls', 'contacts', 'account', 'dev.t']) {
      subscribe(each, queue, 'auto', '', `/user/queue/${queue}`)
    }
  }
  await actors.settle()
  for (const each of [peer, elsewhere]) {
    const types = each.take().map(frame => headerOf(frame, 'type'))
    t.same(types, ['badge'], 'each is told the badge')
  }
  await actors.keep(person, 'dev.t', 'mine')
  await actors.tell(person, { kind: 'profile_changed' })
  await actors.tell(person, {
    kind: 'contact_removed',
    userId: 5n as UserId,
    displayName: 'Bea',
    alias: undefined,
  })
  t.same(
    peer.take().map(frame => headerOf(frame, 'subscription')),
    ['dev.t', 'account', 'contacts'],
  )
  t.same(elsewhere.take(), [])
})

t.test('other names of one queue are shown as the client spelt them', async t => {
  const { actors, person, peer } = await begin(t)
  const names = ['/user/queue/signalling', '/queue/calls', `/user/${person.userId}/queue/calls`]
  for (const name of [...names, `/topic/user.${person.userId}`]) subscribe(peer, name, 'auto', '', name)
  const notice = {
    callId: 1n,
    callerId: 2n,
    callerName: 'Ann',
    displayName: 'Ann',
    alias: undefined,
    isContact: true,
    isVideo: true,
    atMs: 3,
  }
  await actors.tell(person, { kind: 'call_missed', ...notice } as never)
  t.same(
    peer.take().map(frame => headerOf(frame, 'destination')),
    [...names, `/topic/user.${person.userId}`],
  )
})

t.test('F-04: an acknowledgement does not spill into another subscription', async t => {
  const { actors, person, peer } = await begin(t)
  subscribe(peer, 's1', 'client')
  subscribe(peer, 's2', 'client', '', '/user/queue/dev.u')
  await actors.keep(person, 'dev.t', 't1')
  await actors.keep(person, 'dev.u', 'u1')
  await actors.keep(person, 'dev.t', 't2')
  await actors.keep(person, 'dev.u', 'u2')
  const last = peer.take().find(frame => frame.body.equals(Buffer.from('t2')))
  ack(peer, headerOf(last, 'ack')!)
  await actors.settle()
  t.same(waiting(actors, person), ['u1', 'u2'])
})

t.test('two subscriptions to one queue each get a copy; a message is settled when both are done', async t => {
  const { actors, person, peer } = await begin(t)
  subscribe(peer, 's1', 'client')
  subscribe(peer, 's2', 'client')
  await actors.settle()
  await actors.keep(person, 'dev.t', 'a', 'b')
  const frames = peer.take()
  t.same(
    frames.map(frame => `${headerOf(frame, 'subscription')} ${frame.body}`),
    ['s1 a', 's2 a', 's1 b', 's2 b'],
  )
  const last = idsOf(frames).at(-1)!
  ack(peer, last, 'subscription:s1\n')
  await actors.settle()
  t.same(waiting(actors, person), ['a', 'b'], 'the other has them open')
  ack(peer, last)
  await actors.settle()
  t.same(waiting(actors, person), [])
})

t.test('of two subscriptions, the one that is named acknowledges', async t => {
  const { actors, person, peer } = await begin(t, ['a'])
  subscribe(peer, 's1', 'client')
  subscribe(peer, 's2', 'client')
  await actors.settle()
  const [id] = idsOf(peer.take())
  ack(peer, id!, 'subscription:s2\n')
  peer.write('UNSUBSCRIBE\nid:s2\n\n\0')
  await actors.settle()
  t.same(waiting(actors, person), ['a'], 's1 has it open')
  ack(peer, id!)
  await actors.settle()
  t.same(waiting(actors, person), [])
})

t.test('an acknowledgement that the store can not note costs a redelivery, not the connection', async t => {
  const { actors, person, peer } = await begin(t, ['a'])
  subscribe(peer, 's1', 'client')
  await actors.settle()
  const [id] = idsOf(peer.take())
  const change = actors.database.change.bind(actors.database)
  const fullDisk = () => Promise.reject(new SignalError('STORE_UNAVAILABLE', 'no room'))
  actors.database.change = fullDisk
  ack(peer, id!)
  actors.world.run()
  actors.database.change = change
  await actors.settle()
  t.notOk(peer.isClosed)
  const next = await reconnect(actors, person, peer)
  subscribe(next, 's1', 'client')
  await actors.settle()
  t.same(idsOf(next.take()), [id])
  actors.database.change = fullDisk
  ack(next, id!, 'receipt:r\n')
  actors.world.run()
  actors.database.change = change
  await actors.settle()
  t.same([next.take().map(({ command }) => command), next.closeCode], [['ERROR'], 1013])
})

t.test('no RECEIPT covers an acknowledgement that the store could not note', async t => {
  for (const isWritten of [true, false]) {
    for (const frame of [
      'SEND\ndestination:/topic/dev.t\nreceipt:r\n\nx\0',
      'SEND\ndestination:/user/queue/dev.u\nreceipt:r\n\nx\0',
      'BEGIN\ntransaction:1\nreceipt:r\n\n\0',
      'DISCONNECT\nreceipt:r\n\n\0',
    ]) {
      const due: (() => void)[] = []
      const { actors, person, peer } = await begin(t, ['a'], { soon: run => void due.push(run) })
      subscribe(peer, 's1', 'client')
      await actors.settle()
      const [id] = idsOf(peer.take())
      ack(peer, id!)
      await actors.settle()
      const change = actors.database.change.bind(actors.database)
      actors.database.change = () => {
        actors.database.change = change
        return Promise.reject(new SignalError('STORE_UNAVAILABLE', 'no room'))
      }
      // It may have failed before the frame comes, or fails with it.
      if (isWritten) for (const run of due) run()
      peer.write(frame)
      actors.world.run()
      await actors.settle()
      t.match(
        peer.take().map(each => [each.command, headerOf(each, 'receipt-id')]),
        [['ERROR', 'r']],
        frame.slice(0, 4),
      )
      t.equal(peer.closeCode, 1013)
      t.ok(waiting(actors, person).includes('a'), 'it comes again')
    }
  }
})

t.test(
  'a RECEIPT says that what was acknowledged before it is durable, without one it may take a moment',
  async t => {
    for (const frame of [
      'SEND\ndestination:/topic/dev.t\nreceipt:r\n\nx\0',
      'SEND\ndestination:/app/call/1/leave\nreceipt:r\n\n\0',
      'SEND\ndestination:/user/queue/dev.u\nreceipt:r\n\nx\0',
      'BEGIN\ntransaction:1\nreceipt:r\n\n\0',
      'DISCONNECT\nreceipt:r\n\n\0',
    ]) {
      const { actors, person, peer } = await begin(t, ['a', 'b'], { soon: () => undefined })
      subscribe(peer, 's1', 'client-individual')
      await actors.settle()
      const [first, second] = idsOf(peer.take())
      ack(peer, first!)
      ack(peer, second!)
      await actors.settle()
      t.same(waiting(actors, person), ['a', 'b'], 'nothing has made them durable yet')
      const change = actors.database.change.bind(actors.database)
      const held: (() => void)[] = []
      actors.database.change = async write => {
        await new Promise<void>(resolve => held.push(resolve))
        return change(write)
      }
      peer.write(frame)
      actors.world.run()
      await actors.world.settle()
      actors.world.run()
      t.same(peer.take(), [], 'no RECEIPT before the commit')
      actors.database.change = change
      for (const release of held) release()
      await actors.settle()
      t.same(
        peer.take().map(each => headerOf(each, 'receipt-id')),
        ['r'],
      )
      t.same(
        waiting(actors, person).filter(each => each !== 'x'),
        [],
      )
    }
  },
)

t.test(
  'the next connection does not get messages with an acknowledgement that is not durable yet',
  async t => {
    const { actors, person, peer } = await begin(t, ['a', 'b'], { soon: () => undefined })
    subscribe(peer, 's1', 'client-individual')
    await actors.settle()
    ack(peer, idsOf(peer.take())[0]!)
    await actors.settle()
    const next = await reconnect(actors, person, peer)
    subscribe(next, 's1', 'client-individual')
    await actors.settle()
    t.same(waiting(actors, person), ['a', 'b'])
    t.same(bodies(next.take()), ['b'])
  },
)

t.test('a message that one refuses, or has no room for yet, is not settled by another', async t => {
  const { actors, person, peer } = await begin(t, ['a', 'b'])
  subscribe(peer, 's1', 'client-individual')
  subscribe(peer, 's2', 'client-individual', 'prefetch-count:1\n')
  await actors.settle()
  const [first, second] = idsOf(peer.take())
  ack(peer, second!, 'subscription:s1\n')
  peer.write(`NACK\nid:${first}\nsubscription:s1\n\n\0`)
  await actors.settle()
  t.same(waiting(actors, person), ['a', 'b'])
  ack(peer, first!, 'subscription:s2\n')
  await actors.settle()
  t.same(bodies(peer.take()), ['b'], 'now there is room')
  ack(peer, second!)
  await actors.settle()
  t.same(waiting(actors, person), ['a'])
})

t.test('F-15: a needless acknowledgement is passed over', async t => {
  const { actors, peer } = await begin(t, ['a'])
  subscribe(peer, 's1')
  await actors.settle()
  ack(peer, idsOf(peer.take())[0]!, 'receipt:r\n')
  await actors.settle()
  t.same(
    peer.take().map(frame => headerOf(frame, 'receipt-id')),
    ['r'],
  )
  t.notOk(peer.isClosed)
})

t.test('F-15: so is one of a live topic, whether it names the subscription or not', async t => {
  const { actors, peer } = await begin(t)
  subscribe(peer, 's1', 'auto', '', '/topic/dev.t')
  peer.write('SEND\ndestination:/topic/dev.t\n\nx\0')
  await actors.settle()
  const [id] = idsOf(peer.take())
  ack(peer, id!, 'receipt:1\n')
  ack(peer, id!, 'subscription:s1\nreceipt:2\n')
  peer.write(`NACK\nid:${id}\nsubscription:s1\nreceipt:3\n\n\0`)
  await actors.settle()
  t.same(
    peer.take().map(frame => headerOf(frame, 'receipt-id')),
    ['1', '2', '3'],
  )
  t.notOk(peer.isClosed)
})

t.test('F-08: the ERROR of an unknown acknowledgement names its fault', async t => {
  const refused = async (makeFrame: (id: string) => string) => {
    const { actors, peer, person } = await begin(t, ['a'])
    subscribe(peer, 's1', 'client-individual')
    await actors.settle()
    const [id] = idsOf(peer.take())
    const next = await reconnect(actors, person, peer)
    next.write(makeFrame(id!))
    await actors.settle()
    const [error] = next.take()
    t.same([headerOf(error, 'reason'), next.closeCode], ['message_unknown', 1002])
    return headerOf(error, 'message')
  }
  t.match(await refused(() => 'ACK\nid:x\n\n\0'), /^the ACK has an id that no MESSAGE .* ack header$/)
  t.match(
    await refused(id => `NACK\nid:${id}\n\n\0`),
    /^the NACK names .* an earlier connection .* comes again/,
  )
  t.match(await refused(id => `ACK\nid:${id}\nsubscription:s9\n\n\0`), /^the ACK names a subscription that/)
})

t.test('on a live topic an acknowledgement names a sent message and does nothing', async t => {
  const { actors, peer } = await begin(t)
  subscribe(peer, 's1', 'client-individual', '', '/topic/dev.t')
  peer.write('SEND\ndestination:/topic/dev.t\n\nx\0')
  await actors.settle()
  const [id] = idsOf(peer.take())
  ack(peer, id!, 'receipt:1\n')
  ack(peer, id!, 'receipt:2\n')
  await actors.settle()
  t.equal(peer.take().length, 2)
  ack(peer, `${id}0`)
  await actors.settle()
  t.equal(peer.closeCode, 1002)
})

t.test('F-16: 32 are out at once, and one more for each that is acknowledged', async t => {
  const texts = Array.from({ length: 100 }, (_, at) => String(at))
  const { actors, peer } = await begin(t, texts)
  subscribe(peer, 's1', 'client-individual')
  await actors.settle()
  const first = peer.take()
  t.same(bodies(first), texts.slice(0, 32))
  ack(peer, idsOf(first)[5]!)
  await actors.settle()
  const next = peer.take()
  t.same(bodies(next), ['32'])
  ack(peer, idsOf(first)[0]!)
  ack(peer, idsOf(first)[1]!)
  await actors.settle()
  t.same(bodies(peer.take()), ['33', '34'])
})

t.test('prefetch-count sets the window, within bounds; auto knows none', async t => {
  const texts = Array.from({ length: 300 }, (_, at) => String(at))
  const { actors, peer } = await begin(t, texts)
  const given = async (id: string, mode: string, more: string) => {
    subscribe(peer, id, mode, more)
    await actors.settle()
    return peer.take().length
  }
  t.equal(await given('one', 'client', 'prefetch-count:1\n'), 1)
  t.equal(await given('many', 'client', 'prefetch-count:1000\n'), 256)
  t.equal(await given('auto', 'auto', ''), 300)
  peer.write(`SUBSCRIBE\nid:bad\ndestination:${QUEUE}\nprefetch-count:x\n\n\0`)
  await actors.settle()
  t.equal(peer.closeCode, 1002)
})

t.test('a queue with a full window holds up no other', async t => {
  const { actors, person, peer } = await begin(t)
  subscribe(peer, 's1', 'client', 'prefetch-count:1\n')
  subscribe(peer, 's2', 'client', '', '/user/queue/dev.u')
  await actors.keep(person, 'dev.t', 't1', 't2')
  await actors.keep(person, 'dev.u', 'u1')
  const frames = peer.take()
  t.same(bodies(frames), ['t1', 'u1'])
  ack(peer, idsOf(frames)[0]!)
  await actors.settle()
  t.same(bodies(peer.take()), ['t2'])
})

t.test('a message that was refused comes again on the next connection, not on this one', async t => {
  const { actors, person, peer } = await begin(t, ['a', 'b'])
  subscribe(peer, 's1', 'client-individual')
  await actors.settle()
  const [first] = idsOf(peer.take())
  peer.write(`NACK\nid:${first}\nreceipt:r\n\n\0`)
  peer.write('UNSUBSCRIBE\nid:s1\n\n\0')
  subscribe(peer, 's2', 'client-individual')
  await actors.settle()
  const [receipt, ...again] = peer.take()
  t.equal(receipt?.command, 'RECEIPT')
  t.same(bodies(again), ['b'])
  t.equal(headerOf(again[0], 'redelivered'), 'true')
  const next = await reconnect(actors, person, peer)
  subscribe(next, 's1', 'client-individual')
  await actors.settle()
  const frames = next.take()
  t.same(bodies(frames), ['a', 'b'])
  t.equal(idsOf(frames)[0], first)
})

t.test('a refused message leaves room in the window', async t => {
  const { actors, peer } = await begin(t, ['a', 'b'])
  subscribe(peer, 's1', 'client', 'prefetch-count:1\n')
  await actors.settle()
  peer.write(`NACK\nid:${idsOf(peer.take())[0]}\n\n\0`)
  await actors.settle()
  t.same(bodies(peer.take()), ['b'])
})

t.test('a first delivery is not marked as redelivered', async t => {
  const { actors, person, peer } = await begin(t, ['a'])
  subscribe(peer, 's1', 'client')
  await actors.settle()
  t.equal(headerOf(peer.take()[0], 'redelivered'), undefined)
  const next = await reconnect(actors, person, peer)
  await actors.keep(person, 'dev.t', 'b')
  subscribe(next, 's1', 'client')
  await actors.settle()
  t.same(
    next.take().map(frame => `${frame.body} ${headerOf(frame, 'redelivered')}`),
    ['a true', 'b undefined'],
  )
})

t.test('a delivery is remembered, also after the process died', async t => {
  const folder = t.testdir()
  const before = openTestActors(t, { folder })
  const person = newPerson()
  await before.keep(person, 'dev.t', 'a')
  const peer = await before.connect(person)
  subscribe(peer, 's1', 'client')
  await before.settle()
  const [messageId] = idsOf(peer.take())
  await before.pass(1_200)
  await before.database.close()
  const after = openTestActors(t, { folder })
  const next = await after.connect(person)
  subscribe(next, 's1', 'client')
  await after.settle()
  const [frame] = next.take()
  t.same([headerOf(frame, 'redelivered'), headerOf(frame, 'message-id')], ['true', messageId])
})

t.test('in auto mode a message is settled when it has left, and not before', async t => {
  const { actors, person, peer } = await begin(t, ['a'])
  peer.kernelBytes = 0
  subscribe(peer, 's1')
  await actors.settle()
  await actors.pass(5_000)
  t.same(waiting(actors, person), ['a'])
  peer.kernelBytes = Number.POSITIVE_INFINITY
  await actors.pass(200)
  t.same(bodies(peer.take()), ['a'])
  t.same(waiting(actors, person), [])
})

t.test('in auto mode unsent messages come again', async t => {
  const { actors, person, peer } = await begin(t, ['a'])
  peer.kernelBytes = 0
  subscribe(peer, 's1')
  await actors.settle()
  const next = await reconnect(actors, person, peer)
  subscribe(next, 's1')
  await actors.settle()
  t.same(
    next.take().map(frame => `${frame.body} ${headerOf(frame, 'redelivered')}`),
    ['a true'],
  )
})

t.test('in auto mode a DISCONNECT settles sent messages', async t => {
  const { actors, person, peer } = await begin(t, ['a'])
  subscribe(peer, 's1')
  actors.world.run()
  peer.flush()
  peer.write('DISCONNECT\nreceipt:r\n\n\0')
  await actors.settle()
  t.same(
    peer.take().map(({ command }) => command),
    ['MESSAGE', 'RECEIPT'],
  )
  t.same(waiting(actors, person), [])
})

t.test('nothing that was acknowledged comes again, be the reconnection ever so quick', async t => {
  const { actors, person, peer } = await begin(t, ['a', 'b'])
  subscribe(peer, 's1', 'client-individual')
  await actors.settle()
  ack(peer, idsOf(peer.take())[0]!)
  actors.world.run()
  // The acknowledgement is on its way to the disk.
  peer.drop()
  const next = actors.open()
  next.write(`CONNECT\naccept-version:1.2\ntoken:${person.token}\n\n\0`)
  subscribe(next, 's1', 'client-individual')
  actors.world.run()
  next.flush()
  t.same(bodies(next.take().slice(1)), ['b'])
  await actors.settle()
})

t.test('J-10: since continues exactly where the client left off', async t => {
  const texts = Array.from({ length: 90 }, (_, at) => String(at))
  const { actors, person, peer } = await begin(t, texts)
  subscribe(peer, 's1')
  actors.world.run()
  peer.flush()
  const seen = peer.take().slice(0, 40)
  peer.drop()
  await actors.settle()
  const next = await actors.connect(person)
  subscribe(next, 's1', 'auto', `since:${idsOf(seen).at(-1)}\nreceipt:r\n`)
  await actors.keep(person, 'dev.t', '90')
  await actors.pass(200)
  const [receipt, ...rest] = next.take()
  t.equal(headerOf(receipt, 'recovered'), 'true')
  t.same([...bodies(seen), ...bodies(rest)], [...texts, '90'])
  t.same(waiting(actors, person), [], 'what it had seen is done with')
})

t.test('since skips unacknowledged messages without settling them', async t => {
  const { actors, person, peer } = await begin(t, ['a', 'b'])
  subscribe(peer, 's1', 'client')
  await actors.settle()
  const [first] = idsOf(peer.take())
  const next = await reconnect(actors, person, peer)
  subscribe(next, 's1', 'client', `since:${first}\n`)
  await actors.settle()
  const [frame] = next.take()
  t.equal(frame?.body.toString(), 'b')
  t.same(waiting(actors, person), ['a', 'b'])
  ack(next, headerOf(frame, 'ack')!)
  await actors.settle()
  t.same(waiting(actors, person), ['a'])
})

for (const [mode, left] of [
  ['client-individual', ['a', 'c']],
  ['client', ['c']],
] as const) {
  t.test(`an acknowledgement that was lost with its connection counts behind since: ${mode}`, async t => {
    const { actors, person, peer } = await begin(t, ['a', 'b', 'c'])
    subscribe(peer, 's1', mode)
    await actors.settle()
    const ids = idsOf(peer.take())
    const next = await reconnect(actors, person, peer)
    subscribe(next, 's0', 'client', '', '/user/queue/calls')
    subscribe(
      next,
      's1',
      mode,
      `since:${ids[2]}
`,
    )
    for (let times = 0; times < 2; times++) ack(next, ids[1]!, 'receipt:r\n')
    await actors.settle()
    t.same([waiting(actors, person), next.isClosed], [left, false])
    ack(next, ids[2]!.replace(/\d+$/, '4'))
    await actors.settle()
    t.equal(next.closeCode, 1002, 'what is behind it has not come yet')
  })
}

t.test('a position of another epoch names nothing that was given', async t => {
  const { actors, person, peer } = await begin(t, ['a'])
  subscribe(peer, 's1', 'client')
  await actors.settle()
  const { epoch } = actors.head(person)
  ack(peer, formatPosition({ epoch: epoch + 1, offset: 1 }))
  await actors.settle()
  t.equal(peer.closeCode, 1002)
  t.same(waiting(actors, person), ['a'])
})

t.test('of a live topic the last messages can be acknowledged, not all there ever were', async t => {
  const { actors, peer } = await begin(t)
  subscribe(peer, 's1', 'client', '', '/topic/dev.t')
  peer.write('SEND\ndestination:/topic/dev.t\n\nx\0'.repeat(300))
  await actors.settle()
  const ids = idsOf(peer.take())
  ack(peer, ids.at(-256)!, 'receipt:r\n')
  await actors.settle()
  t.equal(peer.take().length, 1)
  ack(peer, ids.at(-257)!)
  await actors.settle()
  t.equal(peer.closeCode, 1002)
})

t.test('since of another epoch, of the future or before dropped messages is not recovered', async t => {
  const { actors, person, peer } = await begin(t, ['a'])
  const { epoch } = actors.head(person)
  const tryFrom = async (since: string) => {
    subscribe(peer, since, 'client', `since:${since}\nreceipt:r\n`)
    await actors.settle()
    const [receipt, ...rest] = peer.take()
    peer.write(`UNSUBSCRIBE\nid:${since}\n\n\0`)
    return `${headerOf(receipt, 'recovered')} ${bodies(rest).length}`
  }
  t.equal(await tryFrom(formatPosition({ epoch: epoch + 1, offset: 1 })), 'false 1')
  t.equal(await tryFrom(formatPosition({ epoch, offset: 2 })), 'false 1')
  t.equal(await tryFrom('nonsense'), 'false 1')
  t.equal(await tryFrom(formatPosition({ epoch, offset: 1 })), 'true 0')
  t.equal(await tryFrom('0-0'), 'true 1', 'from before there was anything')
  await actors.keep(person, 'dev.t', ...Array.from({ length: 501 }, () => 'x'))
  t.equal(await tryFrom(formatPosition({ epoch, offset: 1 })), 'false 32')
  t.equal(await tryFrom(formatPosition({ epoch, offset: 2 })), 'true 32')
})

t.test('who does not read is given no more from its inbox, and all of it once they do', async t => {
  const { actors, person, peer } = await begin(t)
  peer.kernelBytes = 0
  subscribe(peer, 's1')
  const texts = Array.from({ length: 100 }, (_, at) => String(at).padEnd(10_000, '.'))
  await actors.keep(person, 'dev.t', ...texts)
  t.ok(peer.bufferedBytes() < 100_000, `${peer.bufferedBytes()} bytes are held`)
  peer.kernelBytes = Number.POSITIVE_INFINITY
  await actors.pass(2_000)
  t.same(bodies(peer.take()), texts)
  t.notOk(peer.isClosed)
})

for (const ack of ['auto', 'client-individual']) {
  t.test(`a link of 32 kbit/s gets a long inbox in pieces and is not cut: ${ack}`, async t => {
    const { actors, person, peer } = await begin(t)
    const texts = Array.from({ length: 200 }, (_, at) => String(at).padEnd(2_000, '.'))
    await actors.keep(person, 'dev.t', ...texts)
    peer.kernelBytes = 0
    subscribe(peer, 's1', ack, 'prefetch-count:256\n')
    await actors.settle()
    const came: string[] = []
    for (let second = 0; second < 60; second++) {
      peer.kernelBytes += 4_000
      await actors.pass(1_000)
      came.push(...bodies(peer.take()))
    }
    t.same(actors.ended, [])
    t.same(came, texts.slice(0, came.length), 'in order')
    t.ok(came.length > 80, `${came.length} came`)
    if (ack === 'auto') t.ok(waiting(actors, person).length < 180, 'what has left is done with')
    peer.kernelBytes = Number.POSITIVE_INFINITY
    await actors.pass(2_000)
    t.same(came.concat(bodies(peer.take())), texts)
  })
}

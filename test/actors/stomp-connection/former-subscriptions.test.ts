/** Acknowledgements of messages whose subscription has ended (contract 0.1, "7 ACK"); the stories of case F-17. */

import t, { type Test } from 'tap'
import { SignalError } from '../../../src/errors.ts'
import { ack, begin, bodies, idsOf, reconnect, subscribe, waiting } from '../../support/inbox-client.ts'
import type { MemoryClient } from '../../support/memory-client.ts'
import { headerOf } from '../../support/naive-stomp.ts'

function unsubscribe(peer: MemoryClient, id: string): void {
  peer.write(`UNSUBSCRIBE\nid:${id}\n\n\0`)
}

/** The messages `queued` were given to s1, which has ended. */
async function ended(t: Test, mode: string, queued = ['a', 'b', 'c']) {
  const { actors, person, peer } = await begin(t, queued)
  subscribe(peer, 's1', mode)
  await actors.settle()
  const ids = idsOf(peer.take())
  unsubscribe(peer, 's1')
  return { actors, person, peer, ids }
}

t.test('F-17: the RECEIPT of an acknowledgement after UNSUBSCRIBE says that it is durable', async t => {
  const { actors, person, peer, ids } = await ended(t, 'client-individual')
  ack(peer, ids[1]!, 'receipt:r\n')
  await actors.settle()
  t.same(waiting(actors, person), ['a', 'c'])
  t.equal(headerOf(peer.take()[0], 'receipt-id'), 'r')
  const next = await reconnect(actors, person, peer)
  subscribe(next, 's1', 'client')
  await actors.settle()
  t.same(bodies(next.take()), ['a', 'c'])
})

t.test('F-17: one that can not be made durable has no RECEIPT', async t => {
  const { actors, person, peer, ids } = await ended(t, 'client-individual')
  const change = actors.database.change.bind(actors.database)
  actors.database.change = () => Promise.reject(new SignalError('STORE_UNAVAILABLE', 'no room'))
  ack(peer, ids[0]!, 'receipt:r\n')
  actors.world.run()
  actors.database.change = change
  await actors.settle()
  t.same([peer.take().map(({ command }) => command), peer.closeCode], [['ERROR'], 1013])
  t.same(waiting(actors, person), ['a', 'b', 'c'])
})

t.test('F-17: in the mode client it covers what that subscription was given up to it', async t => {
  const { actors, person, peer, ids } = await ended(t, 'client')
  await actors.keep(person, 'dev.t', 'd')
  await actors.keep(person, 'dev.u', 'other')
  ack(peer, ids[1]!, 'subscription:s1\n')
  await actors.settle()
  t.same(waiting(actors, person), ['c', 'd', 'other'])
  ack(peer, ids[2]!)
  await actors.settle()
  t.same(waiting(actors, person), ['d', 'other'])
})

t.test(
  'F-17: what the client had seen before is not covered, and is not covered by another mode',
  async t => {
    const { actors, person, peer } = await begin(t, ['a', 'b', 'c', 'd'])
    subscribe(peer, 's1', 'client-individual')
    await actors.settle()
    const ids = idsOf(peer.take())
    unsubscribe(peer, 's1')
    subscribe(peer, 's2', 'client', `since:${ids[1]}\n`)
    await actors.settle()
    t.same(bodies(peer.take()), ['c', 'd'])
    unsubscribe(peer, 's2')
    ack(peer, ids[3]!, 'subscription:s1\n')
    await actors.settle()
    t.same(waiting(actors, person), ['a', 'b', 'c'])
    ack(peer, ids[2]!, 'subscription:s2\n')
    await actors.settle()
    t.same(waiting(actors, person), ['a', 'b'])
  },
)

t.test('F-17: a second acknowledgement does nothing, nor does one of a message that was refused', async t => {
  const { actors, person, peer, ids } = await ended(t, 'client-individual')
  ack(peer, ids[0]!)
  ack(peer, ids[0]!, 'receipt:r\n')
  peer.write(`NACK\nid:${ids[1]}\n\n\0`)
  ack(peer, ids[1]!, 'receipt:r2\n')
  peer.write(`NACK\nid:${ids[2]}\nrequeue:false\n\n\0`)
  await actors.settle()
  t.same(
    peer.take().map(frame => headerOf(frame, 'receipt-id')),
    ['r', 'r2'],
  )
  t.same(waiting(actors, person), ['b'])
  subscribe(peer, 's2', 'client')
  await actors.settle()
  t.same(bodies(peer.take()), [], 'a refused one is for the next connection')
})

t.test('F-17: a message that this connection was never given is refused, whatever it was given', async t => {
  for (const mode of ['client', 'client-individual']) {
    const { actors, person, peer } = await begin(t)
    await actors.keep(person, 'dev.t', 'a')
    await actors.keep(person, 'dev.u', 'u')
    await actors.keep(person, 'dev.t', 'b')
    subscribe(peer, 's1', mode)
    await actors.settle()
    const [first, last] = idsOf(peer.take())
    unsubscribe(peer, 's1')
    const [epoch, offset] = first!.split('-')
    ack(peer, `${epoch}-${Number(offset) + 1}`, 'receipt:r\n')
    await actors.settle()
    t.same([headerOf(peer.take()[0], 'reason'), peer.closeCode], ['message_unknown', 1002])
    const next = await reconnect(actors, person, peer)
    ack(next, last!)
    await actors.settle()
    t.equal(next.closeCode, 1002, 'nor one of an earlier connection')
    t.same(waiting(actors, person), ['a', 'u', 'b'])
  }
})

t.test('F-17: a new subscription that got the message again does not have it any more', async t => {
  const { actors, person, peer, ids } = await ended(t, 'client-individual')
  subscribe(peer, 's2', 'client', 'prefetch-count:1\n')
  await actors.settle()
  t.same(bodies(peer.take()), ['a'])
  for (const id of ids.slice(0, 2)) ack(peer, id, 'subscription:s1\n')
  await actors.settle()
  t.same(waiting(actors, person), ['c'])
  ack(peer, ids[0]!, 'subscription:s2\nreceipt:r\n')
  await actors.settle()
  t.same(bodies(peer.take()), ['c', ''], 'and goes on behind it')
})

t.test('F-17: one that was there beside it keeps its own', async t => {
  const { actors, person, peer } = await begin(t, ['a'])
  subscribe(peer, 's1', 'client')
  subscribe(peer, 's2', 'client')
  await actors.settle()
  const [id] = idsOf(peer.take())
  unsubscribe(peer, 's1')
  ack(peer, id!, 'subscription:s1\n')
  await actors.settle()
  t.same(waiting(actors, person), ['a'])
  ack(peer, id!)
  await actors.settle()
  t.same(waiting(actors, person), [])
})

t.test('F-17: within a transaction too, also where the subscription ends before the COMMIT', async t => {
  const { actors, person, peer } = await begin(t, ['a', 'b'])
  subscribe(peer, 's1', 'client')
  await actors.settle()
  const ids = idsOf(peer.take())
  peer.write('BEGIN\ntransaction:t\n\n\0')
  ack(peer, ids[0]!, 'transaction:t\n')
  unsubscribe(peer, 's1')
  peer.write('COMMIT\ntransaction:t\nreceipt:r\n\n\0')
  await actors.settle()
  t.equal(headerOf(peer.take()[0], 'receipt-id'), 'r')
  t.same(waiting(actors, person), ['b'])
})

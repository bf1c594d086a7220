/** The badge over a connection: live state, and the effect of acknowledging it. */

import t, { type Test } from 'tap'
import type { CallNoticeBody } from '../../../src/domain/calls/call-notice.ts'
import type { CallId, UserId } from '../../../src/domain/ids.ts'
import { UNSENT_BYTES_HELD } from '../../../src/limits.ts'
import type { MemoryClient } from '../../support/memory-client.ts'
import type { ClientFrame } from '../../support/naive-client.ts'
import { headerOf } from '../../support/naive-stomp.ts'
import { newPerson, openTestActors, type Person, type TestActors } from '../../support/test-actors.ts'

const MISSED: CallNoticeBody = {
  kind: 'call_missed',
  callId: 1n as CallId,
  version: 2,
  callerId: 2n as UserId,
  callerName: 'Ann',
  displayName: 'Ann',
  alias: undefined,
  isContact: true,
  isVideo: true,
  atMs: 3,
}

function subscribe(peer: MemoryClient, queue: string, ack = 'auto', more = ''): void {
  peer.write(`SUBSCRIBE\nid:${queue}\ndestination:/user/queue/${queue}\nack:${ack}\n${more}\n\0`)
}

/** The badges a client received, and every other message by its type. */
function said(frames: readonly ClientFrame[]): (string | number)[] {
  return frames.map(frame => {
    if (frame.command !== 'MESSAGE') return frame.command
    const type = headerOf(frame, 'type')
    return type === 'badge' ? JSON.parse(String(frame.body)).missedCalls : type!
  })
}

/** Kinds of what the device's inbox holds. */
function kept(actors: TestActors, { userId, deviceId }: Person): string[] {
  return actors.database
    .view(view =>
      actors.inbox.after(view, userId, deviceId, { offset: 0, limit: 1_000, nowMs: actors.world.nowMs() }),
    )
    .map(({ item }) => (item.kind === 'dev' ? item.queue : item.body.kind))
}

/** A device that has subscribed to these queues and been told its badge, which is 0. */
async function begin(t: Test, queues: Readonly<Record<string, string>> = { account: 'auto' }) {
  const actors = openTestActors(t)
  const person = newPerson()
  const peer = await actors.connect(person)
  for (const [queue, ack] of Object.entries(queues)) subscribe(peer, queue, ack)
  await actors.settle()
  const [badge] = peer.take()
  return { actors, person, peer, badge: badge! }
}

t.test('a device gets its badge on subscribing, behind the receipt and waiting messages', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  await actors.setBadge(person, 2)
  await actors.tell(person, { kind: 'profile_changed' })
  const peer = await actors.connect(person)
  for (const queue of ['calls', 'contacts']) subscribe(peer, queue)
  await actors.settle()
  t.same(peer.take(), [], 'on its own queue alone')
  subscribe(peer, 'account', 'auto', 'receipt:r\n')
  await actors.settle()
  t.same(said(peer.take()), ['RECEIPT', 'profile_changed', 2])
})

t.test('a change reaches each connection of the user once, and no inbox', async t => {
  const { actors, person, peer } = await begin(t)
  const other = newPerson(person.userId)
  const elsewhere = await actors.connect(other)
  subscribe(elsewhere, 'account')
  await actors.settle()
  elsewhere.take()
  await actors.setBadge(person, 3)
  await actors.setBadge(person, 3)
  t.same([said(peer.take()), said(elsewhere.take())], [[3], [3]], 'what is known is not repeated')
  t.same([kept(actors, person), kept(actors, other)], [[], []])
  t.equal(actors.head(person).nextOffset, 1)
})

t.test('a device that was away learns what the badge is, not what it was', async t => {
  const { actors, person, peer } = await begin(t)
  peer.drop()
  await actors.settle()
  for (const missedCalls of [1, 2, 1]) await actors.setBadge(person, missedCalls)
  const again = await actors.connect(person)
  subscribe(again, 'account')
  await actors.settle()
  t.same(said(again.take()), [1])
})

t.test('a missed call carries the badge, which is sent by itself only where calls are not read', async t => {
  const { actors, person, peer } = await begin(t, { account: 'auto', calls: 'auto' })
  const other = newPerson(person.userId)
  const elsewhere = await actors.connect(other)
  subscribe(elsewhere, 'account')
  await actors.settle()
  elsewhere.take()
  actors.countMissed(1)
  await actors.tell(person, MISSED)
  await actors.setBadge(person, 1)
  const [frame, ...more] = peer.take()
  t.match(JSON.parse(String(frame?.body)), { type: 'call_missed', badge: { total: 1, missedCalls: 1 } })
  t.same(said(more), [])
  t.same(said(elsewhere.take()), [1])
})

t.test('a badge that overtakes the news of the message that carries it is sent once', async t => {
  const { actors, person, peer } = await begin(t, { account: 'auto', calls: 'auto' })
  // The connection's mailbox has it before presence passes the news on.
  actors.database.subscribe('inbox-news', () => {
    for (const { ref } of actors.connections.of(person.userId)) ref.tell({ kind: 'badge' })
  })
  actors.countMissed(1)
  await actors.tell(person, MISSED)
  t.same(said(peer.take()), ['call_missed'])
})

t.test('a missed call that is delivered later carries the badge of then', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  actors.countMissed(1)
  await actors.tell(person, MISSED)
  actors.countMissed(0)
  const peer = await actors.connect(person)
  subscribe(peer, 'calls')
  await actors.settle()
  t.match(JSON.parse(String(peer.take()[0]?.body)), { type: 'call_missed', badge: { total: 0 } })
})

t.test('acknowledging a badge covers what came before it in the mode client, else nothing', async t => {
  for (const [mode, left] of [
    ['client', []],
    ['client-individual', ['profile_changed']],
  ] as const) {
    const { actors, person, peer } = await begin(t, { account: mode })
    await actors.tell(person, { kind: 'profile_changed' })
    await actors.setBadge(person, 1)
    const [, badge] = peer.take()
    const id = headerOf(badge, 'ack')
    t.equal(id, headerOf(badge, 'message-id'))
    peer.write(`ACK\nid:${id}\nreceipt:r\n\n\0`)
    await actors.settle()
    t.same([said(peer.take()), kept(actors, person)], [['RECEIPT'], left], mode)
  }
})

t.test(
  'a badge that is acknowledged after its subscription has ended covers the messages before it',
  async t => {
    for (const [mode, left] of [
      ['client', []],
      ['client-individual', ['profile_changed']],
    ] as const) {
      const { actors, person, peer } = await begin(t, { account: mode })
      await actors.tell(person, { kind: 'profile_changed' })
      await actors.setBadge(person, 1)
      const badge = peer.take().at(-1)!
      peer.write('UNSUBSCRIBE\nid:account\n\n\0')
      peer.write(`ACK\nid:${headerOf(badge, 'message-id')}\nreceipt:r\n\n\0`)
      await actors.settle()
      t.same([said(peer.take()), kept(actors, person)], [['RECEIPT'], left], mode)
    }
  },
)

t.test('a client that acknowledges or refuses a badge anyhow stays connected', async t => {
  const { actors, person, peer, badge } = await begin(t)
  const id = headerOf(badge, 'message-id')
  t.equal(headerOf(badge, 'ack'), undefined)
  for (const frame of [`ACK\nid:${id}`, `NACK\nid:${id}`, `NACK\nid:${id}\nrequeue:false`]) {
    peer.write(`${frame}\n\n\0`)
  }
  peer.write('UNSUBSCRIBE\nid:account\n\n\0')
  peer.write(`ACK\nid:${id}\nreceipt:r\n\n\0`)
  await actors.settle()
  t.same([said(peer.take()), peer.closeCode], [['RECEIPT'], undefined])
  for (const [version, frame] of [
    ['1.1', `ACK\nsubscription:account\nmessage-id:${id}`],
    ['1.0', `ACK\nmessage-id:${id}`],
  ] as const) {
    const older = await actors.connect(person, version)
    subscribe(older, 'account', 'client')
    await actors.settle()
    t.same(said(older.take()), [0])
    older.write(`${frame}\nreceipt:r\n\n\0`)
    await actors.settle()
    t.same(said(older.take()), ['RECEIPT'], version)
  }
})

t.test('a client goes on behind a badge as behind any message', async t => {
  const { actors, person, peer, badge } = await begin(t, { account: 'client-individual' })
  const first = headerOf(badge, 'message-id')
  await actors.tell(person, { kind: 'profile_changed' })
  await actors.setBadge(person, 1)
  const [, second] = peer.take()
  peer.drop()
  await actors.settle()
  await actors.tell(person, { kind: 'session_revoked', reason: 'logout' })
  for (const [since, expected] of [
    [first, ['RECEIPT', 'profile_changed', 'session_revoked', 1]],
    [headerOf(second, 'message-id'), ['RECEIPT', 'session_revoked', 1]],
  ] as const) {
    const again = await actors.connect(person)
    subscribe(again, 'account', 'client-individual', `receipt:r\nsince:${since}\n`)
    await actors.settle()
    const frames = again.take()
    t.same(said(frames), expected)
    t.equal(headerOf(frames[0], 'recovered'), 'true')
  }
})

t.test('a client that does not read gets only the final badge', async t => {
  const { actors, person, peer } = await begin(t, { account: 'auto', 'dev.t': 'auto' })
  peer.kernelBytes = 0
  await actors.keep(person, 'dev.t', 'x'.repeat(UNSENT_BYTES_HELD + 1))
  for (const missedCalls of [1, 2, 3]) await actors.setBadge(person, missedCalls)
  peer.kernelBytes = Number.POSITIVE_INFINITY
  peer.flush()
  await actors.settle()
  t.same(said(peer.take().slice(1)), [3])
})

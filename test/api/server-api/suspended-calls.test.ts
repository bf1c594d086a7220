/** Calls of a user who is suspended, and calls to one, in the whole application. */

import t, { type Test } from 'tap'
import type { Call } from '../../../src/domain/calls/call.ts'
import type { CallId } from '../../../src/domain/ids.ts'
import { befriend, callTo, newPhone, type Phone } from '../../support/call-provocations.ts'
import { MemoryClient } from '../../support/memory-client.ts'
import { connectFrame, sendFrame } from '../../support/naive-client.ts'
import { openServerApi } from '../../support/server-api.ts'
import { openTestApi } from '../../support/test-api.ts'

async function open(t: Test, { rates = false } = {}) {
  const whole = await openTestApi(t, { rates })
  const { send: server } = await openServerApi(whole)
  const [ann, bob, cid] = [await newPhone(whole), await newPhone(whole), await newPhone(whole)]
  for (const [one, other] of [
    [ann, bob],
    [ann, cid],
    [bob, cid],
  ] as const)
    await befriend(whole, one, other)
  const post = (phone: Phone, path: string, body: object = {}) =>
    whole.send(`POST /app/api/call/${path}`, { token: phone.token, body })
  return {
    ...whole,
    ann,
    bob,
    cid,
    post,
    suspend: ({ userId }: Phone) =>
      server(`POST /server/api/v1/users/id:${userId}/suspend`, { body: { reason: 'abuse' } }),
    async start(by: Phone, ...callees: Phone[]): Promise<CallId> {
      const { body } = await post(by, 'start', { ...callTo(callees), isVideo: false })
      return BigInt(body.callId) as CallId
    },
    join: (phone: Phone, callId: CallId) => post(phone, `${callId}/join`),
    /** The call, once all that its room was told is durable. */
    async call(callId: CallId, by: Phone): Promise<Call> {
      await whole.rooms.ask(callId, { kind: 'device-seen', by })
      return whole.stores.calls.open(callId)!
    },
  }
}

function states({ status, participants }: Call): string[] {
  return [status, ...participants.map(({ state }) => state)]
}

t.test('a call of three goes on without them, by whomever it was begun', async t => {
  const { ann, bob, cid, start, join, call, suspend } = await open(t)
  const callId = await start(ann, bob, cid)
  for (const phone of [bob, cid]) await join(phone, callId)
  await suspend(ann)
  const after = await call(callId, bob)
  t.same(states(after), ['active', 'left', 'joined', 'joined'])
  t.equal(after.hostUserId, bob.userId)
})

t.test('a call of two ends, and the other reads that they hung up', async t => {
  const { ann, bob, start, join, call, suspend, post } = await open(t)
  const callId = await start(ann, bob)
  await join(bob, callId)
  await suspend(bob)
  t.match(await call(callId, ann), { status: 'ended', endReason: 'suspended', endedBy: bob.userId })
  const record = await post(ann, `${callId}/end`)
  t.match(record.body, { status: 'ended', endReason: 'hangup' })
})

t.test('a ring of theirs is given up, and one at them counts as unanswered', async t => {
  const { ann, bob, cid, start, call, suspend } = await open(t)
  const given = await start(ann, bob)
  await suspend(ann)
  t.same(states(await call(given, bob)), ['cancelled', 'left', 'missed'])
  const rung = await start(bob, cid)
  await suspend(cid)
  t.same(states(await call(rung, bob)), ['missed', 'left', 'missed'])
})

t.test('a contact who rings them sees a user who can not be reached', async t => {
  const { ann, bob, cid, start, call, suspend, send, world } = await open(t)
  const contacts = () => send('GET /app/api/friend', { token: ann.token })
  const before = await contacts()
  await suspend(bob)
  t.same((await contacts()).body, before.body)
  await world.takeSent()
  const callId = await start(ann, bob, cid)
  const { participants } = await call(callId, ann)
  t.same(
    participants.map(({ state, devices }) => `${state} ${devices.length}`),
    ['joined 0', 'invited 0', 'invited 1'],
    'none of their devices rings',
  )
  const pushed = (await world.takeSent()).filter(
    each => each.channel === 'push' && each.userId === bob.userId,
  )
  t.same(pushed, [])
})

t.test('rings at them count like rings at any callee who does not answer', async t => {
  const { ann, bob, cid, post, suspend } = await open(t, { rates: true })
  await suspend(bob)
  const rung = async (phone: Phone) => {
    const { status, body } = await post(ann, 'start', { ...callTo([phone]), isVideo: false })
    if (status === 201) await post(ann, `${body.callId}/end`)
    return status
  }
  for (const phone of [bob, cid]) {
    for (let count = 0; count < 5; count++) t.equal(await rung(phone), 201)
    t.equal(await rung(phone), 429)
  }
})

t.test('their socket is closed, and no frame of theirs does anything more', async t => {
  const { ann, bob, start, join, call, suspend, signalling } = await open(t)
  const callId = await start(ann, bob)
  await join(bob, callId)
  const client = new MemoryClient(signalling.accept, {})
  const settle = async () => {
    for (let turn = 0; turn < 8; turn++) await new Promise(resolve => setImmediate(resolve))
    client.flush()
  }
  client.write(connectFrame(bob.token))
  await settle()
  client.take()
  const suspending = suspend(bob)
  client.write(sendFrame(`/app/call/${callId}/end`, '{}'))
  await suspending
  client.write(sendFrame(`/app/call/${callId}/rejoin`, '{}'))
  await settle()
  t.ok(client.isClosed)
  t.match(states(await call(callId, ann))[0], 'ended')
})

t.test('a request that was on its way when they were suspended begins nothing', async t => {
  const { ann, bob, cid, start, suspend, rooms } = await open(t)
  const callId = await start(ann, bob, cid)
  await suspend(bob)
  await t.rejects(rooms.ask(callId, { kind: 'join', by: bob }), { code: 'DEVICE_NOT_REGISTERED' })
  const begun = { kind: 'start', by: bob, callId: 77n as CallId, ...callTo([cid]), isVideo: false } as const
  await t.rejects(rooms.ask(begun.callId, begun), { code: 'DEVICE_NOT_REGISTERED' })
})

t.test(
  'a crash between the suspension and the end of their calls is made good at the next start',
  async t => {
    const { ann, bob, start, join, world, rooms, call } = await open(t)
    const callId = await start(ann, bob)
    await join(bob, callId)
    const { accounts, database } = world
    await database.change(change =>
      accounts.put(change, bob.userId, {
        ...accounts.read(change, bob.userId)!,
        suspension: { reason: 'abuse', atMs: change.nowMs },
      }),
    )
    t.equal((await call(callId, ann)).status, 'active')
    rooms.resume()
    t.match(await call(callId, ann), { status: 'ended', endReason: 'suspended' })
  },
)

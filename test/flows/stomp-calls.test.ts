/**
 * Calls as they are on the wire: requests over HTTP, events over STOMP, read octet by octet. Section J of the conformance
 * cases; what the rules of a call are is tested where they are.
 */

import t, { type Test } from 'tap'
import type { Answer } from '../support/app.ts'
import { befriend, newCallKey, type Person } from '../support/call-people.ts'
import type { ClientFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import type { Carrier, SocketClient } from '../support/socket-client.ts'
import { deviceOf, WireServer } from '../support/wire-server.ts'

const server = await WireServer.start(t, { people: 23 })

/** A device with a connection that hears of calls. */
interface Phone extends Person {
  readonly peer: SocketClient
  readonly name: string
}

async function listen(person: Person, carrier: Carrier): Promise<Phone> {
  const peer = await server.connect(carrier, deviceOf(person))
  await peer.subscribe('/user/queue/calls', 'calls')
  return { ...person, peer, name: `${person.userId}_${person.deviceId}` }
}

/** People who know the first of them, listening. */
async function meet(count: number): Promise<Phone[]> {
  const people = await Promise.all(Array.from({ length: count }, () => server.signIn()))
  for (const other of people.slice(1)) await befriend(people[0]!, other)
  return Promise.all(people.map((person, at) => listen(person, at % 2 === 0 ? 'websocket' : 'tcp')))
}

function keysFor(phones: readonly Phone[]): Record<string, string> {
  return Object.fromEntries(phones.map(({ name }) => [name, newCallKey()]))
}

function start({ app }: Phone, encryptedAESKeys: Readonly<Record<string, string>>): Promise<Answer> {
  const calleeIds = [...new Set(Object.keys(encryptedAESKeys).map(name => name.split('_')[0]!))]
  return app.send('POST /app/api/call/start', { calleeIds, encryptedAESKeys, isVideo: true })
}

/** Takes the next event of calls. */
function next({ peer }: Phone): Promise<ClientFrame> {
  return peer.message()
}

function typesOf(frames: readonly ClientFrame[]): (string | undefined)[] {
  return frames.map(frame => headerOf(frame, 'type'))
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of any form
function bodyOf(frame: ClientFrame): any {
  return JSON.parse(String(frame.body))
}

async function hangUp(t: Test, ...phones: readonly Phone[]): Promise<void> {
  for (const { peer } of phones) t.same(typesOf(await peer.disconnect()), [], 'nothing more came')
}

t.test('J-01, J-06: each device rings with its own key, and stops when the caller gives up', async t => {
  const [ann, phone, eve] = (await meet(3)) as [Phone, Phone, Phone]
  const tablet = await listen(await server.anotherDevice(phone), 'tcp')
  const keys = keysFor([phone, tablet])
  const { status, body: call } = await start(ann, keys)
  t.equal(status, 201)
  for (const [device, other] of [
    [phone, tablet],
    [tablet, phone],
  ] as const) {
    const frame = await next(device)
    t.match(bodyOf(frame), {
      type: 'call_invitation',
      callerId: ann.userId,
      callerName: /^Person \d+$/,
      callId: call.callId,
      encryptedAESKey: keys[device.name],
      roomId: call.roomId,
      isVideo: true,
      isOnGoing: false,
    })
    t.equal(headerOf(frame, 'type'), 'call_invitation')
    t.equal(headerOf(frame, 'destination'), '/user/queue/calls')
    t.notMatch(frame.octets.toString(), keys[other.name]!)
  }
  const late = await server.anotherDevice(phone)
  await ann.app.get(200, `POST /app/api/call/${call.callId}/end`)
  for (const device of [phone, tablet]) t.match(bodyOf(await next(device)), { type: 'call_cancelled' })
  const lateComer = await listen(late, 'websocket')
  await hangUp(t, ann, phone, tablet, eve, lateComer)
})

t.test('who logs out is out of the call, at once', async t => {
  const [ann, bob, carol] = (await meet(3)) as [Phone, Phone, Phone]
  const { callId } = (await start(ann, keysFor([bob, carol]))).body
  await ann.peer.subscribe(`/topic/call.${callId}`, 'the call')
  for (const { app, peer } of [bob, carol]) {
    await peer.message()
    await app.get(200, `POST /app/api/call/${callId}/join`)
  }
  await bob.app.get(204, 'POST /app/api/logout')
  for (let type = ''; type !== 'participant_left'; ) type = bodyOf(await next(ann)).type
  const { participants } = await ann.app.get(200, `GET /app/api/call/${callId}/participants`)
  t.match(
    participants.map(({ state }: { state: string }) => state),
    ['joined', 'left', 'joined'],
  )
  await ann.app.get(200, `POST /app/api/call/${callId}/end`)
})

t.test('blocking the caller stops the ring, on every device', async t => {
  const [ann, bob] = (await meet(2)) as [Phone, Phone]
  const { callId } = (await start(ann, keysFor([bob]))).body
  await bob.peer.message()
  await bob.app.get(204, 'POST /app/api/block', { userId: ann.name.split('_')[0] })
  t.match(bodyOf(await next(bob)), { type: 'call_answered_elsewhere', callId })
  t.match(bodyOf(await next(ann)), { type: 'call_ended', callId, status: 'declined' })
})

t.test('J-06: a declined call stops ringing everywhere', async t => {
  const [ann, bob] = (await meet(2)) as [Phone, Phone]
  await hangUp(t, bob)
  const { body: call } = await start(ann, keysFor([bob]))
  await ann.app.get(200, `POST /app/api/call/${call.callId}/end`)
  const back = await listen(bob, 'websocket')
  t.equal(headerOf(await next(back), 'type'), 'call_cancelled', 'in place of the invitation')
  await hangUp(t, ann, back)
})

t.test('J-02: a key map that misses a device rings no device', async t => {
  const [ann, phone, carol] = (await meet(3)) as [Phone, Phone, Phone]
  const tablet = await listen(await server.anotherDevice(phone), 'tcp')
  const { status, body } = await start(ann, keysFor([phone, carol]))
  t.match([status, body.code], [409, 'DEVICE_LIST_MISMATCH'])
  t.match(JSON.stringify(body), tablet.deviceId)
  await hangUp(t, ann, phone, tablet, carol)
})

t.test('J-05: when one of two devices answers, the other hears it at once', async t => {
  const [ann, phone] = (await meet(2)) as [Phone, Phone]
  const tablet = await listen(await server.anotherDevice(phone), 'websocket')
  const { body: call } = await start(ann, keysFor([phone, tablet]))
  for (const device of [phone, tablet]) t.equal(headerOf(await next(device), 'type'), 'call_invitation')
  const joining = phone.app.get(200, `POST /app/api/call/${call.callId}/join`)
  const [, told] = await Promise.all([joining, next(tablet)])
  t.match(bodyOf(told), { type: 'call_answered_elsewhere', callId: call.callId })
  await ann.app.get(200, `POST /app/api/call/${call.callId}/end`)
  t.equal(headerOf(await next(phone), 'type'), 'call_ended')
  await hangUp(t, ann, phone, tablet)
})

t.test(
  'J-08, J-09: who lost the key is answered by everybody in the call, each in their own name',
  async t => {
    const [ann, bob, carol] = (await meet(3)) as [Phone, Phone, Phone]
    const { body: call } = await start(ann, keysFor([bob, carol]))
    const { callId } = call
    for (const { app, peer } of [bob, carol]) {
      await peer.message()
      await app.get(200, `POST /app/api/call/${callId}/join`)
    }
    bob.peer.destroy()
    const back = await listen(bob, 'tcp')
    t.same(await bob.app.get(202, `POST /app/api/call/${callId}/request-rejoin`), { expiresIn: 30, asked: 2 })
    const answers = new Map<string, string>()
    for (const answerer of [ann, carol]) {
      const request = bodyOf(await next(answerer))
      t.match(request, { type: 'participant_request_rejoin', userId: bob.userId, deviceId: bob.deviceId })
      answers.set(answerer.userId, newCallKey())
      await accept(answerer, callId, request, answers.get(answerer.userId)!)
    }
    for (const answerer of [ann, carol]) {
      t.match(bodyOf(await next(back)), {
        type: 'participant_accept_rejoin',
        fromUserId: answerer.userId,
        fromDeviceId: answerer.deviceId,
        encryptedAESKey: answers.get(answerer.userId),
      })
    }
    await bob.app.get(200, `POST /app/api/call/${callId}/rejoin`)
    await accept(carol, callId, bob, newCallKey())
    await hangUp(t, ann, carol, back)
  },
)

/** Answers a request for the key; resolves when the server has it. */
function accept(
  { peer }: Phone,
  callId: string,
  { userId, deviceId }: { readonly userId: string; readonly deviceId: string },
  encryptedAESKey: string,
): Promise<void> {
  const body = { requesterUserId: userId, requesterDeviceId: deviceId, encryptedAESKey }
  return peer.send(`/app/call/${callId}/accept-rejoin`, JSON.stringify(body))
}

const REQUESTS = 40

t.test(
  'F-17: a message that is acknowledged after UNSUBSCRIBE is done with, in the process and behind a front',
  async t => {
    const [ann, bob, cat] = [await server.signIn(), await server.signIn(), await server.signIn()]
    for (const { app } of [bob, cat])
      await app.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: ann.userId })
    const peer = await server.connect('websocket', deviceOf(ann))
    await peer.subscribe('/user/queue/contacts', 'q', 'ack:client-individual\n')
    const [first, second] = [await peer.message(), await peer.message()]
    peer.write('UNSUBSCRIBE\nid:q\n\n\0')
    peer.write(`ACK\nid:${headerOf(first, 'ack')}\nreceipt:a\n\n\0`)
    await peer.receipt('a')
    peer.destroy()
    const again = await server.connect('websocket', deviceOf(ann))
    await again.subscribe('/user/queue/contacts', 'q', 'ack:client-individual\n')
    t.equal(headerOf(await again.message(), 'message-id'), headerOf(second, 'message-id'))
    t.same(await again.disconnect(), [])
  },
)

t.test('J-10: a device that comes back in the middle of a burst goes on exactly where it was', async t => {
  const [ann, bob] = [await server.signIn(), await server.signIn()]
  const tablet = await server.connect('websocket', deviceOf(await server.anotherDevice(bob)))
  await tablet.subscribe('/user/queue/contacts')
  let lastId = ''
  const burst = async () => {
    for (let at = 0; at < REQUESTS; at++) {
      const request = { targetUserId: bob.userId }
      const { requestId } = await ann.app.get(201, 'POST /app/api/friend-request/by-id', request)
      if (at === REQUESTS - 1) lastId = requestId
      await ann.app.get(204, `DELETE /app/api/friend-request/${requestId}`)
    }
  }
  const told: ClientFrame[] = []
  const isOver = burst()
  const isLast = (frame: ClientFrame) =>
    headerOf(frame, 'type') === 'friend_request_cancelled' && bodyOf(frame).requestId === lastId
  const isComplete = () => told.some(isLast)
  for (let connections = 0; !isComplete(); connections++) {
    const peer = await server.connect(connections % 2 === 0 ? 'tcp' : 'websocket', deviceOf(bob))
    const since = told.length === 0 ? '' : `since:${headerOf(told.at(-1), 'message-id')}\n`
    // With `auto`, messages that this connection has drained and nobody has read would be done with.
    const receipt = await peer.subscribe('/user/queue/contacts', 'q', `ack:client-individual\n${since}`)
    t.equal(headerOf(receipt, 'recovered'), since === '' ? undefined : 'true')
    for (let count = 0; count < 5 && !isComplete(); count++) told.push(await peer.message())
    peer.destroy()
  }
  await isOver
  const eventsOf = (frames: readonly ClientFrame[]) => frames.map(frame => bodyOf(frame).eventId)
  t.ok(told.length >= REQUESTS)
  t.same(eventsOf(told), eventsOf(await tablet.disconnect()), 'as the other device, which never left, had it')
  const last = await server.connect('tcp', deviceOf(bob))
  await last.subscribe('/user/queue/contacts', 'q', `since:${headerOf(told.at(-1), 'message-id')}\n`)
  await last.send('/topic/dev.t', 'x')
  t.same(await last.disconnect(), [], 'and there is no more')
})

t.test('the server logged no fault', async t => {
  t.same(server.faults(), [])
})

/** Keys that come with the set of devices they are sealed for, on the wire: over HTTP, WebSocket and plain TCP. */

import t from 'tap'
import { befriend, newCallKey, type Person } from '../support/call-people.ts'
import { memberEntry, membersOf } from '../support/key-members.ts'
import { sendFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import type { Carrier, SocketClient } from '../support/socket-client.ts'
import { deviceOf, WireServer } from '../support/wire-server.ts'

const server = await WireServer.open(t, { people: 8 })

/** A device with a connection that hears of calls. */
interface Phone extends Person {
  readonly peer: SocketClient
  readonly name: string
}

async function listen(person: Person, carrier: Carrier): Promise<Phone> {
  const peer = await server.connect(carrier, deviceOf(person))
  await peer.subscribe('/user/queue/errors', 'errors')
  await peer.subscribe('/user/queue/calls', 'calls')
  return { ...person, peer, name: `${person.userId}_${person.deviceId}` }
}

/** Four people who all know one another. */
async function meet(): Promise<[Phone, Phone, Phone, Phone]> {
  const people = await Promise.all(Array.from({ length: 4 }, () => server.signIn()))
  for (const [at, one] of people.entries())
    for (const other of people.slice(at + 1)) await befriend(one, other)
  const phones = people.map((person, at) => listen(person, at % 2 === 0 ? 'websocket' : 'tcp'))
  return (await Promise.all(phones)) as [Phone, Phone, Phone, Phone]
}

function keysFor(...phones: readonly Phone[]): Record<string, string> {
  return Object.fromEntries(phones.map(({ name }) => [name, newCallKey()]))
}

/** The body of the next message of this type. */
// biome-ignore lint/suspicious/noExplicitAny: bodies of any form
async function next({ peer }: Phone, type: string): Promise<any> {
  for (;;) {
    const frame = await peer.message()
    if (headerOf(frame, 'type') === type) return JSON.parse(String(frame.body))
  }
}

t.test('devices learn for whom each key was sealed, and a device that is left out hears of it', async t => {
  const [ann, bob, carol, dave] = await meet()
  const first = membersOf([ann, bob, carol])
  const start = {
    calleeIds: [bob.userId, carol.userId],
    encryptedAESKeys: keysFor(bob, carol),
    isVideo: false,
    keyMembers: first,
  }
  const started = await ann.app.get(201, 'POST /app/api/call/start', start)
  const { callId } = started
  t.notOk('keySets' in started)
  t.notOk('keySets' in (await next(bob, 'call_invitation')))
  const path = `/app/api/call/${callId}`
  for (const { app } of [bob, carol]) {
    const joined = await app.get(200, `POST ${path}/join`)
    t.same(joined.keySets, [{ epoch: 1, keyMembers: first }])
  }

  const second = membersOf([ann, bob])
  const keys = {
    epoch: 2,
    reason: 'rotation',
    encryptedAESKeys: keysFor(bob),
    keyMembers: second,
    without: [carol.name],
  }
  const astray = { ...keys, keyMembers: membersOf([ann, bob, carol]) }
  ann.peer.write(sendFrame(`/app/call/${callId}/keys`, JSON.stringify(astray)))
  t.match(await next(ann, 'error'), {
    problem: { status: 422, errors: [{ pointer: '/keyMembers', code: 'MISMATCH' }] },
  })
  await ann.peer.send(`/app/call/${callId}/keys`, JSON.stringify(keys))
  const update = await next(bob, 'key_update')
  t.match(update, { epoch: 2, reason: 'rotation', added: '', removed: [carol.name] })
  t.match(await next(carol, 'key_missing'), { callId, epoch: 2, version: update.version })
  const read = await bob.app.get(200, `GET ${path}/key-members?epoch=2`)
  t.same(read, { callId, epoch: 2, keyMembers: second })

  const nonce = Buffer.alloc(16, 7).toString('base64')
  await carol.app.get(202, `POST ${path}/request-rejoin`, { nonce })
  t.match(await next(ann, 'participant_request_rejoin'), { userId: carol.userId, nonce })

  const encryptedAESKeys = keysFor(ann, carol, dave)
  const third = membersOf([ann, bob, carol, dave])
  const invite = { calleeIds: [dave.userId], encryptedAESKeys, epoch: 3, keyMembers: third }
  t.match(await bob.app.get(200, `POST ${path}/invite`, invite), { callId, keyEpoch: 3 })
  const rung = await next(dave, 'call_invitation')
  t.match(rung, { keyEpoch: 3, keyFromDeviceId: bob.deviceId, encryptedAESKey: encryptedAESKeys[dave.name] })
  const added = Buffer.concat([carol, dave].map(device => memberEntry(device)).sort(Buffer.compare))
  for (const phone of [ann, carol]) {
    t.match(await next(phone, 'key_update'), {
      epoch: 3,
      reason: 'invite',
      version: rung.version,
      encryptedAESKey: encryptedAESKeys[phone.name],
      fromDeviceId: bob.deviceId,
      added: added.toString('base64'),
      removed: [],
    })
  }
  const late = { ...invite, calleeIds: [dave.userId], encryptedAESKeys: keysFor(bob, carol, dave) }
  t.match(await ann.app.get(409, `POST ${path}/invite`, late), { code: 'EPOCH_CONFLICT', keyEpoch: 3 })
  const { items } = await dave.app.get(200, 'GET /app/api/call/pending')
  t.same(items[0].keySets, [
    { epoch: 3, keyMembers: third },
    { epoch: 2, keyMembers: second },
  ])
  await ann.app.get(404, `GET ${path}/key-members?epoch=1`)
  await ann.app.get(200, `POST ${path}/end`)
  for (const { peer } of [ann, bob, carol, dave]) await peer.disconnect()
})

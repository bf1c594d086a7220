/** Rooms at a LiveKit of the test: who may be in them, who is put out, and when it looks. */

import t from 'tap'
import type { CallDeviceRef } from '../../src/domain/calls/call.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import { GatewayError } from '../../src/media/gateway.ts'
import { LiveKitGateway } from '../../src/media/livekit-gateway.ts'
import { LiveKitTokens } from '../../src/media/livekit-tokens.ts'
import { keyed } from '../support/livekit-settings.ts'

const room = { callId: 7n as CallId, roomId: 4_711 }
const name = String(room.roomId)
const tokens = new LiveKitTokens(keyed())
const [ann, bob, cid] = [1n, 2n, 3n].map(id => ({
  userId: id as UserId,
  deviceId: (id * 10n) as DeviceId,
})) as [CallDeviceRef, CallDeviceRef, CallDeviceRef]
const identityOf = (device: CallDeviceRef) => tokens.identityOf({ ...room, device })
const entriesOf = (...devices: CallDeviceRef[]) =>
  devices.map(device => ({ ...room, gateway: 'livekit', device }))

function missing(): never {
  throw new GatewayError('no-such-room', 'livekit refused')
}

function openGateway() {
  let nowMs = 0
  const rooms = new Map<string, { metadata: string; readonly people: Set<string> }>()
  /** Requests that change something, or look. */
  const asked: string[] = []
  let strangers = 0
  let failure: GatewayError | undefined
  const ask = (text: string) => {
    asked.push(text)
    if (failure !== undefined) throw failure
  }
  const api = {
    async createRoom({ name, metadata }: { name: string; metadata: string }) {
      ask(`create ${name}`)
      rooms.set(name, { people: rooms.get(name)?.people ?? new Set(), metadata })
    },
    async deleteRoom(name: string) {
      ask(`delete ${name}`)
      if (!rooms.delete(name)) missing()
    },
    async listRooms() {
      return [...rooms].map(([name, { metadata }]) => ({ name, metadata }))
    },
    async listParticipants(name: string) {
      ask(`look ${name}`)
      return [...(rooms.get(name)?.people ?? [])]
    },
    async removeParticipant(name: string, identity: string) {
      ask(`remove ${identity}`)
      if (rooms.get(name)?.people.delete(identity) !== true) missing()
    },
  }
  const gateway = new LiveKitGateway(
    api,
    tokens,
    () => nowMs,
    () => strangers++,
  )
  return {
    gateway,
    rooms,
    peopleIn: () => rooms.get(name)!.people,
    take: () => asked.splice(0),
    strangers: () => strangers,
    fails(next: GatewayError | undefined) {
      failure = next
    },
    passes(seconds: number) {
      nowMs += seconds * 1_000
    },
    /** The seconds, of the next so many, in which it looks. */
    async looksIn(seconds: number) {
      asked.length = 0
      const found: number[] = []
      for (let second = 2; second <= seconds; second += 2) {
        nowMs += 2_000
        await gateway.look()
        if (asked.splice(0).some(text => text.startsWith('look'))) found.push(second)
      }
      return found
    },
  }
}

t.test('a room is made for its call, and made again under the same name', async t => {
  const { gateway, rooms, take } = openGateway()
  await gateway.open(room, entriesOf(ann))
  t.equal(rooms.get(name)?.metadata, '7')
  t.same(await gateway.rooms(), [room])
  rooms.clear()
  await gateway.admit(room, entriesOf(bob))
  t.same(await gateway.rooms(), [room], 'LiveKit had lost it')
  await gateway.close(room)
  await gateway.close(room)
  t.same(await gateway.rooms(), [])
  t.same(take(), [`create ${name}`, `look ${name}`, `create ${name}`, `delete ${name}`, `delete ${name}`])
  await t.rejects(gateway.admit(room, entriesOf(bob)), { message: 'the room was not opened' })
})

t.test('a room that no call has any more is looked at no more', async t => {
  const { gateway, rooms, looksIn } = openGateway()
  const other = { ...room, roomId: 4_712 }
  await gateway.open(room, entriesOf(ann))
  await gateway.open(other, entriesOf(ann))
  rooms.clear()
  gateway.keepOnly(roomId => roomId === other.roomId)
  t.same(await looksIn(20), [20])
  gateway.keepOnly(() => false)
  t.same(await looksIn(60), [])
})

t.test('a room that is taken over loses those who are not of the call', async t => {
  const { gateway, rooms, peopleIn, strangers } = openGateway()
  rooms.set(name, { metadata: '6', people: new Set([identityOf(ann), identityOf(bob), 'somebody']) })
  await gateway.open(room, entriesOf(ann))
  t.same([...peopleIn()], [identityOf(ann)])
  t.equal(strangers(), 2)
  t.same(gateway.present(), [ann])
})

t.test('a removed device is put out, and each time that it comes again', async t => {
  const { gateway, peopleIn, looksIn, take } = openGateway()
  await gateway.open(room, entriesOf(ann, bob))
  peopleIn().add(identityOf(bob))
  await gateway.remove(room, entriesOf(bob)[0]!)
  t.notOk(peopleIn().has(identityOf(bob)))
  t.match(take().at(-1), 'remove')
  await gateway.remove(room, entriesOf(cid)[0]!)
  peopleIn().add(identityOf(bob))
  t.same(await looksIn(2), [2])
  t.notOk(peopleIn().has(identityOf(bob)), 'after two seconds at most')
  peopleIn().add(identityOf(bob))
  await looksIn(2)
  t.notOk(peopleIn().has(identityOf(bob)), 'and again')
  t.same(await looksIn(80), [2, 4, 8, 14, 26, 46, 66], 'then less and less often')
  peopleIn().add(identityOf(bob))
  await looksIn(20)
  t.notOk(peopleIn().has(identityOf(bob)))
  await gateway.admit(room, entriesOf(bob))
  peopleIn().add(identityOf(bob))
  await looksIn(20)
  t.ok(peopleIn().has(identityOf(bob)), 'who was let in again stays')
})

t.test('the devices that are there count as present, as long as LiveKit answers', async t => {
  const { gateway, peopleIn, looksIn, fails, passes } = openGateway()
  await gateway.open(room, entriesOf(ann, bob))
  t.same(gateway.present(), [])
  for (const device of [ann, bob, cid]) peopleIn().add(identityOf(device))
  t.same(await looksIn(20), [20], 'within a third of the 90 s')
  t.same(gateway.present(), [ann, bob])
  peopleIn().delete(identityOf(bob))
  await looksIn(20)
  t.same(gateway.present(), [ann])
  const timeout = new GatewayError('timeout', 'livekit does not answer')
  fails(timeout)
  await t.rejects(looksIn(20), timeout)
  fails(undefined)
  passes(18)
  t.same(gateway.present(), [], 'it was not heard of for half a minute')
  await looksIn(2)
  t.same(gateway.present(), [ann])
  await gateway.close(room)
  t.same(gateway.present(), [])
  t.same(await looksIn(40), [])
})

t.test('rooms with other names than room numbers are left alone', async t => {
  const { gateway, rooms } = openGateway()
  for (const other of ['lobby', '0', '07', '-1', '9007199254740992', '99999999999999999999', '1e3', ''])
    rooms.set(other, { metadata: '7', people: new Set() })
  rooms.set('5', { metadata: '', people: new Set() })
  rooms.set('6', { metadata: 'x', people: new Set() })
  t.same(await gateway.rooms(), [
    { roomId: 5, callId: undefined },
    { roomId: 6, callId: undefined },
  ])
})

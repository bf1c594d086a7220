/** Replies of a call room wait for the media gateway, for a second at the longest. */

import t, { type Test } from 'tap'
import { HELD_MS_MAX } from '../../../actors/calls/held-replies.ts'
import { asAdmitted } from '../../../actors/calls/media-link.ts'
import type { CallRoomMessage, MediaRoomMessage } from '../../../actors/messages.ts'
import type { CallReply, CallRequest } from '../../../src/domain/calls/call-command.ts'
import type { CallId } from '../../../src/domain/ids.ts'
import { kindOf } from '../../support/actors.ts'
import { membersOf } from '../../support/key-members.ts'
import { openRooms, type Person, type Phone, type TestRooms } from '../../support/test-rooms.ts'

interface StartedCall {
  readonly rooms: TestRooms
  readonly people: readonly [Person, Person, Person]
  /** To the call's room at the gateway. */
  readonly wanted: MediaRoomMessage[]
  /** A call of Ann to the other two. */
  readonly callId: CallId
  readonly start: Asked
  ask(command: CallRequest): Promise<Asked>
  admit(...phones: readonly Phone[]): Promise<void>
  pass(ms: number): Promise<void>
}

interface Asked {
  /** Undefined as long as it waits. */
  answer: CallReply | undefined
  /** Its code. */
  refusal: string | undefined
}

async function startCall(t: Test): Promise<StartedCall> {
  const wanted: MediaRoomMessage[] = []
  const rooms: TestRooms = openRooms(t, { roomDeps: () => ({ mediaRoom: id => mediaRoom(id) }) })
  const mediaRoom = rooms.system.define(
    kindOf<MediaRoomMessage>(message => void wanted.push(message), { kind: 'media-room' }),
  )
  // A reply that waits is an open ask.
  const quiet = async () => {
    for (let turns = 0; turns < 3; ) {
      await new Promise(resolve => setImmediate(resolve))
      const { commitsUnderWay, runQueueLength } = rooms.system.figures()
      turns = commitsUnderWay + runQueueLength === 0 ? turns + 1 : 0
    }
  }
  const callId = rooms.newCallId()
  const ask = async (command: CallRequest) => {
    const asked: Asked = { answer: undefined, refusal: undefined }
    rooms.askOf(callId, command).then(
      answer => Object.assign(asked, { answer }),
      error => Object.assign(asked, { refusal: error.code }),
    )
    await quiet()
    return asked
  }
  const people = (await rooms.people(['Ann', 'Bob', 'Cat'])) as [Person, Person, Person]
  const [ann, ...callees] = people
  const keyMembers = membersOf(people.map(({ phone }) => phone))
  return {
    ...{ rooms, people, wanted, callId, ask },
    start: await ask({ ...rooms.startRequest(ann.phone, callees, callId), keyMembers }),
    async admit(...devices) {
      const { roomId } = rooms.index.callsBetween(ann.userId, ann.userId)[0]!
      rooms
        .room(callId)
        .tellControl({ kind: 'media-admitted', gateway: 'janus', roomId, devices } satisfies CallRoomMessage)
      await quiet()
    },
    async pass(ms) {
      rooms.clock.advance(ms)
      await quiet()
    },
  }
}

t.test('a start is answered once the gateway lets the caller in; it rings before that', async t => {
  const { rooms, people, wanted, start, admit } = await startCall(t)
  const [ann, bob] = people
  const { userId, deviceId } = ann.phone
  t.equal(start.answer, undefined)
  t.match(rooms.kindsFor(bob.phone), ['call_invitation'])
  t.match(wanted.at(-1), { kind: 'wanted', isOver: false, entries: [{ device: { userId, deviceId } }] })
  await admit(ann.phone)
  t.match(start.answer, {
    kind: 'record',
    record: { media: { isReady: true, entry: { device: { userId, deviceId } } } },
  })
  t.notOk(rooms.kindsFor(ann.phone).includes('media_ready'), 'the reply has said it')
})

t.test('after a second it is answered without, and told later', async t => {
  const { rooms, people, start, admit, pass } = await startCall(t)
  const [ann] = people
  await pass(HELD_MS_MAX - 100)
  t.equal(start.answer, undefined)
  await pass(200)
  t.match(start.answer, { kind: 'record', record: { media: { isReady: false } } })
  await admit(ann.phone)
  t.same(rooms.kindsFor(ann.phone), ['media_ready'])
})

t.test('each device waits for its own entry, and for a second of its own', async t => {
  const { people, ask, start, admit, pass } = await startCall(t)
  const [ann, bob, cat] = people
  await pass(600)
  const bobs = await ask({ kind: 'join', by: bob.phone })
  const cats = await ask({ kind: 'join', by: cat.phone })
  await admit(cat.phone)
  t.match(cats.answer, { record: { media: { isReady: true, entry: { device: { userId: cat.userId } } } } })
  t.same([start.answer, bobs.answer], [undefined, undefined])
  await pass(500)
  t.match(start.answer, { record: { media: { isReady: false, entry: undefined } } })
  t.equal(bobs.answer, undefined)
  await admit(ann.phone)
  await pass(600)
  t.match(bobs.answer, { record: { media: { isReady: false, entry: undefined } } })
})

t.test(
  'a device that waited reads the sets of keys in the reply to its join, not in that to its start',
  async t => {
    const { people, ask, start, admit } = await startCall(t)
    const [ann, bob] = people
    const bobs = await ask({ kind: 'join', by: bob.phone })
    await admit(ann.phone, bob.phone)
    t.match(start.answer, { record: { media: { isReady: true }, keySets: undefined } })
    t.match(bobs.answer, { record: { media: { isReady: true }, keySets: [{ epoch: 1 }] } })
  },
)

t.test('a request that does not reach the call waits for nothing', async t => {
  const { people, ask } = await startCall(t)
  const [, bob, cat] = people
  t.same((await ask({ kind: 'ringing', by: bob.phone })).answer, { kind: 'done' })
  t.ok((await ask({ kind: 'decline', by: cat.phone, reason: 'declined' })).answer)
})

t.test('the end of the call answers those that wait', async t => {
  const { people, ask, start, wanted } = await startCall(t)
  const [ann, bob] = people
  const bobs = await ask({ kind: 'join', by: bob.phone })
  await ask({ kind: 'end', by: ann.phone })
  t.match([start.answer, bobs.answer], [{ kind: 'record' }, { kind: 'record' }])
  t.match(wanted.at(-1), { isOver: true, entries: [] })
})

t.test('a write that fails refuses those that wait: a repetition finds what became of the call', async t => {
  const { rooms, people, callId, ask, start, admit, pass } = await startCall(t)
  const [ann, bob] = people
  rooms.writesToFail = 1
  const bobs = await ask({ kind: 'join', by: bob.phone })
  t.same([start.refusal, bobs.refusal], ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
  await pass(1_000)
  t.same(rooms.statesOf(callId), ['joined', 'invited', 'invited'])
  const again = await ask({ kind: 'join', by: bob.phone })
  await admit(ann.phone, bob.phone)
  t.match(again.answer, { record: { media: { isReady: true, entry: { device: { userId: bob.userId } } } } })
})

t.test('the reply that is kept names the gateway that the room is to open at', async t => {
  const { rooms, people, callId, start, admit } = await startCall(t)
  const [ann] = people
  const { userId, deviceId } = ann.phone
  const call = rooms.call(callId)!
  await admit(ann.phone)
  const accepted = { kind: 'accepted', call, effects: [], reply: start.answer! } as const
  const gatewayIn = (reply: CallReply) =>
    reply.kind === 'record' ? reply.record.media.entry?.gateway : reply
  t.equal(gatewayIn(asAdmitted(accepted, { userId, deviceId }, () => 'two')), 'two')
  const admitted = { ...accepted, call: { ...call, gateway: 'janus' } }
  t.equal(gatewayIn(asAdmitted(admitted, { userId, deviceId }, () => 'two')), 'janus')
})

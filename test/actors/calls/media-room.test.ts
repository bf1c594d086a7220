/** A call's room at a gateway whose every answer the test gives: the order of steps, failures, lost rooms, the end. */

import t from 'tap'
import { mediaRoomKind } from '../../../actors/calls/media-room.ts'
import type { CallRoomMessage, MediaRoomMessage } from '../../../actors/messages.ts'
import type { RoomEntry } from '../../../src/domain/calls/call.ts'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import {
  GatewayError,
  type GatewayFailure,
  type GatewayRoom,
  type MediaGateway,
} from '../../../src/media/gateway.ts'
import { kindOf, makeStage } from '../../support/actors.ts'
import { Deferred } from '../../support/deferred.ts'

const CALL = 9n as CallId
const ROOM_ID = 4711

/** The first device of a user. */
function entryOf(user: number, roomId = ROOM_ID): RoomEntry {
  const device = { userId: BigInt(user) as UserId, deviceId: BigInt(user * 100) as DeviceId }
  return { callId: CALL, roomId, gateway: 'janus', device }
}

function usersOf(devices: readonly RoomEntry['device'][]): string {
  return devices.map(({ userId }) => userId).join('+')
}

function openRoom() {
  const { world, system, failures } = makeStage()
  /** Asked of the gateway, with its users: `open 1+2`. */
  const steps: string[] = []
  /** To the call room. */
  const told: string[] = []
  let underWay: Deferred<void> | undefined
  const stepAt =
    (name: string) =>
    (kind: string, { roomId }: GatewayRoom, entries: readonly RoomEntry[] = []) => {
      const room = roomId === ROOM_ID ? '' : ` in ${roomId}`
      const at = name === 'janus' ? '' : ` at ${name}`
      steps.push(`${`${kind} ${usersOf(entries.map(({ device }) => device))}`.trim()}${room}${at}`)
      underWay = new Deferred<void>()
      return underWay as PromiseLike<void> as Promise<void>
    }
  const gatewayAt = (name: string): Omit<MediaGateway, 'rooms'> => {
    const step = stepAt(name)
    return {
      open: (room, entries) => step('open', room, entries),
      admit: (room, entries) => step('admit', room, entries),
      renew: (room, entries) => step('renew', room, entries),
      remove: (room, entry) => step('remove', room, [entry]),
      close: room => step('close', room),
    }
  }
  /** Gateways that are there, the first preferred; what a call holds it keeps. */
  const there = ['janus']
  const callRoom = system.define(
    kindOf<CallRoomMessage>(message => {
      const isAdmitted = message.kind === 'media-admitted'
      const devices = isAdmitted ? ` ${usersOf(message.devices)}` : ''
      const room = isAdmitted && message.roomId !== ROOM_ID ? ` to ${message.roomId}` : ''
      const at = isAdmitted && message.gateway !== 'janus' ? ` at ${message.gateway}` : ''
      told.push(`${message.kind}${devices}${room}${at}`)
    }),
  )
  const failed: string[] = []
  const rooms = system.define(
    mediaRoomKind({
      choose: (_, held, asked) => there.find(name => name === (held ?? asked)) ?? there[0],
      gatewayOf: gatewayAt,
      callRoom,
      monotonicMs: () => world.monotonicMs(),
      onFailed: ({ callId, step }) => void failed.push(`${callId} ${step}`),
    }),
  )
  const tell = (message: MediaRoomMessage) => {
    rooms('77').tellControl(message)
    world.run()
  }
  return {
    ...{ world, system, failures, steps, told, failed, tell, there },
    wants: (...users: readonly number[]) =>
      tell({
        kind: 'wanted',
        roomId: ROOM_ID,
        gateway: undefined,
        entries: users.map(entryOf),
        isOver: false,
      }),
    wantsRoom: (roomId: number, ...users: readonly number[]) =>
      tell({
        kind: 'wanted',
        roomId,
        gateway: undefined,
        entries: users.map(user => entryOf(user, roomId)),
        isOver: false,
      }),
    ends: () => tell({ kind: 'wanted', roomId: ROOM_ID, gateway: 'janus', entries: [], isOver: true }),
    /** The step under way is done. */
    done() {
      underWay!.resolve()
      world.run()
    },
    fails(failure: GatewayFailure) {
      underWay!.reject(new GatewayError(failure, 'as the test says'))
      world.run()
    },
    takeSteps: () => steps.splice(0),
    takeTold: () => told.splice(0),
  }
}

t.test('the room opens for those in the call, and follows them one step at a time', async t => {
  const { wants, done, takeSteps, takeTold, failures } = openRoom()
  wants(1)
  t.same(takeTold(), [], 'not before the gateway says so')
  wants(1, 2, 3)
  t.same(takeSteps(), ['open 1'], 'what comes meanwhile waits')
  done()
  t.same(takeTold(), ['media-admitted 1'])
  wants(2, 3)
  t.same(takeSteps(), ['admit 2+3'])
  done()
  t.same(takeTold(), ['media-admitted 2+3'], 'not the one that left meanwhile')
  t.same(takeSteps(), ['remove 1'])
  done()
  wants(2, 3, 4)
  wants(3, 4)
  t.same(takeSteps(), ['admit 4'])
  done()
  t.same(takeSteps(), ['remove 2'])
  done()
  t.same(takeSteps(), [])
  t.same(failures, [])
})

t.test('tokens of those in the room are renewed in time, and once more after a failure', async t => {
  const { world, wants, done, fails, takeSteps, takeTold } = openRoom()
  const pass = (ms: number) => {
    world.advance(ms)
    world.run()
  }
  wants(1)
  done()
  wants(1, 2)
  done()
  takeSteps()
  takeTold()
  pass(20 * 60_000 - 1)
  t.same(takeSteps(), [])
  pass(1)
  t.same(takeSteps(), ['renew 1+2'])
  fails('timeout')
  pass(1_000)
  t.same(takeSteps(), ['renew 1+2'])
  done()
  t.same(takeTold(), ['media-admitted 1+2'])
  pass(20 * 60_000)
  t.same(takeSteps(), ['renew 1+2'])
})

t.test('those that left are put out before any other is let in', async t => {
  const { wants, done, takeSteps } = openRoom()
  wants(1, 2)
  done()
  takeSteps()
  wants(3)
  const inOrder: string[] = []
  for (let left = 3; left > 0; left--) {
    inOrder.push(...takeSteps())
    done()
  }
  t.same(inOrder, ['remove 1', 'remove 2', 'admit 3'])
})

t.test('a device that left and came back before it was put out is told that it is let in', async t => {
  const { wants, done, takeSteps, takeTold } = openRoom()
  wants(1, 2)
  done()
  wants(1, 2, 3)
  wants(1, 3)
  takeTold()
  wants(1, 2, 3)
  t.same(takeTold(), ['media-admitted 1+2'])
  done()
  t.same(takeSteps(), ['open 1+2', 'admit 3'], 'and it is let in still')
})

t.test(
  'a step that fails is taken again after 1, 2, 4 and at last every 30 seconds, or some of that sooner',
  async t => {
    const { world, wants, fails, done, takeSteps, takeTold, failed } = openRoom()
    wants(1)
    takeSteps()
    for (const boundMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      const pauseMs = boundMs * (0.5 + world.random() / 2)
      fails('timeout')
      wants(1, 2)
      world.advance(pauseMs - 100)
      t.same(takeSteps(), [], `not within ${pauseMs} ms, whoever comes`)
      world.advance(200)
      t.same(takeSteps(), ['open 1+2'])
    }
    t.same(takeTold(), [])
    t.equal(failed.length, 7)
    t.equal(failed[0], '77 open')
    done()
    t.same(takeTold(), ['media-admitted 1+2'])
    wants(1, 2, 3)
    fails('network')
    takeSteps()
    world.advance(1_100)
    t.same(takeSteps(), ['admit 3'], 'after a success the pauses begin anew')
  },
)

t.test('a room that the gateway has lost is made again at once', async t => {
  const { wants, done, fails, takeSteps, takeTold } = openRoom()
  wants(1)
  done()
  wants(1, 2)
  takeTold()
  fails('no-such-room')
  t.same(takeTold(), ['media-lost'])
  t.same(takeSteps(), ['open 1', 'admit 2', 'open 1+2'])
  done()
  t.same(takeTold(), ['media-admitted 1+2'])
})

t.test('a look that began before the room was open says nothing of it', async t => {
  const { world, wants, done, tell, takeSteps, takeTold } = openRoom()
  const askedAtMs = world.monotonicMs()
  world.advance(1_000)
  wants(1)
  done()
  takeSteps()
  takeTold()
  tell({ kind: 'missing', gateway: 'janus', askedAtMs })
  t.same([takeSteps(), takeTold()], [[], []])
  world.advance(1_000)
  tell({ kind: 'missing', gateway: 'janus', askedAtMs: world.monotonicMs() })
  t.same([takeSteps(), takeTold()], [['open 1'], ['media-lost']])
})

t.test('without knowing the call it asks, and does nothing', async t => {
  const { tell, takeSteps, takeTold } = openRoom()
  tell({ kind: 'missing', gateway: 'janus', askedAtMs: 1 })
  t.same([takeSteps(), takeTold()], [[], ['tell-media']])
})

t.test('the end closes the room, also one that is not open yet', async t => {
  const { system, wants, ends, done, takeSteps, takeTold } = openRoom()
  wants(1)
  ends()
  t.same(takeSteps(), ['open 1'])
  done()
  t.same(takeSteps(), ['close'])
  t.same(takeTold(), [], 'a call that has ended hears of no device')
  done()
  t.equal(system.figures().liveActors, 0)
})

t.test('another room opens once the removed device is out, and the one before closes later', async t => {
  const { world, wants, wantsRoom, done, takeSteps, takeTold } = openRoom()
  wants(1, 2, 3)
  done()
  takeTold()
  wantsRoom(8, 1, 2)
  t.same(takeSteps(), ['open 1+2+3', 'remove 3'], 'from the room where it is')
  wantsRoom(8, 1, 2, 4)
  done()
  t.same(takeSteps(), ['open 1+2+4 in 8'])
  done()
  t.same(takeTold().at(-1), 'media-admitted 1+2+4 to 8')
  wantsRoom(9, 1, 2)
  t.same(takeSteps(), ['remove 4 in 8'])
  done()
  t.same(takeSteps(), ['open 1+2 in 9'])
  done()
  world.advance(4_900)
  world.run()
  t.same(takeSteps(), [], 'the devices have five seconds')
  world.advance(200)
  world.run()
  t.same(takeSteps(), ['close'])
  done()
  t.same(takeSteps(), ['close in 8'])
  done()
  wantsRoom(9, 1, 2, 5)
  t.same(takeSteps(), ['admit 5 in 9'])
})

t.test('the end closes the room before, too', async t => {
  const { system, tell, wants, wantsRoom, done, takeSteps } = openRoom()
  wants(1, 2)
  done()
  wantsRoom(8, 1, 2)
  done()
  takeSteps()
  tell({ kind: 'wanted', roomId: 8, gateway: undefined, entries: [], isOver: true })
  t.same(takeSteps(), ['close'])
  done()
  t.same(takeSteps(), ['close in 8'])
  done()
  t.equal(system.figures().liveActors, 1, 'the call room alone')
})

t.test('a look for the next room, which is not open yet, says nothing of the one before', async t => {
  const { world, tell, wants, wantsRoom, done, takeSteps, takeTold } = openRoom()
  wants(1, 2)
  done()
  takeSteps()
  takeTold()
  wantsRoom(8, 1)
  world.advance(1_000)
  tell({ kind: 'missing', gateway: 'janus', askedAtMs: world.monotonicMs() })
  done()
  t.same(takeSteps(), ['remove 2', 'open 1 in 8'])
  t.notOk(takeTold().includes('media-lost'))
})

t.test('a room that does not close is left to the sweep after five attempts', async t => {
  const { world, ends, fails, takeSteps, system } = openRoom()
  ends()
  for (let attempt = 1; attempt <= 5; attempt++) {
    t.same(takeSteps(), ['close'])
    fails('network')
    world.advance(31_000)
  }
  t.same(takeSteps(), [])
  t.equal(system.figures().liveActors, 0)
})

t.test('a room at a lost gateway opens at another, after word of the loss', async t => {
  const { there, tell, wants, done, takeSteps, takeTold } = openRoom()
  wants(1, 2)
  done()
  takeSteps()
  takeTold()
  there.splice(0, 1, 'two')
  tell({ kind: 'homeless', gateway: 'three' })
  t.same([takeSteps(), takeTold()], [[], []], 'which does not have this call')
  tell({ kind: 'homeless', gateway: 'janus' })
  t.same([takeSteps(), takeTold()], [['open 1+2 at two'], ['media-lost']])
  tell({ kind: 'homeless', gateway: 'janus' })
  done()
  t.same([takeSteps(), takeTold()], [[], ['media-admitted 1+2 at two']], 'told twice, lost once')
  there.push('janus')
  wants(1, 2, 3)
  t.same(takeSteps(), ['admit 3 at two'], 'and stays there when the first is back')
})

t.test('a request that hangs at the lost gateway does not hold the call up once it fails', async t => {
  const { there, tell, wants, done, fails, takeSteps, takeTold } = openRoom()
  wants(1)
  done()
  wants(1, 2)
  takeSteps()
  takeTold()
  there.splice(0, 1, 'two')
  tell({ kind: 'homeless', gateway: 'janus' })
  t.same(takeSteps(), [])
  fails('timeout')
  t.same(takeSteps(), ['open 1+2 at two'])
  done()
  t.same(takeTold(), ['media-lost', 'media-admitted 1+2 at two'])
})

t.test('a room before at a lost gateway does not hold up the call at another', async t => {
  const { world, there, wants, wantsRoom, tell, done, fails, takeSteps, takeTold } = openRoom()
  there.push('two')
  wants(1, 2)
  done()
  wantsRoom(4712, 1)
  done()
  done()
  takeSteps()
  takeTold()
  there.shift()
  world.advance(5_000)
  world.run()
  t.same(takeSteps(), ['close'])
  tell({ kind: 'homeless', gateway: 'janus' })
  fails('timeout')
  t.same(takeSteps(), ['open 1 in 4712 at two'])
  done()
  t.same(takeTold(), ['media-lost', 'media-admitted 1 to 4712 at two'])
  wantsRoom(4712, 1, 3)
  t.same(takeSteps(), ['admit 3 in 4712 at two'])
})

t.test('a room that opens at another gateway leaves the one before to the sweep', async t => {
  const { world, there, wants, wantsRoom, done, fails, takeSteps } = openRoom()
  there.push('two')
  wants(1)
  done()
  wantsRoom(4712, 1)
  there.shift()
  fails('timeout')
  done()
  takeSteps()
  world.advance(5_000)
  world.run()
  t.same(takeSteps(), ['close'])
  wantsRoom(4712, 1, 3)
  fails('timeout')
  t.same(takeSteps(), ['admit 3 in 4712 at two'])
})

t.test('a first room that a gateway does not make opens at the next one without a pause', async t => {
  const { there, wants, done, fails, takeSteps, takeTold } = openRoom()
  wants(1)
  there.splice(0, 1, 'two')
  fails('timeout')
  t.same(takeSteps(), ['open 1', 'open 1 at two'])
  done()
  t.same(takeTold(), ['media-admitted 1 at two'])
})

t.test('no gateway is there: the room waits, and opens at the first one that comes', async t => {
  const { world, there, wants, done, takeSteps, takeTold, failed } = openRoom()
  const refused = async () => {
    await new Promise(setImmediate)
    world.run()
  }
  there.pop()
  wants(1)
  await refused()
  t.same([takeSteps(), failed], [[], ['77 open']])
  there.push('two')
  world.advance(1_100)
  world.run()
  t.same(takeSteps(), ['open 1 at two'])
  done()
  t.same(takeTold(), ['media-admitted 1 at two'])
})

t.test('a look at a gateway that does not have the call says nothing of it', async t => {
  const { world, tell, wants, done, takeSteps, takeTold } = openRoom()
  wants(1)
  done()
  takeSteps()
  takeTold()
  world.advance(1_000)
  tell({ kind: 'missing', gateway: 'two', askedAtMs: world.monotonicMs() })
  t.same([takeSteps(), takeTold()], [[], []])
})

t.test('an actor that is built anew goes on at the gateway that the call keeps', async t => {
  const { there, tell, done, takeSteps, takeTold } = openRoom()
  there.push('two')
  tell({ kind: 'wanted', roomId: ROOM_ID, gateway: 'two', entries: [entryOf(1)], isOver: false })
  t.same(takeSteps(), ['open 1 at two'])
  done()
  t.same(takeTold(), ['media-admitted 1 at two'])
})

/** The memory of the gateway's events: who is there, by which session, and nothing of what is made up. */

import t from 'tap'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { JanusEvents } from '../../src/media/janus-events.ts'
import { RoomTokens } from '../../src/media/room-tokens.ts'

const tokens = new RoomTokens({ tokenSecret: 'secret', clientUrl: 'ws://127.0.0.1' })
const BOB = { userId: 42n as UserId, deviceId: 1n as DeviceId }
const { pluginToken } = tokens.admit({ roomId: 7, device: BOB })

const attached = (session_id: number, handle_id: number, token = pluginToken) => ({
  type: 2,
  session_id,
  handle_id,
  event: { name: 'attached', plugin: 'janus.plugin.videoroom', token },
})
const joined = (session_id: number, handle_id: number, id: number) => ({
  type: 64,
  session_id,
  handle_id,
  event: { plugin: 'janus.plugin.videoroom', data: { event: 'joined', room: 7, id } },
})
const media = (mid: string, receiving: boolean) => ({
  type: 32,
  subtype: 1,
  session_id: 5,
  handle_id: 6,
  event: { media: 'audio', mid, receiving },
})

function open() {
  const clock = { nowMs: 0, restarts: 0 }
  const told: unknown[] = []
  const events = new JanusEvents({
    tokens,
    monotonicMs: () => clock.nowMs,
    onRestarted: () => clock.restarts++,
    onFeeds: ({ userId, deviceId }, roomId, feedIds) => told.push([`${userId}_${deviceId}`, roomId, feedIds]),
  })
  const present = (room = 7) => events.present(roomId => roomId === room)
  return { clock, events, told, present }
}

t.test('a session is the device’s that its token names, and of no other', async t => {
  const { events, present } = open()
  events.take([attached(5, 6), attached(8, 9, pluginToken.replace('42_1', '42_2')), attached(10, 11, 'x')])
  t.same(events.sessionsOf(BOB), [5])
  t.equal(events.sessionsOf({ ...BOB, deviceId: 2n as DeviceId }), undefined, 'the signature does not hold')
  t.same(present(), [], 'in no room yet')
})

t.test('a device is present from its join to its farewell', async t => {
  const { events, present } = open()
  events.take([attached(5, 6), joined(5, 6, 77)])
  t.same(present(), [BOB])
  t.same(present(8), [], 'its room is of no call here')
  events.take({ type: 64, event: { data: { event: 'leaving', room: 7, id: 77 } } })
  t.same(present(), [])
  events.take({ type: 2, session_id: 5, handle_id: 6, event: { name: 'detached' } })
  t.same(events.sessionsOf(BOB), [], 'known to have none')
})

const CID = { userId: 43n as UserId, deviceId: 1n as DeviceId }
const cidsToken = tokens.admit({ roomId: 7, device: CID }).pluginToken
const left = (id: number) => ({ type: 64, event: { data: { event: 'leaving', room: 7, id } } })

t.test('each change of a device’s feeds is reported, the newest first', async t => {
  const { events, told } = open()
  const take = (event: unknown) => {
    events.take(event)
    return told.splice(0)
  }
  t.same(take([attached(5, 6), joined(5, 6, 77)]), [['42_1', 7, [77]]])
  t.same(take([attached(8, 9), joined(8, 9, 78)]), [['42_1', 7, [78, 77]]])
  t.same(take(left(77)), [['42_1', 7, [78]]])
  t.same(take(left(77)), [])
  events.tellAgain()
  t.same(told.splice(0), [['42_1', 7, [78]]])
  events.keepOnly(new Set())
  t.same(told.splice(0), [['42_1', 7, []]], 'its session has ended')
})

t.test('a feed is the device’s whose token came last with it, and no token takes over a session', async t => {
  const { events, told } = open()
  events.take([attached(5, 6), joined(5, 6, 77), attached(8, 9, cidsToken), joined(8, 9, 77)])
  t.same(told.splice(0), [
    ['42_1', 7, [77]],
    ['42_1', 7, []],
    ['43_1', 7, [77]],
  ])
  events.take([attached(5, 10, cidsToken), joined(5, 10, 80), attached(8, 9), joined(8, 9, 81)])
  t.same(told.splice(0), [
    ['43_1', 7, []],
    ['43_1', 7, [81]],
  ])
})

t.test('a device is absent once all of its media were silent for ten seconds', async t => {
  const { clock, events, present } = open()
  events.take([attached(5, 6), joined(5, 6, 77), media('0', true), media('1', true)])
  events.take(media('0', false))
  clock.nowMs += 20_000
  t.same(present(), [BOB], 'the picture comes')
  events.take(media('1', false))
  t.same(present(), [BOB])
  clock.nowMs += 10_000
  t.same(present(), [])
  events.take(media('0', true))
  t.same(present(), [BOB])
})

t.test('sessions whose end was not told are forgotten, all of them after a restart', async t => {
  const { clock, events } = open()
  events.take([attached(5, 6), joined(5, 6, 77), attached(8, 9)])
  events.keepOnly(new Set([8]))
  t.same(events.sessionsOf(BOB), [8])
  events.take({ type: 256, subtype: 1, event: { status: 'started' } })
  t.equal(clock.restarts, 1)
  t.equal(events.sessionsOf(BOB), undefined)
})

t.test('events of any other form are passed over', async t => {
  const { events } = open()
  for (const event of [null, 1, 'x', [], [[]], {}, { type: 2 }, { type: 2, event: null }]) events.take(event)
  events.take([
    { ...attached(5, 6), session_id: '5' },
    { ...attached(5, 6), handle_id: 2 ** 60 },
    attached(5, 6, ':'),
    joined(5, 6, 77),
    { ...media('0', false), event: { mid: 1, receiving: 'no' } },
    { type: 64, event: { data: { event: 'leaving' } } },
  ])
  t.equal(events.sessionsOf(BOB), undefined)
  for (let handle = 0; handle < 1_000; handle++) events.take([attached(5, handle), media(`${handle}`, true)])
  t.same(events.sessionsOf(BOB), [5])
})

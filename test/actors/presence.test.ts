/** Presence: which devices are connected, which connection of a device counts, and which one hears what. */

import t from 'tap'
import type { PresenceMessage, StompConnectionMessage } from '../../actors/messages.ts'
import { LiveConnections, presenceKind, tellBadge, tellNews } from '../../actors/presence.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { sessionName } from '../../src/store/accounts/session-store.ts'
import { kindOf, makeStage } from '../support/actors.ts'

const ANN = 7n as UserId

function makeUsers(options: { mailboxMessagesMax?: number } = {}) {
  const stage = makeStage()
  const told: string[] = []
  const presence: string[] = []
  /** Names of sessions. */
  const ended = new Set<string>()
  const connectionOf = stage.system.define(
    kindOf<StompConnectionMessage>(
      (message, _context, id) =>
        void told.push(`${id} ${message.kind === 'dismissed' ? message.why : message.kind}`),
      { kind: 'stomp-connection', ...options },
    ),
  )
  const connections = new LiveConnections()
  const users = stage.system.define(
    presenceKind(
      connections,
      (_user, { sessionName }) => (ended.has(sessionName) ? 'session_revoked' : undefined),
      (_user, deviceId, isOnline) => presence.push(`${deviceId} ${isOnline ? 'online' : 'offline'}`),
    ),
  )
  const tell = (message: PresenceMessage) => {
    users(String(ANN)).tellControl(message)
    stage.world.run()
  }
  const attach = (id: string, deviceId: number) => {
    tell({
      kind: 'attached',
      connection: {
        deviceId: BigInt(deviceId) as DeviceId,
        sessionName: sessionName(Buffer.from(`session of ${id}`)),
        isRestricted: false,
        ref: connectionOf(id),
      },
    })
    // Each looks into its inbox and at its badge once more.
    if (told.includes(`${id} attached`)) told.splice(told.indexOf(`${id} attached`), 1)
    else told.push(`${id} is not told to look`)
  }
  return {
    ...stage,
    world: stage.world,
    connectionOf,
    connections,
    told,
    presence,
    ended,
    tell,
    attach,
  }
}

t.test('a device is connected from its first connection to its last', async t => {
  const { connections, attach, tell, presence } = makeUsers()
  attach('a', 1)
  t.ok(connections.isConnected(ANN, 1n as DeviceId))
  t.notOk(connections.isConnected(ANN, 2n as DeviceId))
  t.notOk(connections.isConnected(8n as UserId, 1n as DeviceId))
  tell({ kind: 'detached', connectionId: 'a' })
  t.notOk(connections.isConnected(ANN, 1n as DeviceId))
  t.equal(connections.count, 0)
  t.same(presence, ['1 online', '1 offline'])
})

t.test(
  'a connection whose session has ended meanwhile is dismissed, and its device never was there',
  async t => {
    const { ended, connections, attach, told, presence } = makeUsers()
    ended.add(sessionName(Buffer.from('session of a')))
    attach('a', 1)
    t.same([told, presence, connections.count], [['a session_revoked', 'a is not told to look'], [], 0])
  },
)

t.test('the newest connection of a device replaces the older, whose end says nothing', async t => {
  const { connections, attach, tell, told, presence, failures } = makeUsers()
  attach('a', 1)
  attach('b', 1)
  t.same(told, ['a replaced'])
  tell({ kind: 'detached', connectionId: 'a' })
  t.same(
    connections.of(ANN).map(({ ref }) => ref.id),
    ['b'],
  )
  t.same(presence, ['1 online'])
  t.same(failures, [])
})

t.test('a device that goes takes no other one of its user along', async t => {
  const { connections, attach, tell, presence } = makeUsers()
  attach('a', 1)
  attach('b', 2)
  tell({ kind: 'detached', connectionId: 'a' })
  t.same(
    [connections.isConnected(ANN, 1n as DeviceId), connections.isConnected(ANN, 2n as DeviceId)],
    [false, true],
  )
  t.same(presence, ['1 online', '2 online', '1 offline'])
})

t.test('an eleventh connection ends the oldest', async t => {
  const { connections, attach, told, presence } = makeUsers()
  for (let device = 1; device <= 11; device++) attach(`c${device}`, device)
  t.same(told, ['c1 too_many_connections'])
  t.equal(connections.count, 10)
  t.same(presence.slice(-2), ['11 online', '1 offline'])
})

t.test('news reaches the device’s own connection alone', async t => {
  const { connections, attach, told, world } = makeUsers()
  tellNews(connections, ANN, 1n as DeviceId)
  attach('a', 1)
  attach('b', 2)
  tellNews(connections, ANN, 2n as DeviceId)
  world.run()
  t.same(told, ['b news'])
})

t.test('a changed badge reaches every connection of its user', async t => {
  const { connections, attach, told, world } = makeUsers()
  tellBadge(connections, ANN)
  attach('a', 1)
  attach('b', 2)
  tellBadge(connections, ANN)
  tellBadge(connections, 8n as UserId)
  world.run()
  t.same(told, ['a badge', 'b badge'])
})

t.test('a connection whose process follows the store is told of badges, but not of news', async t => {
  const { connections, attach, tell, told, world, connectionOf } = makeUsers()
  const follower = {
    deviceId: 1n as DeviceId,
    sessionName: 'a session',
    isRestricted: false,
    ref: connectionOf('a'),
    isFollower: true,
  }
  tell({ kind: 'attached', connection: follower })
  t.same(told.splice(0), ['a attached'])
  t.ok(connections.isConnected(ANN, 1n as DeviceId))
  attach('b', 2)
  for (const deviceId of [1n, 2n]) tellNews(connections, ANN, deviceId as DeviceId)
  world.run()
  t.same(told.splice(0), ['b news'])
  tellBadge(connections, ANN)
  world.run()
  t.same(told.splice(0), ['a badge', 'b badge'])
  tell({ kind: 'revoked', revoked: { kind: 'device', deviceId: 1n as DeviceId } })
  t.same(told, ['a device_removed'])
})

t.test('a connection that missed news or a badge is ended', async t => {
  const { connections, attach, told, world } = makeUsers({ mailboxMessagesMax: 0 })
  attach('a', 1)
  told.splice(0)
  tellNews(connections, ANN, 1n as DeviceId)
  tellBadge(connections, ANN)
  world.run()
  t.same(told, ['a overrun', 'a overrun'])
})

t.test('revoking a session, a device or what it may do ends its connection and no other', async t => {
  const { attach, tell, told, presence, connections } = makeUsers()
  for (let device = 1; device <= 5; device++) attach(`c${device}`, device)
  tell({ kind: 'revoked', revoked: { kind: 'session', sessionId: Buffer.from('session of c2') } })
  tell({ kind: 'revoked', revoked: { kind: 'device', deviceId: 3n as DeviceId } })
  tell({ kind: 'revoked', revoked: { kind: 'restriction', deviceId: 5n as DeviceId } })
  t.same(told, ['c2 session_revoked', 'c3 device_removed', 'c5 restriction_changed'])
  t.same(presence.slice(-3), ['2 offline', '3 offline', '5 offline'])
  t.equal(connections.count, 2)
})

t.test('connections outlive the actor, which needs no memory while nothing happens', async t => {
  const { connections, attach, told, world, system } = makeUsers()
  attach('a', 1)
  world.advance(70_000)
  t.equal(system.figures().kinds.presence?.live, 0)
  tellNews(connections, ANN, 1n as DeviceId)
  world.run()
  t.same(told, ['a news'])
})

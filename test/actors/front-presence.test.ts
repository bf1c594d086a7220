/** Presence at a front: its connections hear of news here, and the writer hears of each that comes and goes. */

import t from 'tap'
import { frontPresenceKind } from '../../actors/front-presence.ts'
import type { PresenceMessage, StompConnectionMessage } from '../../actors/messages.ts'
import { LiveConnections, tellNews } from '../../actors/presence.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { kindOf, makeStage } from '../support/actors.ts'

const ANN = 7n as UserId

function makeFront() {
  const stage = makeStage()
  const told: string[] = []
  const atWriter: (readonly [string, PresenceMessage])[] = []
  const connectionOf = stage.system.define(
    kindOf<StompConnectionMessage>(({ kind }, _context, id) => void told.push(`${id} ${kind}`), {
      kind: 'stomp-connection',
    }),
  )
  const presenceAtWriter = stage.system.define(
    kindOf<PresenceMessage>((message, _context, id) => void atWriter.push([id, message]), { kind: 'writer' }),
  )
  const connections = new LiveConnections()
  const users = stage.system.define(frontPresenceKind(connections, presenceAtWriter))
  const tell = (message: PresenceMessage) => {
    users(String(ANN)).tellControl(message)
    stage.world.run()
  }
  const attach = (id: string, deviceId: bigint) => {
    const facts = { sessionName: 'a session', isRestricted: false }
    const connection = { deviceId: deviceId as DeviceId, ...facts, ref: connectionOf(id) }
    tell({ kind: 'attached', connection })
    return connection
  }
  return { ...stage, connections, told, atWriter, tell, attach }
}

t.test('the writer hears who comes and goes, and that it need not tell them of news', async t => {
  const { atWriter, attach, tell, told, connections } = makeFront()
  const connection = attach('a', 1n)
  t.same(atWriter, [['7', { kind: 'attached', connection: { ...connection, isFollower: true } }]])
  t.same(told, [], 'the writer tells it to look for what came before')
  tell({ kind: 'detached', connectionId: 'a' })
  t.same(atWriter.slice(1), [['7', { kind: 'detached', connectionId: 'a' }]])
  t.equal(connections.count, 0)
})

t.test('news reaches all connections of the device', async t => {
  const { connections, attach, told, world } = makeFront()
  tellNews(connections, ANN, 1n as DeviceId)
  attach('a', 1n)
  attach('b', 2n)
  attach('c', 1n)
  tellNews(connections, ANN, 1n as DeviceId)
  world.run()
  t.same(told, ['a news', 'c news'])
})

t.test('connections outlive the actor, which needs no memory while nothing happens', async t => {
  const { connections, attach, told, world, system } = makeFront()
  attach('a', 1n)
  world.advance(70_000)
  t.equal(system.figures().kinds.presence?.live, 0)
  tellNews(connections, ANN, 1n as DeviceId)
  world.run()
  t.same(told, ['a news'])
})

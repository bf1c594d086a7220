/** What signalling passes on to the actors that it puts together. */

import t, { type Test } from 'tap'
import type { PresenceMessage, StompConnectionMessage } from '../../actors/messages.ts'
import { LiveConnections } from '../../actors/presence.ts'
import type { Session } from '../../src/domain/accounts/session.ts'
import type { Restriction } from '../../src/domain/devices/restriction.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { Metrics } from '../../src/operations/metrics.ts'
import type { ActorKind } from '../../src/runtime/actor.ts'
import type { ActorSystem } from '../../src/runtime/system.ts'
import type { Stores } from '../../src/server/application-stores.ts'
import type { CallRooms } from '../../src/server/call-rooms.ts'
import { dismissalBy, ownActors, Signalling } from '../../src/server/signalling.ts'
import { sessionName } from '../../src/store/accounts/session-store.ts'
import { kindOf, makeStage } from '../support/actors.ts'
import { MemoryStore } from '../support/memory-store.ts'

const [ANN, PHONE] = [7n as UserId, 70n as DeviceId]

t.test('a session revoked while its connection signs in is still ended', async t => {
  for (const revoke of ['session-ended', 'device-removed', 'restriction-changed'] as const) {
    const { world, system, told, refs, connections, store } = openSignalling(t)
    const connection = {
      deviceId: PHONE,
      ref: refs('a'),
      sessionName: sessionName(Buffer.from('a session')),
      isRestricted: false,
    }
    system.ref<PresenceMessage>('presence', String(ANN)).tellControl({ kind: 'attached', connection })
    t.equal(connections.count, 0, 'nobody knows of it yet')
    const said = { userId: ANN, deviceId: PHONE, sessionId: Buffer.from('a session') }
    store.say({ kind: revoke, ...said, isRestricted: true })
    world.run()
    t.equal(connections.count, 0)
    t.equal(told.filter(kind => kind === 'dismissed').length, 1)
  }
})

t.test('a front that knew of less than the writer has let no connection in for good', async t => {
  const session = { userId: ANN } as Session
  let restriction: Restriction | undefined
  const sessions = { current: (name: string) => (name === 'ended' ? undefined : session) }
  const dismissalOf = dismissalBy({ sessions, restrictions: { current: () => restriction } })
  const of = (sessionName: string, isRestricted: boolean) =>
    dismissalOf(ANN, { deviceId: PHONE, sessionName, isRestricted, ref: connectionOf('a') })
  const { refs: connectionOf } = openSignalling(t)
  t.equal(of('ended', false), 'session_revoked')
  t.same([of('open', false), of('open', true)], [undefined, 'restriction_changed'])
  restriction = 'DEVICE_NOT_LISTED'
  t.same([of('open', false), of('open', true)], ['restriction_changed', undefined])
})

t.test('a drain dismisses a thousand connections in equal steps over its time', async t => {
  const { world, told, signalling } = openSignalling(t)
  const connections = Array.from({ length: 1_000 }, (_, at) => ({ id: `c${at}` }))
  const toldBefore: number[] = []
  let sleptMs = 0
  await signalling.drain(connections, 1_000, async ms => {
    world.run()
    toldBefore.push(told.filter(kind => kind === 'dismissed').length)
    sleptMs += ms
  })
  t.same(
    toldBefore,
    Array.from({ length: 20 }, (_, step) => (step + 1) * 50),
  )
  t.equal(Math.round(sleptMs), 1_000)
})

function openSignalling(t: Test) {
  const { world, system } = makeStage()
  const told: string[] = []
  const refs = system.define(
    kindOf<StompConnectionMessage>(message => void told.push(message.kind), { kind: 'stomp-connection' }),
  )
  const define = (kind: ActorKind<never>) => (kind.kind === 'stomp-connection' ? refs : system.define(kind))
  const connections = new LiveConnections()
  const store = new MemoryStore()
  const seam = { define } as unknown as ActorSystem
  const rooms = { tellCallsOf: () => undefined } as unknown as CallRooms
  const signalling = new Signalling({
    system: seam,
    stores: { database: store, restrictions: {} } as unknown as Stores,
    actors: ownActors(seam, rooms, { connections, dismissalOf: () => undefined }),
    connections,
    authenticate() {
      throw new Error('no test here signs in')
    },
    runConnect: connect => connect(),
    hasTestTopics: false,
    admission: undefined,
    idsAs: 'string',
    language: 'en',
    version: '0.0.0',
    monotonicMs: () => world.monotonicMs(),
    randomBytes: length => new Uint8Array(length),
    metrics: new Metrics(),
    onFault: error => t.fail(`a fault: ${error}`),
  })
  return { world, system, told, refs, connections, store, signalling }
}

/** What signalling passes on to the actors that it puts together. */

import t from 'tap'
import type { PresenceMessage, StompConnectionMessage } from '../../actors/messages.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { Metrics } from '../../src/operations/metrics.ts'
import { Signalling } from '../../src/server/signalling.ts'
import { sessionName } from '../../src/store/accounts/session-store.ts'
import { kindOf, makeStage } from '../support/actors.ts'
import { MemoryStore } from '../support/memory-store.ts'

const [ANN, PHONE] = [7n as UserId, 70n as DeviceId]

t.test('what is revoked while its connection signs in is ended all the same', async t => {
  for (const revoke of ['session-ended', 'device-removed'] as const) {
    const { world, system } = makeStage()
    const signalling = new Signalling({
      ...{ system, isDevelopment: false, rateLimits: undefined, idsAs: 'string', version: '0.0.0' },
      nowMs: () => world.nowMs(),
      monotonicMs: () => world.monotonicMs(),
      randomBytes: length => new Uint8Array(length),
      metrics: new Metrics(),
      onFault: error => t.fail(`a fault: ${error}`),
    })
    const told: string[] = []
    const connections = system.define(
      kindOf<StompConnectionMessage>(message => void told.push(message.kind), { kind: 'stomp-connection' }),
    )
    const connection = {
      ...{ deviceId: PHONE, ref: connections('a') },
      sessionName: sessionName(Buffer.from('a session')),
    }
    system.ref<PresenceMessage>('presence', String(ANN)).tellControl({ kind: 'attached', connection })
    t.equal(signalling.connections.count, 0, 'nobody knows of it yet')
    const said = { userId: ANN, deviceId: PHONE, sessionId: Buffer.from('a session') }
    const store = new MemoryStore()
    signalling.subscribeTo(store)
    store.say({ kind: revoke, ...said })
    world.run()
    t.equal(signalling.connections.count, 0)
    t.equal(told.filter(kind => kind === 'dismissed').length, 1)
  }
})

/**
 * Ten minutes without Apple, on the outbox's own clock, through real connections: no ring is lost that can still ring,
 * and Android phones ring as ever.
 */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { outboxKind } from '../../actors/outbox.ts'
import { ApnsSender } from '../../src/delivery/apns.ts'
import { Delivery } from '../../src/delivery/delivery.ts'
import { FcmSender } from '../../src/delivery/fcm.ts'
import type { PushTokens } from '../../src/domain/devices/device.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import { LANES } from '../../src/domain/messages/outbox-message.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { OutboxStore } from '../../src/store/messages/outbox-store.ts'
import { makeStage } from '../support/actors.ts'
import { startApnsStandIn } from '../support/apns-stand-in.ts'
import { DroppingProxy } from '../support/dropping-proxy.ts'
import { startFcmStandIn } from '../support/fcm-stand-in.ts'
import { deviceWith, invitationWith } from '../support/push-samples.ts'

const STEP_MS = 500
const RING_EVERY_MS = 7_000
const RINGS_FOR_MS = 60_000
const [IPHONE_ID, PIXEL_ID] = [9_000_000_001n as DeviceId, 9_000_000_002n as DeviceId]
const IPHONE: PushTokens = {
  bundleId: 'org.example.callsign',
  apnsToken: 'a1'.repeat(32),
  apnsVoipToken: 'b2'.repeat(32),
  registeredAtMs: { apnsToken: 1, apnsVoipToken: 1 },
}
const PIXEL: PushTokens = { fcmToken: 'fcm:token', registeredAtMs: { fcmToken: 1 } }

t.test('Apple is out for ten minutes', async t => {
  const [apple, google] = await Promise.all([startApnsStandIn(), startFcmStandIn()])
  const proxy = await DroppingProxy.open(t, apple.port)
  const { key, keyId, teamId, ca } = apple
  const hosts = { production: '127.0.0.1', development: '127.0.0.1' }
  const apns = new ApnsSender({ key, keyId, teamId, ca, port: proxy.port, hosts })
  const fcm = new FcmSender({ serviceAccount: google.serviceAccount, url: google.url })
  const database = LmdbStore.open(t.testdir())
  t.teardown(async () => {
    for (const sender of [apns, fcm]) sender.close()
    await Promise.all([apple.close(), google.close(), database.close()])
  })
  const { world, system, failures } = makeStage()
  const outbox = new OutboxStore(database, deriveSecrets(Buffer.alloc(32, 1)), randomBytes)
  let sending = 0
  const counted = async <Outcome>(sent: Promise<Outcome>): Promise<Outcome> => {
    sending++
    const outcome = await sent
    sending--
    return outcome
  }
  const waits = new Set<{ readonly atMs: number; readonly resolve: () => void }>()
  const delivery = new Delivery({
    senders: {
      apns: { send: push => counted(apns.send(push)) },
      fcm: { send: push => counted(fcm.send(push)) },
    },
    letters: { appName: 'Callsign', domain: 'call.example', language: 'en' },
    nowMs: () => world.nowMs(),
    deviceOf: (_user, deviceId) => deviceWith({ deviceId, push: deviceId === IPHONE_ID ? IPHONE : PIXEL }),
    badgeOf: () => 0,
    isRinging: () => true,
    judgeToken: async () => {},
    setApnsEnvironment: async () => {},
    onRingTaken: () => undefined,
    wait: ms => new Promise<void>(resolve => waits.add({ atMs: world.nowMs() + ms, resolve })),
    onTryFailed: () => undefined,
  })
  const outboxOf = system.define(
    outboxKind({
      queueOf: lane => outbox.queue(lane),
      send: message => delivery.send(message),
      onTried: () => undefined,
      onNotWritten: error => {
        throw error
      },
    }),
  )
  database.subscribe('outbox-news', ({ lane }) => outboxOf(lane).tell({ kind: 'wake' }))
  for (const lane of LANES) outboxOf(lane).tell({ kind: 'wake' })

  const step = async () => {
    world.advance(STEP_MS)
    for (const wait of waits) {
      if (wait.atMs > world.nowMs()) continue
      waits.delete(wait)
      wait.resolve()
    }
    // Until nothing is under way that this clock does not hold.
    for (let quiet = 0; quiet < 3; quiet = sending === 0 ? quiet + 1 : 0) {
      await new Promise(setImmediate)
      await world.settle()
    }
  }
  const rings: { readonly callId: CallId; readonly expiresAtMs: number }[] = []
  const ring = async () => {
    const callId = BigInt(8_000_000_001 + rings.length) as CallId
    const nowMs = world.nowMs()
    const expiresAtMs = nowMs + RINGS_FOR_MS
    rings.push({ callId, expiresAtMs })
    await database.change(change => {
      for (const [deviceId, provider] of [
        [IPHONE_ID, 'apns'],
        [PIXEL_ID, 'fcm'],
      ] as const) {
        const notice = {
          ...invitationWith({ callId, expiresAtMs }),
          eventId: 'A'.repeat(22),
          sentAtMs: nowMs,
        }
        const userId = 5_000_000_001n as UserId
        outbox.add(change, { channel: 'push', userId, deviceId, notice, expiresAtMs, provider })
      }
    }, nowMs)
  }
  const atApple = () => new Set(apple.pushes.map(({ payload }) => `${payload.callId}`))

  await ring()
  await step()
  t.equal(apple.pushes.length, 1, 'before')
  proxy.target = 1
  proxy.reset()
  const startMs = world.nowMs()
  while (world.nowMs() < startMs + 600_000) {
    if ((world.nowMs() - startMs) % RING_EVERY_MS < STEP_MS) {
      await ring()
      await step()
      t.equal(google.messages.length, rings.length, 'Google’s phone rings at once')
    } else await step()
  }
  t.equal(apple.pushes.length, 1, 'during the outage nothing comes through')

  proxy.target = apple.port
  const backMs = world.nowMs()
  const live = rings.filter(({ expiresAtMs }) => expiresAtMs > backMs + 2_000)
  t.ok(live.length >= 7, `${live.length} rings can still ring`)
  const missing = () => live.filter(({ callId }) => !atApple().has(`${callId}`))
  while (missing().length > 0 && world.nowMs() < backMs + 6_000) await step()
  t.same(missing(), [], 'each of them rings')
  const others = rings.slice(1).filter(({ expiresAtMs }) => expiresAtMs <= backMs)
  t.same(
    others.filter(({ callId }) => atApple().has(`${callId}`)),
    [],
    'what is over does not',
  )
  t.same(new Set(apple.pushes.slice(1).map(({ token }) => token)), new Set([IPHONE.apnsToken]), 'as alerts')
  const expirations = apple.pushes.slice(1).map(({ headers }) => Number(headers['apns-expiration']))
  t.ok(expirations.every(seconds => seconds >= Math.floor(backMs / 1_000)))
  t.same(failures, [])
})

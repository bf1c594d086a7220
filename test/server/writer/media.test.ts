/** The media gateways of a writer: each event is of the gateway that posted it, and another list is taken at once. */

import { createSecretKey, randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import { CurrentMedia } from '../../../src/media/current-media.ts'
import { attachedEvent, joinedEvent } from '../../../src/media/janus-events.ts'
import type { JanusMediaSettings } from '../../../src/media/media-settings.ts'
import { RoomTokens } from '../../../src/media/room-tokens.ts'
import { createLogger } from '../../../src/operations/log.ts'
import { Metrics } from '../../../src/operations/metrics.ts'
import { admitOf } from '../../../src/server/reads.ts'
import { Media } from '../../../src/server/writer/media.ts'
import { CallIndex } from '../../../src/store/calls/call-index.ts'
import { CallDriver } from '../../support/call-driver.ts'
import { freePort } from '../../support/free-port.ts'

const ROOM_ID = 4_711

function settingsOf(names: readonly string[], port: number): JanusMediaSettings {
  const gateways = names.map(name => ({
    ...{ name, weight: 1, isDraining: false },
    // Nothing listens there.
    adminUrl: 'http://127.0.0.1:9/admin',
    ...{ adminSecret: 'a', adminKey: 'b', tokenSecret: `of ${name}`, clientUrl: `ws://${name}.example.org` },
    eventsLogin: { user: name, password: `of ${name}` },
  }))
  return { kind: 'janus', gateways, events: { host: '127.0.0.1', port } }
}

/** Gateways `one` and `two`, and a call at `one`. */
async function open(t: Test) {
  const port = await freePort()
  const settings = settingsOf(['one', 'two'], port)
  const current = new CurrentMedia(settings)
  const index = new CallIndex()
  const driver = new CallDriver()
  driver.start([2])
  const { call } = driver
  index.put({ ...call, roomId: ROOM_ID, gateway: 'one' })
  const told: [string, { readonly kind: string }][] = []
  const refOf = (kind: string, id: string) => ({
    tellControl: (message: { readonly kind: string }) => void told.push([`${kind} ${id}`, message]),
  })
  const media = new Media({
    ...{ settings, current, index, metrics: new Metrics(), logger: createLogger('silent') },
    secrets: { mediaRoom: createSecretKey(randomBytes(32)) },
    monotonicMs: () => performance.now(),
    system: { define: () => () => undefined, ref: refOf } as never,
  })
  t.teardown(() => media.close())
  const world = { every: () => () => undefined }
  await media.start({ world, onFault: t.error } as never, () => undefined)
  const post = async (name: string, events: readonly object[]) => {
    const login = Buffer.from(`${name}:of ${name}`).toString('base64')
    const init = {
      method: 'POST',
      headers: { authorization: `Basic ${login}` },
      body: JSON.stringify(events),
    }
    return (await fetch(`http://127.0.0.1:${port}/events`, init)).status
  }
  return { call, current, media, port, told, post }
}

t.test('feeds count by the word of the gateway that has the call', async t => {
  const { call, told, post } = await open(t)
  const { userId } = call.participants[0]!
  const device = { userId, deviceId: 5n as DeviceId }
  const entering = (name: string) => {
    const { pluginToken } = new RoomTokens({ tokenSecret: `of ${name}`, clientUrl: '' }).admit({
      roomId: ROOM_ID,
      device,
    })
    const ids = { session_id: 1, handle_id: 2 }
    return [attachedEvent(ids, pluginToken), joinedEvent(ids, ROOM_ID, 77)]
  }
  const feeds = () => told.filter(([, { kind }]) => kind === 'media-feeds')
  t.equal(await post('two', entering('two')), 200)
  t.equal(await post('one', entering('two')), 200)
  t.same(feeds(), [], 'neither of another gateway nor with a token for it')
  t.equal(await post('one', entering('one')), 200)
  t.match(feeds(), [[`call-room ${call.callId}`, { roomId: ROOM_ID, device, feedIds: [77] }]])
})

t.test('another list: the calls of a gateway that is gone move, and its login is worth nothing', async t => {
  const { call, current, media, port, told, post } = await open(t)
  await current.replace(settingsOf(['two', 'three'], port))
  t.same(told.at(-1), [`media-room ${call.callId}`, { kind: 'homeless', gateway: 'one' }])
  t.equal(await post('one', []), 401)
  t.equal(await post('three', []), 200)
  t.same(
    media.figures().map(({ name, calls }) => [name, calls]),
    [
      ['two', 0],
      ['three', 0],
    ],
  )
})

t.test('the writer hears of a list once the processes that make tokens have it', async t => {
  const current = new CurrentMedia(settingsOf(['one'], 1))
  const heard: string[] = []
  const stop = current.watch(settings => {
    heard.push(settings.kind === 'janus' ? settings.gateways[0]!.name : '')
  })
  const admit = admitOf(current)!
  const entry = {
    callId: 3n as CallId,
    roomId: 7,
    device: { userId: 1n as UserId, deviceId: 2n as DeviceId },
  }
  const urlOf = (gateway: string | undefined) => admit.admissionOf({ ...entry, gateway })?.url
  t.same([urlOf('one'), urlOf('two'), urlOf(undefined)], ['ws://one.example.org', undefined, undefined])
  let areTold = () => {}
  const slow = current.replace(
    settingsOf(['two'], 1),
    () => new Promise<void>(resolve => (areTold = resolve)),
  )
  t.same([urlOf('one'), urlOf('two')], [undefined, 'ws://two.example.org'])
  t.same(heard, [])
  await current.replace(settingsOf(['three'], 1))
  areTold()
  await slow
  t.same(heard, ['three'], 'the newest alone')
  stop()
  await current.replace(settingsOf(['four'], 1))
  t.same(heard, ['three'])
})

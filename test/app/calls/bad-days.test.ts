/** `@callsign/sdk/app` with the real server on bad days: restarts, wrong clocks, full storage, lies, late pushes. */

import t, { type Test } from 'tap'
import { type AppStorage, type KeyEvent, memoryStorage } from '../../../src/app/app.ts'
import { newPublicKey } from '../../support/app.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { settingsFor } from '../../support/call-people.ts'
import { freePort } from '../../support/free-port.ts'
import { openServer } from '../../support/open-server.ts'
import { type OpenServer, startServer } from '../../support/server.ts'
import { long } from '../../support/size.ts'
import { type AppPerson, befriend, newPerson, restart, until } from '../../support/whole-apps.ts'

function platformOf(nowMs: () => number) {
  const wait = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))
  return { nowMs, random: Math.random, wait }
}

async function open(t: Test): Promise<OpenServer> {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(3) })
  t.teardown(() => server.end())
  return server
}

/** The data of the first message of this type that the server has sent by FCM. */
async function pushed({ http }: OpenServer, type: string): Promise<Record<string, unknown>> {
  for (;;) {
    const { items } = JSON.parse(await (await fetch(`${http}/dev/pushes`)).text())
    const found = items.find(({ kind }: { kind: string }) => kind === type)
    if (found !== undefined) return found.payload.data
    await new Promise(resolve => setImmediate(resolve))
  }
}

async function connected({ me }: AppPerson): Promise<void> {
  while (me.connection !== 'connected') await me.once('connection')
}

t.test('a server that restarts in each step of a call takes nothing from it', long(), async t => {
  const environment = { ...settingsFor(2), CALLSIGN_HTTP_PORT: String(await freePort()) }
  const dataFolder = t.testdir()
  const start = () => startServer({ dataFolder, environment })
  let server = await start()
  t.teardown(() => server.end())
  const again = async (signal: NodeJS.Signals) => {
    await server.end(signal)
    server = await start()
  }
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, server.http, 1)
  await befriend(ann, bob)

  await again('SIGKILL')
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!])
  const bobs = await rung
  await again('SIGTERM')
  await bobs.answer()
  await until(call, ({ state }) => state === 'active')
  await again('SIGKILL')
  const key = bobs.once('key')
  await call.renewKey()
  t.match(await key, { epoch: 2, fingerprint: call.fingerprint! })
  await again('SIGTERM')
  const ended = bobs.once('ended')
  await call.end()
  t.same(await ended, { reason: 'hangup' })
  const { items } = await bob.me.history.history()
  t.match(items, [{ callId: call.callId, status: 'ended' }])
})

t.test(
  'a person who signs out is not told so by the server, which closes the connection first',
  long(),
  async t => {
    const server = await open(t)
    const late: typeof fetch = async (url, init) => {
      const answer = await fetch(url, init)
      if (String(url).endsWith('/logout'))
        while (ann.me.connection === 'connected') await ann.me.once('connection')
      return answer
    }
    const ann = await newPerson(t, server.http, 0, { fetch: late })
    await connected(ann)
    const told: unknown[] = []
    ann.me.on('signed-out', error => told.push(error))
    await ann.me.signOut()
    t.same(told, [])
    t.equal(ann.me.userId, undefined)
  },
)

for (const aheadMs of [600_000, -600_000]) {
  t.test(`a clock that is ${aheadMs} ms ahead shortens no ring`, async t => {
    const server = await open(t)
    const ann = await newPerson(t, server.http, 0)
    const platform = platformOf(() => Date.now() + aheadMs)
    const bob = await newPerson(t, server.http, 1, { platform })
    await befriend(ann, bob)
    const rung = bob.me.once('ringing')
    const call = await ann.me.call([bob.me.userId!])
    await (await rung).answer()
    await until(call, ({ state }) => state === 'active')
    t.ok(Math.abs(bob.me.nowMs() - Date.now()) < 60_000)
  })
}

t.test('a storage that is full or damaged is said, and makes no other device', async t => {
  const server = await open(t)
  const values = memoryStorage()
  let isFull = true
  const storage: AppStorage = {
    ...values,
    async put(key, value) {
      if (isFull) throw new Error('no space left')
      await values.put(key, value)
    },
  }
  await t.rejects(newPerson(t, server.http, 0, { storage }), { code: 'STORAGE_FAILED', message: /storage/ })
  isFull = false
  const ann = await newPerson(t, server.http, 0, { storage })
  const { deviceId, userId } = ann.me
  await ann.me.close()
  const keys = await values.get(`keys.${userId}`)
  await values.put(`keys.${userId}`, { publicKey: 'x' })
  await t.rejects(restart(t, ann), { code: 'STORAGE_CORRUPT', message: /damaged/ })
  await values.put(`keys.${userId}`, null)
  await t.rejects(restart(t, ann), { code: 'DEVICE_KEYS_LOST' })
  await values.put(`keys.${userId}`, keys)
  t.equal((await restart(t, ann)).me.deviceId, deviceId)
})

t.test('a server that names another key is found out, and nothing is sealed for it', async t => {
  const server = await open(t)
  const eve = newPublicKey('P-256 SPKI')
  const asked: string[] = []
  const lying: typeof fetch = async (url, init) => {
    asked.push(String(url))
    const answer = await fetch(url, init)
    if (!String(url).includes('publicKeys?userIds')) return answer
    const reply = JSON.parse(await answer.text())
    for (const user of reply.users) {
      for (const device of user.devices) device.publicKey = eve
    }
    return Response.json(reply)
  }
  const ann = await newPerson(t, server.http, 0, { fetch: lying })
  const bob = await newPerson(t, server.http, 1)
  await befriend(ann, bob)
  const told: KeyEvent[] = []
  ann.me.on('keys', event => told.push(event))
  await t.rejects(ann.me.call([bob.me.userId!]), { code: 'KEYS_REFUSED' })
  t.match(told, [{ kind: 'refused', userId: bob.me.userId }])
  t.notOk(asked.some(url => url.includes('call/start')))
})

t.test('pushes are judged by the server’s time, and by the device that they are for', async t => {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, server.http, 1, { device: { push: { fcmToken: 'bobs-token' } } })
  await befriend(ann, bob)
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!], { video: true })
  await rung
  const invitation = await pushed(server, 'call_invitation')
  const shown = await bob.me.onPush(invitation)
  t.match(shown, { show: 'ringing', callId: call.callId, callerName: 'Person 0', isVideo: true })
  t.match(shown, { uuid: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/ })
  t.equal(bob.me.calls.length, 1, 'it rings once, by socket and push')
  const ahead = { ...invitation, sentAt: '1000', expiresAt: new Date(61_000).toISOString() }
  t.match(await bob.me.onPush(ahead), { show: 'over', callId: call.callId })
  t.same(await bob.me.onPush({ ...invitation, deviceId: '1' }), { show: 'nothing' })
  await call.end()
  const cancel = await pushed(server, 'missed_call')
  t.match(await bob.me.onPush(cancel), { show: 'notice', type: 'missed_call' })
  t.same(await bob.me.onPush(cancel), { show: 'nothing' })
})

/** Bob has a token for pushes, and has closed his app. */
async function openWithBobAway(t: Test) {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, server.http, 1, { device: { push: { fcmToken: 'bobs-token' } } })
  await befriend(ann, bob)
  const bobsId = bob.me.userId!
  await bob.me.close()
  return { server, ann, bob, bobsId }
}

t.test('an app that a push has started rings before it is connected', async t => {
  const { server, ann, bob, bobsId } = await openWithBobAway(t)
  const call = await ann.me.call([bobsId])
  const invitation = await pushed(server, 'call_invitation')
  const again = await restart(t, bob)
  const rung = again.me.once('ringing')
  t.match(await again.me.onPush(invitation), { show: 'ringing' })
  await (await rung).answer()
  await until(call, ({ state }) => state === 'active')
})

t.test('a push that is sealed rings as any other, and shows nothing on the way', async t => {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const device = { push: { fcmToken: 'bobs-token' } }
  const bob = await newPerson(t, server.http, 1, { device, sealedPushes: true })
  await befriend(ann, bob)
  const bobsId = bob.me.userId!
  await bob.me.close()
  const call = await ann.me.call([bobsId], { video: true })
  const invitation = await pushed(server, 'call_invitation')
  t.same(Object.keys(invitation), ['sealed'])
  const again = await restart(t, bob)
  const rung = again.me.once('ringing')
  const shown = await again.me.onPush(invitation)
  t.match(shown, { show: 'ringing', callId: call.callId, callerName: 'Person 0', isVideo: true })
  t.same(await again.me.onPush({ sealed: `A${invitation.sealed}`.slice(0, -1) }), { show: 'nothing' })
  await (await rung).answer()
  await until(call, ({ state }) => state === 'active')
})

t.test('a server that repeats the sealed key of an earlier call is found out', async t => {
  const { server, ann, bob, bobsId } = await openWithBobAway(t)
  const first = await ann.me.call([bobsId])
  const earlier = await pushed(server, 'call_invitation')
  await first.end()
  const second = await ann.me.call([bobsId])
  const invitation = { ...earlier, callId: second.callId, eventId: 'a lie' }
  const again = await restart(t, bob)
  const rung = again.me.once('ringing')
  t.match(await again.me.onPush(invitation), { show: 'ringing', callId: second.callId })
  const call = await rung
  t.match(await call.once('error'), { code: 'CALL_KEY_INVALID' })
  t.equal(call.isVerified, false)
  t.equal(await rejectionOf(call.answer()), 'CALL_KEY_INVALID')
  t.equal(call.state, 'ringing')
})

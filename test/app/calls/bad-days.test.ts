/** `callsign/app` with the real server on bad days: restarts, cut networks, wrong clocks, full storage, lies, late pushes. */

import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { type AppStorage, type Call, type KeyEvent, memoryStorage } from '../../../src/app/app.ts'
import { newPublicKey } from '../../support/app.ts'
import { settingsFor } from '../../support/call-people.ts'
import { DroppingProxy } from '../../support/dropping-proxy.ts'
import { freePort } from '../../support/free-port.ts'
import { openServer } from '../../support/open-server.ts'
import { type OpenServer, startServer } from '../../support/server.ts'
import { long } from '../../support/size.ts'
import { type AppPerson, befriend, inCall, newPerson, restart, until } from '../../support/whole-apps.ts'

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
    const found = items.find(
      ({ payload }: { payload: { data: { type: string } } }) => payload.data.type === type,
    )
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

t.test('a call that was declined while the network was away does not ring again', long(), async t => {
  const server = await open(t)
  const proxy = await DroppingProxy.open(t, Number(new URL(server.http).port))
  let isHeld = false
  let release = () => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  let onUserRead = () => {}
  const holding: typeof fetch = async (url, init) => {
    if (isHeld && String(url).endsWith('/decline')) await held
    if (String(url).endsWith('/app/api/user')) onUserRead()
    return fetch(url, init)
  }
  // The app reckons the server's time from a message that has been on its way for a while.
  let lateMs = 0
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, `http://127.0.0.1:${proxy.port}`, 1, {
    fetch: holding,
    platform: platformOf(() => Date.now() - lateMs),
  })
  await befriend(ann, bob)
  await connected(bob)
  lateMs = 4_000
  const ringing: Call[] = []
  bob.me.on('ringing', call => ringing.push(call))
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!])
  const bobs = await rung
  isHeld = true
  const declined = bobs.decline()
  proxy.cut()
  // Read once the calls that ring have been read.
  const read = new Promise<void>(resolve => {
    onUserRead = resolve
  })
  proxy.mend()
  await read
  release()
  await declined
  await until(call, ({ state }) => state === 'ended')
  t.equal(ringing.length, 1)
})

t.test('a network that is away for a while brings what has happened meanwhile', async t => {
  const server = await open(t)
  const { port } = new URL(server.http)
  const proxy = await DroppingProxy.open(t, Number(port))
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, `http://127.0.0.1:${proxy.port}`, 1)
  await befriend(ann, bob)
  await connected(bob)
  proxy.cut()
  const call = await ann.me.call([bob.me.userId!])
  const rung = bob.me.once('ringing')
  proxy.mend()
  const bobs = await rung
  await bobs.answer()
  await until(call, ({ state }) => state === 'active')
  proxy.cut()
  await call.renewKey()
  const key = bobs.once('key')
  proxy.mend()
  t.match(await key, { epoch: 2, fingerprint: call.fingerprint! })
  t.equal(bobs.state, 'active')
})

/** An app that hears by HTTP alone once its proxy is cut, and reads a call when it may. */
async function lateReader(t: Test, { http }: OpenServer, at: number) {
  const proxy = await DroppingProxy.open(t, Number(new URL(http).port))
  const away = `http://127.0.0.1:${proxy.port}`
  let isHeld = false
  let read = () => {}
  let onHeld = () => {}
  const held = new Promise<void>(resolve => {
    onHeld = resolve
  })
  const late: typeof fetch = async (url, init) => {
    if (isHeld && /\/call\/\d+$/.test(String(url))) {
      await new Promise<void>(resolve => {
        read = resolve
        onHeld()
      })
    }
    return fetch(String(url).replace(away, http), init)
  }
  const hold = () => {
    isHeld = true
  }
  const person = await newPerson(t, away, at, { fetch: late })
  return { person, proxy, hold, held, read: () => read() }
}

t.test('a call that has ended before its key was opened is no fault', long(), async t => {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const { person: bob, proxy, hold, held, read } = await lateReader(t, server, 1)
  await befriend(ann, bob)
  hold()
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!])
  const bobs = await rung
  bobs.on('error', error => bob.errors.push(error))
  await held
  proxy.cut()
  await call.end()
  const ended = bobs.once('ended')
  read()
  t.same(await ended, { reason: 'unknown' })
  t.same(bob.errors, [])
  t.equal(bobs.isVerified, undefined)
})

t.test('a call that has ended before a device was given its key is no fault', long(), async t => {
  const server = await open(t)
  const { person: ann, proxy, hold, held, read } = await lateReader(t, server, 0)
  const bob = await newPerson(t, server.http, 1)
  const { call } = await inCall(ann, bob)
  await bob.me.close()
  hold()
  await restart(t, bob)
  await held
  proxy.cut()
  await ann.me.request('POST call/{callId}/end', undefined, { callId: call.callId })
  const ended = call.once('ended')
  read()
  t.same(await ended, { reason: 'unknown' })
  t.same(ann.errors, [])
})

const LONGER_THAN_IT_WAITS_MS = 3_000

t.test(
  'a call that ended while the connection was away ends for the reason that comes with the next one',
  long(),
  async t => {
    const server = await open(t)
    const { person: ann, proxy, hold, held, read } = await lateReader(t, server, 0)
    const { call, bobs } = await inCall(ann, await newPerson(t, server.http, 1))
    hold()
    proxy.cut()
    proxy.mend()
    await held
    proxy.cut()
    proxy.mend()
    while (ann.me.connection !== 'connecting') await ann.me.once('connection')
    proxy.cut()
    await bobs.end()
    // The answer says that it has ended, and not why.
    let ending: string | undefined
    const ended = call.once('ended').then(({ reason }) => {
      ending = reason
    })
    read()
    await new Promise(resolve => setTimeout(resolve, LONGER_THAN_IT_WAITS_MS))
    t.equal(ending, undefined)
    proxy.mend()
    await ended
    t.equal(ending, 'hangup')
  },
)

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

t.test('a slow answer takes back nothing that the topic has told meanwhile', long(), async t => {
  const server = await open(t)
  const proxy = await DroppingProxy.open(t, Number(new URL(server.http).port))
  let hold = async (_url: string) => {}
  const slow: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init)
    await hold(String(url))
    return answer
  }
  const ann = await newPerson(t, `http://127.0.0.1:${proxy.port}`, 0, { fetch: slow })
  const { call } = await inCall(ann, await newPerson(t, server.http, 1))
  const cat = await newPerson(t, server.http, 2)
  await befriend(ann, cat)
  const catIs = (state: string) => (shown: Call) =>
    shown.participants.some(one => one.userId === cat.me.userId && one.state === state)

  hold = async url => (url.endsWith('/invite') ? until(call, catIs('ringing')) : undefined)
  const rung = cat.me.once('ringing')
  await call.invite([cat.me.userId!])
  t.ok(catIs('ringing')(call))

  const goOns: (() => void)[] = []
  const held = new Promise<void>(isHeld => {
    hold = url =>
      new Promise(resolve => {
        if (!url.endsWith(`/call/${call.callId}`)) return resolve()
        goOns.push(resolve)
        isHeld()
      })
  })
  proxy.cut()
  proxy.mend()
  await held
  await (await rung).answer()
  await until(call, catIs('joined'))
  const ready = ann.me.once('ready')
  hold = async () => {}
  for (const goOn of goOns) goOn()
  await ready
  t.ok(catIs('joined')(call))
})

t.test('a device that was away for too long asks for the key, and comes back', async t => {
  const server = await open(t)
  const proxy = await DroppingProxy.open(t, Number(new URL(server.http).port))
  let isLost = false
  // The server would wait for 90 seconds.
  const losing: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init)
    if (!isLost || !/\/call\/\d+$/.test(String(url))) return answer
    isLost = false
    const record = JSON.parse(await answer.text())
    for (const one of record.participants) if (one.userId === bob.me.userId) one.state = 'lost'
    return Response.json(record)
  }
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, `http://127.0.0.1:${proxy.port}`, 1, { fetch: losing })
  const { call, bobs } = await inCall(ann, bob)
  const states: string[] = []
  bobs.on('state', state => states.push(state))
  proxy.cut()
  isLost = true
  proxy.mend()
  await until(bobs, () => states.length === 2)
  t.same(states, ['rejoining', 'active'])
  t.equal(bobs.fingerprint, call.fingerprint)
})

t.test(
  'a key from before the loss does not bring a device back: it gets the one that the others have',
  long(),
  async t => {
    const server = await open(t)
    const proxy = await DroppingProxy.open(t, Number(new URL(server.http).port))
    const away = `http://127.0.0.1:${proxy.port}`
    let isLost = false
    // The server would call Bob lost after 90 seconds. He leaves by another way, and his app reads that he was lost.
    const losing: typeof fetch = async (url, init) => {
      const isLeaving = String(url).endsWith('/leave')
      const answer = await fetch(isLeaving ? String(url).replace(away, server.http) : url, init)
      if (!isLost || !/\/call\/\d+$/.test(String(url))) return answer
      return Response.json(JSON.parse((await answer.text()).replace('"state":"left"', '"state":"lost"')))
    }
    const ann = await newPerson(t, server.http, 0)
    const bob = await newPerson(t, away, 1, { fetch: losing })
    const { call, bobs } = await inCall(ann, bob)
    proxy.cut()
    await call.renewKey()
    await bob.me.request('POST call/{callId}/leave', undefined, { callId: call.callId })
    await call.renewKey()
    isLost = true
    proxy.mend()
    await until(bobs, ({ fingerprint, state }) => state === 'active' && fingerprint === call.fingerprint)
    t.equal(bobs.keys[0]?.epoch, 3)
  },
)

t.test('a device that can not open a new key asks for it', async t => {
  const server = await open(t)
  let isAway = false
  const failing: typeof fetch = async (url, init) => {
    if (!isAway || !String(url).includes('get-public-keys')) return fetch(url, init)
    isAway = false
    throw new Error('the log does not answer')
  }
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, server.http, 1, { fetch: failing })
  const { call, bobs } = await inCall(ann, bob)
  const told = bobs.once('error')
  isAway = true
  await call.renewKey()
  t.match(await told, { code: 'LOG_UNANSWERED' })
  await until(bobs, ({ state, keys }) => state === 'active' && keys[0]?.epoch === 2)
  t.equal(bobs.fingerprint, call.fingerprint)
})

t.test('a device that missed a new key asks for it while the call goes on', long(), async t => {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, server.http, 1, { webSocket: withoutKeyUpdates })
  const { call, bobs } = await inCall(ann, bob)
  const states: string[] = []
  bobs.on('state', state => states.push(state))
  await call.renewKey()
  await bobs.askForKey()
  await until(bobs, ({ keys }) => keys[0]?.epoch === 2)
  t.equal(bobs.fingerprint, call.fingerprint)
  t.same(states, [], 'it was never out of the call')
})

/** The server's news of new keys get lost. */
const withoutKeyUpdates = class extends WebSocket {
  override emit(name: string, ...parts: unknown[]): boolean {
    const isKeyUpdate = name === 'message' && String(parts[0]).includes('"type":"key_update"')
    return isKeyUpdate || super.emit(name, ...parts)
  }
}

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

t.test('an app that a push has started rings before it is connected', async t => {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, server.http, 1, { device: { push: { fcmToken: 'bobs-token' } } })
  await befriend(ann, bob)
  const bobsId = bob.me.userId!
  await bob.me.close()
  const call = await ann.me.call([bobsId])
  const invitation = await pushed(server, 'call_invitation')
  const again = await restart(t, bob)
  const rung = again.me.once('ringing')
  t.match(await again.me.onPush(invitation), { show: 'ringing' })
  await (await rung).answer()
  await until(call, ({ state }) => state === 'active')
})

/** Events that come to a device of `callsign/app` while a request of its own is under way, and requests that fail once. */

import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import type { Call } from '../../../src/app/app.ts'
import { settingsFor } from '../../support/call-people.ts'
import { DroppingProxy } from '../../support/dropping-proxy.ts'
import { HeldFetch } from '../../support/held-fetch.ts'
import { openServer } from '../../support/open-server.ts'
import type { OpenServer } from '../../support/server.ts'
import { long } from '../../support/size.ts'
import {
  type AppPerson,
  befriend,
  inCall,
  listed,
  newPerson,
  restart,
  until,
} from '../../support/whole-apps.ts'

async function open(t: Test): Promise<OpenServer> {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(3) })
  t.teardown(() => server.end())
  return server
}

/** Another device of the person, which their first one has approved. */
async function secondDevice(
  t: Test,
  first: AppPerson,
  at: number,
  options: Parameters<typeof newPerson>[3] = {},
): Promise<AppPerson> {
  const second = await newPerson(t, first.options.server, at, options)
  const waiting = await listed(first, state => (state.kind === 'listed' ? state.waiting[0] : undefined))
  await first.me.devices.approve(waiting)
  await listed(second, state => state.kind === 'listed' || undefined)
  return second
}

t.test('a call that was answered on another device meanwhile is not taken from it', async t => {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const phone = await newPerson(t, server.http, 1)
  await befriend(ann, phone)
  const slow = new HeldFetch()
  const laptop = await secondDevice(t, phone, 1, { fetch: slow.fetch })
  const ringing = [phone, laptop].map(({ me }) => me.once('ringing'))
  const key = slow.answer(/publicKeys/)
  const call = await ann.me.call([phone.me.userId!])
  const [onPhone, onLaptop] = (await Promise.all(ringing)) as [Call, Call]
  await key.came
  const elsewhere = onLaptop.once('ended')
  const answered = onLaptop.answer().catch(error => error)
  await onPhone.answer()
  t.same(await elsewhere, { reason: 'answered_elsewhere' })
  key.release()
  t.match(await answered, { code: 'CALL_NOT_ACTIVE' })
  const { participants } = await ann.me.request('GET call/{callId}', undefined, { callId: call.callId })
  t.equal(participants.find(one => one.userId === phone.me.userId)?.deviceId, phone.me.deviceId)
  t.equal(onPhone.state, 'active')
})

t.test('a call that is answered on two devices at once goes on with one of them', async t => {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const phone = await newPerson(t, server.http, 1)
  await befriend(ann, phone)
  const slow = new HeldFetch()
  const laptop = await secondDevice(t, phone, 1, { fetch: slow.fetch })
  const ringing = [phone, laptop].map(({ me }) => me.once('ringing'))
  await ann.me.call([phone.me.userId!])
  const [onPhone, onLaptop] = (await Promise.all(ringing)) as [Call, Call]
  const join = slow.request(/\/join$/)
  const answered = onLaptop.answer()
  await join.came
  const told = laptop.me.once('call_answered_elsewhere')
  await onPhone.answer()
  await told
  const moved = onPhone.once('ended')
  join.release()
  await answered
  t.same(await moved, { reason: 'moved' })
  t.equal(onLaptop.state, 'active')
})

t.test('an app that is closed while it answers does not join', long(), async t => {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const slow = new HeldFetch()
  const bob = await newPerson(t, server.http, 1, { fetch: slow.fetch })
  await befriend(ann, bob)
  const key = slow.answer(/publicKeys/)
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!])
  await key.came
  const answered = (await rung).answer().catch(error => error)
  await bob.me.close()
  key.release()
  t.match(await answered, { code: 'CALL_NOT_ACTIVE' })
  t.equal(call.state, 'ringing')
})

t.test('a call that is restored while the connection comes back is restored once', async t => {
  const server = await open(t)
  const proxy = await DroppingProxy.open(t, Number(new URL(server.http).port))
  const slow = new HeldFetch()
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, `http://127.0.0.1:${proxy.port}`, 1, { fetch: slow.fetch })
  const { call } = await inCall(ann, bob)
  await bob.me.close()
  const read = slow.answer(/call\/\d+$/)
  const again = await restart(t, bob)
  const resumed: Call[] = []
  again.me.on('resumed', one => resumed.push(one))
  await read.came
  const secondRead = slow.answer(/call\/\d+$/)
  proxy.mend()
  await secondRead.came
  read.release()
  secondRead.release()
  await again.me.once('ready')
  t.equal(resumed.length, 1)
  t.equal(again.me.calls.length, 1)
  await until(resumed[0]!, ({ state }) => state === 'active')
  t.equal(resumed[0]!.fingerprint, call.fingerprint)
})

t.test('a call that is joined twice at once is joined once', long(), async t => {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const phone = await newPerson(t, server.http, 1)
  const laptop = await secondDevice(t, phone, 1)
  const { call } = await inCall(ann, phone)
  const states: string[] = []
  laptop.me.on('changed', () => states.push(...laptop.me.calls.map(({ state }) => state)))
  const joined = await Promise.all([laptop.me.join(call.callId), laptop.me.join(call.callId)])
  t.equal(joined[0], joined[1])
  t.equal(await laptop.me.join(call.callId), joined[0])
  t.same([...new Set(states)], ['joining', 'active'])
})

t.test('a slow answer takes back no change of the profile', long(), async t => {
  const server = await open(t)
  const slow = new HeldFetch()
  const read = slow.answer(/GET .*\/user$/)
  const ann = await newPerson(t, server.http, 0, { fetch: slow.fetch })
  await read.came
  const changed = ann.me.once('profile_changed')
  const laptop = await newPerson(t, server.http, 0)
  await laptop.me.account.update({ displayName: 'Anna' })
  await changed
  t.equal(ann.me.user?.displayName, 'Anna')
  const ready = ann.me.once('ready')
  read.release()
  await ready
  t.equal(ann.me.user?.displayName, 'Anna')
})

t.test('an app that is closed stays so, whatever was under way', async t => {
  const server = await open(t)
  const slow = new HeldFetch()
  const ann = await newPerson(t, server.http, 0, { fetch: slow.fetch })
  await ann.me.close()
  const read = slow.answer(/GET .*\/user$/)
  const again = await restart(t, ann)
  await read.came
  const closed = again.me.close()
  read.release()
  await closed
  // Behind this answer the app has had the other one, too.
  await fetch(`${server.http}/app/api/meta`)
  t.equal(again.me.user, undefined)

  const resumed = again.me.resume()
  await again.me.close()
  await resumed
  t.equal(again.me.userId, undefined)
  t.equal(again.me.connection, 'off')
})

t.test('a user who left and joins again while the connection comes back is in the call', long(), async t => {
  const server = await open(t)
  const proxy = await DroppingProxy.open(t, Number(new URL(server.http).port))
  const slow = new HeldFetch()
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, `http://127.0.0.1:${proxy.port}`, 1, { fetch: slow.fetch })
  const { call, bobs } = await inCall(ann, bob)
  await bobs.leave()
  const join = slow.request(/\/join$/)
  const joined = bob.me.join(call.callId)
  await join.came
  const ready = bob.me.once('ready')
  proxy.mend()
  await ready
  join.release()
  const back = await joined
  await until(back, ({ state }) => state !== 'rejoining')
  t.equal(back.state, 'active')
  t.equal(back.fingerprint, call.fingerprint)
})

t.test('a call that can not be joined now is not left half joined', long(), async t => {
  const server = await open(t)
  const slow = new HeldFetch()
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, server.http, 1, { fetch: slow.fetch })
  const { call, bobs } = await inCall(ann, bob)
  await bobs.leave()
  slow.failure(/\/join$/)
  await t.rejects(bob.me.join(call.callId), { code: 'HTTP_500' })
  t.same(bob.me.calls, [])
  const cat = await newPerson(t, server.http, 2)
  await befriend(cat, bob)
  const rung = cat.me.once('ringing')
  await bob.me.call([cat.me.userId!])
  await (await rung).answer()
  slow.failure(/\/leave$/)
  await t.rejects(bob.me.join(call.callId), { code: 'HTTP_500' })
  t.equal(bob.me.calls.length, 1)
})

t.test(
  'a key that is renewed while this device joins, and can not be read now, is asked for',
  long(),
  async t => {
    const server = await open(t)
    const slow = new HeldFetch()
    const [ann, bob, cat] = [
      await newPerson(t, server.http, 0),
      await newPerson(t, server.http, 1),
      await newPerson(t, server.http, 2, { fetch: slow.fetch }),
    ]
    const { call } = await inCall(ann, bob)
    await befriend(ann, cat)
    const rung = cat.me.once('ringing')
    await call.invite([cat.me.userId!])
    const cats = await rung
    while (cats.isVerified === undefined) await cats.once('changed')
    const join = slow.request(/\/join$/)
    const answered = cats.answer()
    await join.came
    const told = cats.once('error')
    slow.failure(/publicKeys/)
    await call.renewKey()
    await told
    slow.failure(/publicKeys/)
    join.release()
    await answered
    await until(cats, ({ state }) => state === 'active')
    t.equal(cats.fingerprint, call.fingerprint)
  },
)

t.test('a new key that could not be sent after a person left is made again', async t => {
  const server = await open(t)
  const slow = new HeldFetch()
  const [ann, bob, cat] = [
    await newPerson(t, server.http, 0, { fetch: slow.fetch }),
    await newPerson(t, server.http, 1),
    await newPerson(t, server.http, 2),
  ]
  const { call, bobs } = await inCall(ann, bob)
  await befriend(ann, cat)
  const rung = cat.me.once('ringing')
  await call.invite([cat.me.userId!])
  const cats = await rung
  await cats.answer()
  slow.failure(/\/keys$/)
  const told = call.once('error')
  const key = bobs.once('key')
  await cats.leave()
  t.match(await told, { code: 'HTTP_500' })
  t.match(await key, { epoch: 2 })
  await until(call, ({ fingerprint }) => fingerprint === bobs.fingerprint)
})

t.test('a device that could not come back at once tries again', long(), async t => {
  const server = await open(t)
  const proxy = await DroppingProxy.open(t, Number(new URL(server.http).port))
  const slow = new HeldFetch()
  const ann = await newPerson(t, `http://127.0.0.1:${proxy.port}`, 0, { fetch: slow.fetch })
  const bob = await newPerson(t, server.http, 1)
  const { bobs } = await inCall(ann, bob)
  await bobs.leave()
  await ann.me.close()
  slow.failure(/\/rejoin$/)
  const again = await restart(t, ann)
  const back = await again.me.once('resumed')
  t.match(await back.once('error'), { code: 'HTTP_500' })
  proxy.mend()
  await until(back, ({ state }) => state === 'active')
  t.equal(back.keys.length, 1)
})

t.test('a device that becomes the host of a call without a key makes one', long(), async t => {
  const server = await open(t)
  // The host never answers, and this device gives up sooner than the server says.
  const deaf = class extends WebSocket {
    override emit(name: string, ...parts: unknown[]): boolean {
      const isAsk = name === 'message' && String(parts[0]).includes('"type":"participant_request_rejoin"')
      return isAsk || super.emit(name, ...parts)
    }
  }
  const impatient: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init)
    return String(url).endsWith('/request-rejoin') ? Response.json({ expiresIn: 0.5 }) : answer
  }
  const [ann, bob, cat] = [
    await newPerson(t, server.http, 0, { webSocket: deaf }),
    await newPerson(t, server.http, 1, { fetch: impatient }),
    await newPerson(t, server.http, 2, { fetch: impatient }),
  ]
  const { call } = await inCall(ann, bob)
  await befriend(ann, cat)
  const rung = cat.me.once('ringing')
  await call.invite([cat.me.userId!])
  await (await rung).answer()
  await Promise.all([bob.me.close(), cat.me.close()])
  const again = [await restart(t, bob), await restart(t, cat)]
  const calls = await Promise.all(again.map(async ({ me }) => me.calls[0] ?? (await me.once('resumed'))))
  for (const one of calls) await until(one, ({ state }) => state === 'keyless')
  await call.leave()
  for (const one of calls) await until(one, ({ state }) => state === 'active')
  t.equal(calls[0]!.fingerprint, calls[1]!.fingerprint)
})

t.test('a call that is started while the app is closed ends', long(), async t => {
  const server = await open(t)
  const slow = new HeldFetch()
  const ann = await newPerson(t, server.http, 0, { fetch: slow.fetch })
  const bob = await newPerson(t, server.http, 1)
  await befriend(ann, bob)
  const answer = slow.answer(/call\/start$/)
  const rung = bob.me.once('ringing')
  const started = ann.me.call([bob.me.userId!])
  await answer.came
  const ended = (await rung).once('ended')
  await ann.me.close()
  answer.release()
  t.match(await started, { state: 'ended', ending: 'left', keys: [] })
  t.same(await ended, { reason: 'cancelled' })
})

t.test('a call that rings does so again in a tab that comes back', long(), async t => {
  const server = await open(t)
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, server.http, 1)
  await befriend(ann, bob)
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!])
  const moved = (await rung).once('ended')
  const other = await restart(t, bob)
  t.same(await moved, { reason: 'moved' })
  const rungThere = await other.me.once('ringing')
  const again = bob.me.once('ringing')
  bob.me.takeOver()
  await (await again).answer()
  await until(call, ({ state }) => state === 'active')
  t.equal(rungThere.ending, 'moved')
})

t.test('a call of before a restart that could not be read is read again', long(), async t => {
  const server = await open(t)
  const slow = new HeldFetch()
  const ann = await newPerson(t, server.http, 0)
  const platform = {
    nowMs: Date.now,
    random: Math.random,
    wait: () => new Promise<void>(resolve => setImmediate(resolve)),
  }
  const bob = await newPerson(t, server.http, 1, { fetch: slow.fetch, platform })
  const { call } = await inCall(ann, bob)
  await bob.me.close()
  slow.failure(/call\/\d+$/)
  const again = await restart(t, bob)
  const back = await again.me.once('resumed')
  await until(back, ({ state }) => state === 'active')
  t.equal(back.fingerprint, call.fingerprint)
  t.match(again.errors, [{ code: 'HTTP_500' }])
})

t.test('a new key whose sending seemed to fail does not part the host from the call', long(), async t => {
  const server = await open(t)
  const slow = new HeldFetch()
  const ann = await newPerson(t, server.http, 0, { fetch: slow.fetch })
  const { call, bobs } = await inCall(ann, await newPerson(t, server.http, 1))
  slow.loss(/\/keys$/)
  const key = bobs.once('key')
  await t.rejects(call.renewKey(), { code: 'HTTP_500' })
  t.match(await key, { epoch: 2 })
  await until(bobs, ({ keys }) => keys[0]?.epoch === 3)
  await until(call, ({ fingerprint }) => fingerprint === bobs.fingerprint)
})

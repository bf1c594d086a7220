/**
 * Events that come to an app of `@callsign/sdk/app` while a request of its own is under way, with real sockets: what its shell adds to
 * the stories of `device-call-stories.test.ts`.
 */

import t, { type Test } from 'tap'
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
  proxy.reset()
  await secondRead.came
  read.release()
  secondRead.release()
  await again.me.once('ready')
  t.equal(resumed.length, 1)
  t.equal(again.me.calls.length, 1)
  await until(resumed[0]!, ({ state }) => state === 'active')
  t.equal(resumed[0]!.fingerprint, call.fingerprint)
})

t.test('a slow answer takes back no change of the profile', long(), async t => {
  const server = await open(t)
  const phone = await newPerson(t, server.http, 0)
  const laptop = await newPerson(t, server.http, 0)
  const waiting = await listed(phone, state => (state.kind === 'listed' ? state.waiting[0] : undefined))
  await phone.me.devices.approve(waiting)
  await phone.me.close()
  const slow = new HeldFetch()
  const read = slow.answer(/GET .*\/user$/)
  const ann = await restart(t, { ...phone, options: { ...phone.options, fetch: slow.fetch } })
  await read.came
  const changed = ann.me.once('profile_changed')
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

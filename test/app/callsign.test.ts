/** Whole apps of `@callsign/sdk/app` with the real server: people sign in, become contacts and call each other. */

import t from 'tap'
import { Callsign, memoryStorage } from '../../src/app/app.ts'
import { CODE, emailOf } from '../support/call-people.ts'
import { type AppPerson, newFriends, restart } from '../support/whole-apps.ts'

t.test('a call is answered, and both have the same fingerprint', async t => {
  const [ann, bob] = (await newFriends(t)) as [AppPerson, AppPerson]
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!], { video: true })
  t.match(call, { state: 'ringing', isIncoming: false, isVideo: true, isHost: true })
  const incoming = await rung
  t.match(incoming, { callId: call.callId, isIncoming: true, caller: { userId: ann.me.userId! } })
  const active = call.once('state')
  await incoming.answer()
  t.equal(await active, 'active')
  t.match(incoming, { state: 'active', isVerified: true, isHost: false })
  t.match(incoming.fingerprint, /^\d{5}( \d{5}){5}$/)
  t.equal(incoming.fingerprint, call.fingerprint)
  const devices = [ann, bob].map(({ me }) => ({ userId: me.userId!, deviceId: me.deviceId! }))
  for (const { sealedFor } of [call, incoming]) {
    t.equal(sealedFor.length, 2)
    t.ok(
      devices.every(({ userId, deviceId }) =>
        sealedFor.some(one => one.userId === userId && one.deviceId === deviceId),
      ),
    )
  }
  const ended = incoming.once('ended')
  await call.end()
  t.same(await ended, { reason: 'hangup' })
  t.same([call.ending, incoming.ending], ['hangup', 'hangup'])
  t.same([call.keys, incoming.keys], [[], []])
  t.same([call.sealedFor, incoming.sealedFor], [[], []])
  t.same([ann.me.calls, bob.me.calls], [[], []])
})

t.test('an app reads, by the names of the interface, what the SDK has no method for', async t => {
  const [ann] = (await newFriends(t)) as [AppPerson]
  const { userId } = ann.me
  t.match(await ann.me.request('GET user', undefined), { userId })
  t.match(await ann.me.devices.checkKey(), { kind: 'clean' })
  await ann.me.signOut()
  await t.rejects(ann.me.request('GET user', undefined), { code: 'SIGNED_OUT' })
})

t.test('an app that is closed while it signs in does not connect, and keeps the session', async t => {
  const [ann] = (await newFriends(t, 1)) as [AppPerson]
  const me = new Callsign({ ...ann.options, storage: memoryStorage() })
  t.teardown(() => me.close())
  const states: string[] = []
  me.on('connection', state => states.push(state))
  const confirm = async () => {
    await me.close()
    return CODE
  }
  const { userId } = await me.signIn(emailOf(0), confirm)
  t.same([me.userId, me.user, me.connection, states], [undefined, undefined, 'off', []])

  const signedIn = me.signIn(emailOf(0), confirm)
  await me.close()
  t.match(await signedIn, { userId })
  t.equal(me.connection, 'off')
  t.equal(await me.resume(), userId)
  t.equal(me.connection, 'connecting')
})

t.test('`ready` comes when the user, devices and calls are known after a restart', async t => {
  const [ann] = (await newFriends(t)) as [AppPerson]
  await ann.me.close()
  const { me } = await restart(t, ann)
  t.equal(me.user, undefined)
  await me.once('ready')
  t.match(me.user, { displayName: 'Person 0' })
  t.match(me.devices.listState, { kind: 'listed' })
})

t.test('a link from before names the device list again', async t => {
  const [ann] = (await newFriends(t)) as [AppPerson]
  const { url, link } = await ann.me.contacts.shareLink()
  const renewed = await ann.me.contacts.renewLink(url)
  t.match([link, renewed], [/#.*l=/, /#.*l=/])
  t.match(await ann.me.contacts.open(renewed), { relation: 'self', isNamed: true })
})

t.test('the badge counts a missed call', async t => {
  const [ann, bob] = (await newFriends(t)) as [AppPerson, AppPerson]
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!])
  await rung
  const told = bob.me.once('call_cancelled')
  await call.end()
  await told
  t.match(bob.me.badge, { missedCalls: 1 })
})

t.test('two apps talk over a topic of their own', async t => {
  const [ann, bob] = (await newFriends(t)) as [AppPerson, AppPerson]
  let hear = (_message: unknown) => {}
  const heard = new Promise(resolve => {
    hear = resolve
  })
  const unwatch = await bob.me.watch('/topic/dev.signals', message => hear(message))
  await ann.me.send('/topic/dev.signals', { sealed: 'AA==' })
  t.same(await heard, { sealed: 'AA==' })
  unwatch()
})

t.test('a refusal in a listener comes as an error', async t => {
  const [ann, bob] = (await newFriends(t)) as [AppPerson, AppPerson]
  bob.me.on('ringing', async call => {
    await call.decline()
    await call.answer()
  })
  const told = bob.me.once('error')
  await ann.me.call([bob.me.userId!])
  t.match(await told, { code: 'CALL_NOT_ACTIVE' })
})

t.test('refusals by HTTP and by STOMP have their sentences in the app’s language', async t => {
  const [ann] = (await newFriends(t, 1)) as [AppPerson]
  await ann.me.close()
  const me = new Callsign({ ...ann.options, language: 'de-AT' })
  t.teardown(() => me.close())
  const ready = me.once('ready')
  await me.resume()
  const sentenceOf = (act: Promise<unknown>) => act.catch(({ sentence }) => sentence)
  t.equal(await sentenceOf(me.join('1')), 'Dieser Anruf wurde nicht gefunden.')
  await ready
  t.equal(await sentenceOf(me.send('/app/nowhere', {})), 'Nicht gefunden.')
})

t.test('an app hears of sign-ins elsewhere, lists them, and ends them; its own is no news', async t => {
  const [ann] = (await newFriends(t, 1)) as [AppPerson]
  const signInElsewhere = async () => {
    const me = new Callsign({ ...ann.options, storage: memoryStorage() })
    t.teardown(() => me.close())
    await me.signIn(emailOf(0), () => CODE)
    return me
  }
  await ann.me.signOut()
  const told = ann.me.once('session_started')
  await ann.me.signIn(emailOf(0), () => CODE)
  const other = await signInElsewhere()
  const { sessionId, proof } = await told
  const [newest, own, ...more] = await ann.me.sessions.list()
  t.same([newest?.id, newest?.isCurrent, own?.isCurrent, more], [sessionId, false, true, []])
  t.same([proof, newest?.device?.deviceId], ['otp', other.deviceId])

  let over = other.once('signed-out')
  await ann.me.sessions.end(sessionId)
  await over
  await t.rejects(ann.me.sessions.end(sessionId), { code: 'SESSION_NOT_FOUND' })
  const others = [await signInElsewhere(), await signInElsewhere()]
  over = others[1]!.once('signed-out')
  await Promise.all([others[0]!.once('signed-out'), over, ann.me.sessions.endOthers()])
  t.match(await ann.me.sessions.list(), [{ isCurrent: true }])
})

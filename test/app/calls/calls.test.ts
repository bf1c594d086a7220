/** Calls of `@callsign/sdk/app` with the real server: every way that they ring, are joined, left, renewed and come to an end. */

import t from 'tap'
import type { Call } from '../../../src/app/app.ts'
import { long } from '../../support/size.ts'
import { type AppPerson, listed, newFriends, newPerson, restart, until } from '../../support/whole-apps.ts'

/** The call as an app that has started again has it. */
async function present({ me }: AppPerson, { callId }: Call): Promise<Call> {
  for (;;) {
    const call = me.calls.find(one => one.callId === callId)
    if (call !== undefined) return call
    await me.once('changed')
  }
}

/** The first person calls the rest, and all answer. Gives each one's call, in order. */
async function allIn([caller, ...others]: readonly AppPerson[]): Promise<Call[]> {
  const ringing = others.map(other => other.me.once('ringing'))
  const call = await caller!.me.call(others.map(({ me }) => me.userId!))
  const calls = [call]
  for (const rung of ringing) {
    const incoming = await rung
    await incoming.answer()
    calls.push(incoming)
  }
  await until(call, ({ participants }) => participants.every(({ state }) => state === 'joined'))
  return calls
}

t.test('a call that is declined, and one that finds the callee busy, end for the caller', async t => {
  const [ann, bob] = await newFriends(t)
  for (const [reason, ending] of [
    [undefined, 'declined'],
    ['busy', 'declined'],
  ] as const) {
    const rung = bob!.me.once('ringing')
    const call = await ann!.me.call([bob!.me.userId!])
    const ended = call.once('ended')
    const incoming = await rung
    await incoming.decline(reason)
    t.same(await ended, { reason: ending })
    t.equal(incoming.state, 'ended')
    await t.rejects(incoming.answer(), { code: 'CALL_NOT_ACTIVE' })
  }
})

t.test('the caller gives up, and it rings no more', async t => {
  const [ann, bob] = await newFriends(t)
  const rung = bob!.me.once('ringing')
  const call = await ann!.me.call([bob!.me.userId!])
  t.type(call.roomId, 'number', 'as the media gateway takes it')
  const ended = (await rung).once('ended')
  await call.end()
  t.same(await ended, { reason: 'cancelled' })
  t.equal(call.ending, 'cancelled')
  const { items } = await bob!.me.history.history()
  t.match(items, [{ callId: call.callId, direction: 'incoming', status: 'missed', seen: false }])
})

t.test(
  'people are brought in and removed, the host leaves, and each change has a key of its own',
  async t => {
    const people = await newFriends(t, 4)
    const [ann, bob, , dan] = people
    const [call, bobs, cats] = (await allIn(people.slice(0, 3))) as [Call, Call, Call]
    const ringing = dan!.me.once('ringing')
    await call.invite([dan!.me.userId!])
    const dans = await ringing
    await dans.answer()
    t.equal(dans.fingerprint, call.fingerprint)
    await until(cats, ({ participants }) => participants.length === 4)
    for (const one of [bobs, cats]) await until(one, ({ fingerprint }) => fingerprint === call.fingerprint)
    t.equal(call.keys[0]?.epoch, 2, 'those who come have a key of their own')

    const ended = dans.once('ended')
    const renewed = [call.once('key'), bobs.once('key'), cats.once('key')]
    await call.remove(dan!.me.userId!)
    t.same(await ended, { reason: 'removed' })
    const keys = await Promise.all(renewed)
    t.same(new Set(keys.map(({ fingerprint }) => fingerprint)).size, 1)
    t.match(keys[1], { epoch: 3, fromUserId: ann!.me.userId! })

    const handed = [bobs.once('key'), cats.once('key')]
    await call.leave()
    t.equal(call.ending, 'left')
    const [bobsKey, catsKey] = await Promise.all(handed)
    t.match(bobsKey, { epoch: 4, fromUserId: bob!.me.userId! })
    t.equal(catsKey?.fingerprint, bobsKey?.fingerprint)
    t.ok(bobs.isHost)
    await t.rejects(cats.end(), { code: 'NOT_HOST' })
    await bobs.end()
  },
)

t.test('an app that starts again comes back into its call, with the same key', async t => {
  const [ann, bob] = await newFriends(t)
  const [call] = (await allIn([ann!, bob!])) as [Call, Call]
  const { fingerprint } = call
  await bob!.me.close()
  const again = await restart(t, bob!)
  const back = await again.me.once('resumed')
  await until(back, ({ state }) => state === 'active')
  t.equal(back.fingerprint, fingerprint)
  t.equal(back.callId, call.callId)
  const key = back.once('key')
  await call.renewKey()
  t.match(await key, { epoch: 2, fingerprint: call.fingerprint! })
  await call.resendKey()
})

t.test('all start again, and the host makes a new key as soon as nobody has one', async t => {
  const [ann, bob] = await newFriends(t)
  const [call] = (await allIn([ann!, bob!])) as [Call, Call]
  const { fingerprint } = call
  await Promise.all([ann!.me.close(), bob!.me.close()])
  const bobAgain = await restart(t, bob!)
  const bobs = await bobAgain.me.once('resumed')
  await until(bobs, ({ state }) => state === 'rejoining')
  // Else it would ask in vain, for as long as the server says.
  const patient: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init)
    return String(url).endsWith('/request-rejoin') ? Response.json({ expiresIn: 3600 }) : answer
  }
  const annAgain = await restart(t, { ...ann!, options: { ...ann!.options, fetch: patient } })
  const anns = await annAgain.me.once('resumed')
  await until(anns, ({ state }) => state === 'active')
  await until(bobs, ({ state }) => state === 'active')
  t.not(anns.fingerprint, fingerprint)
  t.equal(anns.fingerprint, bobs.fingerprint)
})

t.test('the host makes one new key, however it hears that nobody has one', long(), async t => {
  const [ann, bob] = await newFriends(t)
  const [call] = (await allIn([ann!, bob!])) as [Call, Call]
  await Promise.all([ann!.me.close(), bob!.me.close()])
  let returnCount = 0
  let hasAsked = () => {}
  let goOn = () => {}
  const asked = new Promise<void>(resolve => (hasAsked = resolve))
  const returns = new Promise<void>(resolve => (goOn = resolve))
  // The answer to its own ask comes while it goes back into the call, since the other device has asked, too.
  const slow: typeof fetch = async (url, init) => {
    if (String(url).endsWith('/rejoin')) {
      returnCount++
      goOn()
      await fetch(`${ann!.options.server}/app/api/meta`)
    }
    const answer = await fetch(url, init)
    if (String(url).endsWith('/request-rejoin')) {
      hasAsked()
      await returns
    }
    return answer
  }
  const annAgain = await restart(t, { ...ann!, options: { ...ann!.options, fetch: slow } })
  await asked
  const bobAgain = await restart(t, bob!)
  const [anns, bobs] = [await present(annAgain, call), await present(bobAgain, call)]
  await until(anns, ({ state }) => state === 'active')
  await until(bobs, ({ state }) => state === 'active')
  t.equal(returnCount, 1)
  t.equal(anns.keys[0]?.epoch, 2)
  t.equal(bobs.fingerprint, anns.fingerprint)
})

t.test('a caller that starts again while it rings gives the call up', long(), async t => {
  const [ann, bob] = await newFriends(t)
  const rung = bob!.me.once('ringing')
  await ann!.me.call([bob!.me.userId!])
  const ended = (await rung).once('ended')
  await ann!.me.close()
  const again = await restart(t, ann!)
  const back = await again.me.once('resumed')
  await until(back, ({ state }) => state === 'ended')
  t.equal(back.ending, 'key_lost')
  t.same(await ended, { reason: 'cancelled' })
})

t.test('answering another call leaves the one that this device is in', long(), async t => {
  const [ann, bob, cat] = await newFriends(t, 3)
  const [call, bobs] = (await allIn([ann!, bob!])) as [Call, Call]
  const rung = ann!.me.once('ringing')
  // Bob leaves first: a user who is in a call can't start one.
  await bobs.leave()
  await cat!.me.call([ann!.me.userId!])
  const second = await rung
  await second.answer()
  t.equal(call.ending, 'left')
  t.equal(second.state, 'active')
})

t.test('a person has two devices: one approves the other, both ring, and the call moves', async t => {
  const [ann, phone] = (await newFriends(t)) as [AppPerson, AppPerson]
  const laptop = await newPerson(t, phone.options.server, 1)
  const waits = await listed(laptop, state => (state.kind === 'waiting' ? state.code : undefined))
  const waiting = await listed(phone, state => (state.kind === 'listed' ? state.waiting[0] : undefined))
  t.equal(waiting.code, waits, 'both show the same code')
  await phone.me.devices.approve(waiting)
  await listed(laptop, state => state.kind === 'listed' || undefined)

  const ringing = [phone, laptop].map(({ me }) => me.once('ringing'))
  const call = await ann.me.call([phone.me.userId!])
  const [onPhone, onLaptop] = (await Promise.all(ringing)) as [Call, Call]
  const elsewhere = onLaptop.once('ended')
  await onPhone.answer()
  t.same(await elsewhere, { reason: 'answered_elsewhere' })
  const moved = onPhone.once('ended')
  const movedTo = await laptop.me.join(call.callId)
  t.same(await moved, { reason: 'moved' })
  await until(movedTo, ({ state }) => state === 'active')
  t.equal(movedTo.fingerprint, call.fingerprint)
  await movedTo.leave()
  // A server could make up such a device: the person here is asked.
  const asked = call.once('key-asked')
  const back = await phone.me.join(call.callId)
  const ask = await asked
  t.match(ask, { userId: phone.me.userId!, deviceId: phone.me.deviceId! })
  await call.grantKey(ask)
  await until(back, ({ state }) => state === 'active')
  t.equal(back.fingerprint, call.fingerprint)
})

t.test('a callee with a closed app and no pushes is unreachable, until the app comes back', async t => {
  const [ann, bob] = await newFriends(t)
  const userId = bob!.me.userId!
  await bob!.me.close()
  const call = await ann!.me.call([userId])
  const bobs = { userId, state: 'invited', isUnreachable: true }
  t.match(await call.once('participant'), bobs)
  t.match(call.participants[1], bobs)
  const rings = call.once('participant')
  const again = await restart(t, bob!)
  t.match(await rings, { state: 'ringing' })
  t.equal(call.participants[1]!.isUnreachable, undefined)
  await (await present(again, call)).decline()
})

t.test('strangers can not be called', async t => {
  const [ann, bob, cat] = await newFriends(t, 3)
  const catsId = cat!.me.userId!
  const refusal = { code: 'CALLEE_NOT_CONTACT', members: { calleeIds: [catsId] } }
  await t.rejects(bob!.me.call([catsId]), refusal)
  await t.rejects(bob!.me.call([ann!.me.userId!, catsId]), refusal, 'who is named alone')
  t.same(bob!.me.calls, [])
  t.same(ann!.me.calls, [])
  const call = await bob!.me.call([ann!.me.userId!])
  await t.rejects(call.invite([catsId]), refusal)
  await call.end()
})

t.test('a user who has left comes back with the same key, unless the call has ended', async t => {
  const [ann, bob] = await newFriends(t)
  const [call, bobs] = (await allIn([ann!, bob!])) as [Call, Call]
  const { fingerprint } = call
  await bobs.leave()
  const back = await bob!.me.join(call.callId)
  await until(back, ({ state }) => state === 'active')
  t.not(back, bobs)
  t.match(back, { callId: call.callId, ending: undefined, fingerprint })
  const ended = back.once('ended')
  await call.end()
  await ended
  await t.rejects(bob!.me.join(call.callId), { code: /^CALL_(ENDED|NOT_ACTIVE)$/ })
})

t.test('a third hears that the call had begun', long(), async t => {
  const people = await newFriends(t, 3)
  const [call, bobs] = (await allIn(people.slice(0, 2))) as [Call, Call]
  t.equal(bobs.isOnGoing, false)
  const rung = people[2]!.me.once('ringing')
  await call.invite([people[2]!.me.userId!])
  t.equal((await rung).isOnGoing, true)
})

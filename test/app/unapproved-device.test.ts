/** A device that its user has not approved yet: what its app shows until then, and that everything is there afterwards. */

import t from 'tap'
import { type AppPerson, listed, newFriends, newPerson, restart, startOver } from '../support/whole-apps.ts'

t.test(
  'a new device waits with its code, hears nothing else, and has everything once it is approved',
  async t => {
    const [ann, bob] = (await newFriends(t)) as [AppPerson, AppPerson]
    const tablet = await newPerson(t, ann.options.server, 0)
    const { me } = tablet
    const code = await listed(tablet, state => (state.kind === 'waiting' ? state.code : undefined))
    t.same([me.restriction, me.user?.email, me.badge], ['DEVICE_NOT_LISTED', undefined, undefined])
    t.same([me.user?.userId, me.user?.displayName], [ann.me.userId, ann.me.user?.displayName])
    const refused: (() => Promise<unknown>)[] = [
      () => me.contacts.list(),
      () => me.history.history(),
      () => me.call([bob.me.userId!]),
      () => me.request('POST share-token', {}),
      () => me.signOut({ allDevices: true }),
    ]
    for (const act of refused)
      t.match(await act().catch(error => error), { code: 'DEVICE_NOT_LISTED', status: 403 })

    const heard: string[] = []
    for (const name of ['ringing', 'contact_added', 'friend_request', 'ready'] as const)
      me.on(name, () => heard.push(name))
    const rung = ann.me.once('ringing')
    const call = await bob.me.call([ann.me.userId!])
    const ended = call.once('ended')
    await (await rung).decline()
    await ended
    t.same(heard, [], 'it does not ring')

    const ready = me.once('ready')
    const waiting = await listed(ann, state => (state.kind === 'listed' ? state.waiting[0] : undefined))
    t.equal(waiting.code, code, 'both screens show one code')
    await ann.me.devices.approve(waiting)
    await ready
    t.same([me.restriction, me.devices.listState], [undefined, { kind: 'listed', waiting: [] }])
    t.equal(me.user?.email, ann.me.user?.email)
    t.equal((await me.contacts.list()).items.length, 1)
    t.equal((await me.history.history()).items.length, 1)
    const rings = me.once('ringing')
    const again = await bob.me.call([ann.me.userId!])
    t.equal((await rings).callId, again.callId)
    await again.end()
    t.same([...ann.errors, ...bob.errors, ...tablet.errors], [], 'and no app was told of a fault')
  },
)

t.test('a device that is left out of the list hears nothing more, and its app says why', async t => {
  const [ann, bob] = (await newFriends(t)) as [AppPerson, AppPerson]
  const tablet = await newPerson(t, ann.options.server, 0)
  const waiting = await listed(ann, state => (state.kind === 'listed' ? state.waiting[0] : undefined))
  const isReady = tablet.me.once('ready')
  await ann.me.devices.approve(waiting)
  await isReady
  await startOver(tablet)
  while (ann.me.restriction === undefined || ann.me.connection !== 'connected') await ann.me.once('changed')
  t.equal(ann.me.restriction, 'DEVICE_NOT_LISTED')
  await t.rejects(ann.me.contacts.list(), { code: 'DEVICE_NOT_LISTED' })
  const reset = await bob.me.call([ann.me.userId!]).catch(error => error)
  await bob.me.contacts.acceptKeys(ann.me.userId!, reset.members.listHash)
  const rung = tablet.me.once('ringing')
  const call = await bob.me.call([ann.me.userId!])
  await rung
  t.same(ann.me.calls, [])
  await call.end()
})

t.test('a device of the list that signs in again has everything at once', async t => {
  const [ann] = (await newFriends(t)) as [AppPerson]
  const email = ann.me.user?.email
  await ann.me.signOut()
  const again = await newPerson(t, ann.options.server, 0, { storage: ann.options.storage })
  t.same([again.me.user?.email, again.me.restriction], [email, undefined])
  t.equal((await again.me.contacts.list()).items.length, 1)
  t.same((await restart(t, again)).me.restriction, undefined)
})

/** Members and a server that have a key sealed for a device that is not to have it: each is found out by the rest. */

import t from 'tap'
import { type Call, memoryStorage } from '../../../src/app/app.ts'
import { type KeyHolder, makeCallKey } from '../../../src/app/devices/call-key.ts'
import { type AppPerson as Insider, startPerson } from '../../support/app-people.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { callOf, DeceivedHouse, type DeceivedPerson, failure, forge } from '../../support/lying-server.ts'
import { listed, newPerson, startOver, until } from '../../support/whole-apps.ts'

type Three = [DeceivedPerson, DeceivedPerson, DeceivedPerson]
type Calls = [Call, Call, Call]

const house = await DeceivedHouse.open(t, 3)

function holderOf({ keyLog }: Insider, { me }: DeceivedPerson): Promise<KeyHolder> {
  return keyLog.deviceOf(me.userId!, me.deviceId!)
}

const nameOf = ({ me }: DeceivedPerson) => `${me.userId}_${me.deviceId}`
const namesIn = ({ sealedFor }: Call) => sealedFor.map(one => `${one.userId}_${one.deviceId}`).toSorted()

/** Ann calls; the person hears of it with a text that Ann's device has sealed for this set. */
async function invitedWith(person: DeceivedPerson, call: Call, forged: Awaited<ReturnType<typeof forge>>) {
  const { encryptedAESKey, keyMembers } = forged
  const rung = person.me.once('ringing')
  person.lies.answer('GET call/{callId}', record => ({ ...record, keySets: [{ epoch: 1, keyMembers }] }))
  const isIt = ({ callId }: { callId: string }) => callId === call.callId
  person.lies.tell({ ...(await person.lies.heard('call_invitation', isIt)), encryptedAESKey })
  const incoming = await rung
  await until(incoming, ({ isVerified }) => isVerified !== undefined)
  return incoming
}

t.test('a key that is for a person who is not in the call is refused', async t => {
  const [ann, bob, cat] = house.people as Three
  const insider = await house.insider(0)
  const [toBob, toCat] = [await holderOf(insider, bob), await holderOf(insider, cat)]
  bob.lies.message('call_invitation', () => [])
  const call = await ann.me.call([bob.me.userId!])
  const binding = { callId: call.callId, epoch: 1 }
  const forged = await forge(insider, toBob, [insider.keyLog.self, toBob, toCat], binding)
  const incoming = await invitedWith(bob, call, forged)
  t.equal(incoming.isVerified, false)
  const refused = failure(incoming, 'KEY_MEMBERS_REFUSED')
  t.equal(await rejectionOf(incoming.answer()), 'KEY_MEMBERS_REFUSED')
  t.match(await refused, { members: { userId: cat.me.userId! } })

  t.comment('a server that says that they are invited has them shown')
  bob.lies.answer('GET call/{callId}', record => ({
    ...record,
    keySets: [{ epoch: 1, keyMembers: forged.keyMembers }],
    participants: [
      ...record.participants,
      { ...record.participants[1], userId: cat.me.userId!, state: 'invited' },
    ],
  }))
  await incoming.answer()
  t.same(namesIn(incoming), [ann, bob, cat].map(nameOf).toSorted())
  t.not(incoming.fingerprint, call.fingerprint)
})

t.test('the digits differ where one key goes to two sets', async t => {
  const [ann, bob, cat] = house.people as Three
  const insider = await house.insider(0)
  const [from, toBob, toCat] = [
    insider.keyLog.self,
    await holderOf(insider, bob),
    await holderOf(insider, cat),
  ]
  for (const { lies } of [bob, cat]) lies.message('call_invitation', () => [])
  const call = await ann.me.call([bob.me.userId!, cat.me.userId!])
  const [binding, key] = [{ callId: call.callId, epoch: 1 }, makeCallKey()]
  const calls: Call[] = []
  for (const [person, to, set] of [
    [bob, toBob, [from, toBob]],
    [cat, toCat, [from, toBob, toCat]],
  ] as const) {
    const incoming = await invitedWith(person, call, await forge(insider, to, set, binding, key))
    await incoming.answer()
    calls.push(incoming)
  }
  const [bobs, cats] = calls as [Call, Call]
  t.same(bobs.keys[0]!.key, cats.keys[0]!.key)
  t.not(bobs.fingerprint, cats.fingerprint)
  t.same([namesIn(bobs).length, namesIn(cats).length], [2, 3], 'as the screens say')
})

t.test('a removed member makes no key for those who stay', async t => {
  const [ann, bob, cat] = house.people as Three
  const [call, , cats] = (await callOf(ann, bob, cat)) as Calls
  const { callId } = call
  const [bobsDevice, catsDevice] = [await house.insider(1), await house.insider(2)]
  cat.lies.message('key_update', () => [])
  await call.remove(bob.me.userId!)
  await until(cats, ({ participants }) =>
    participants.some(({ userId, state }) => userId === bob.me.userId && state === 'removed'),
  )
  const update = await cat.lies.heard('key_update')
  const forgedBy = async (
    by: Insider,
    receiver: DeceivedPerson,
    set: readonly KeyHolder[],
    epoch: number,
  ) => {
    const to = await holderOf(by, receiver)
    const { encryptedAESKey, keyMembers } = await forge(by, to, set, { callId, epoch })
    receiver.lies.answer('GET call/{callId}/key-members', () => ({ keyMembers }))
    const { added, removed, ...rest } = update
    const from = { fromUserId: by.userId, fromDeviceId: by.deviceId }
    receiver.lies.tell({ ...rest, ...from, epoch, encryptedAESKey, reason: 'rotation' })
  }
  const { self } = bobsDevice.keyLog
  const toCat = await holderOf(bobsDevice, cat)
  const toAnn = await holderOf(bobsDevice, ann)

  const stranger = failure(cats, 'KEY_MEMBERS_REFUSED')
  await forgedBy(bobsDevice, cat, [self, toCat, toAnn], 2)
  t.match(await stranger, { members: { userId: bob.me.userId! } }, 'before the host’s key came')
  cat.lies.beHonest()
  await until(cats, ({ state, fingerprint }) => state === 'active' && fingerprint === call.fingerprint)
  t.same(namesIn(cats), [ann, cat].map(nameOf).toSorted())

  t.comment('and the record has the removed one in the call again')
  for (const { lies } of [ann, cat])
    lies.answer('GET call/{callId}', record => ({
      ...record,
      participants: record.participants.map(one =>
        one.userId === bob.me.userId ? { ...one, state: 'joined' } : one,
      ),
    }))
  for (const [person, one] of [
    [cat, cats],
    [ann, call],
  ] as const) {
    const notFromMember = failure(one, 'KEY_MEMBERS_REFUSED')
    await forgedBy(bobsDevice, person, [self, toCat, toAnn], 3)
    t.match(await notFromMember, { members: { name: nameOf(bob) } })
  }
  const ignored = failure(call, 'REMOVAL_IGNORED')
  await forgedBy(catsDevice, ann, [self, toCat, toAnn], 3)
  t.match(await ignored, { members: { userId: bob.me.userId! } })
  for (const { lies } of [ann, cat]) lies.beHonest()
  for (const one of [call, cats]) {
    await until(one, ({ state }) => state === 'active')
    t.same(namesIn(one), [ann, cat].map(nameOf).toSorted())
  }
})

t.test('whom a device has removed gets no key of it, whatever record and refusals say', async t => {
  const [ann, bob, cat] = house.people as Three
  const [call, , cats] = (await callOf(ann, bob, cat)) as Calls
  ann.lies.answer('GET call/{callId}', record => ({
    ...record,
    participants: record.participants.map(one =>
      one.userId === bob.me.userId ? { ...one, state: 'joined' } : one,
    ),
  }))
  let refusals = 0
  ann.lies.handle('POST call/{callId}/keys', (pass, { without: _, ...body }) => {
    if (refusals++ > 0) return pass(body)
    const problem = { code: 'DEVICE_LIST_MISMATCH', missing: [nameOf(bob)], unexpected: [] }
    return Promise.resolve(Response.json(problem, { status: 409 }))
  })
  const told: string[] = []
  call.on('error', ({ code, members }) => told.push(`${code} ${members.userId}`))
  const renewed = cats.once('key')
  await call.remove(bob.me.userId!)
  t.match(await renewed, { epoch: 2 })
  const bodies = ann.lies.sent('POST call/{callId}/keys')
  t.equal(bodies.length, 2)
  for (const { encryptedAESKeys } of bodies) t.same(Object.keys(encryptedAESKeys), [nameOf(cat)])
  const [first, second] = bodies
  t.not(first!.encryptedAESKeys[nameOf(cat)], second!.encryptedAESKeys[nameOf(cat)])
  t.same(new Set(told), new Set([`REMOVAL_IGNORED ${bob.me.userId}`]))
  await until(call, ({ fingerprint }) => fingerprint === cats.fingerprint)
})

t.test('a keyless member takes the host’s key, not one that another member has made up', async t => {
  const [ann, bob, cat] = house.people as Three
  const [call, , before] = (await callOf(ann, bob, cat)) as Calls
  const { callId } = before
  const { fingerprint } = call
  const insider = await house.insider(1)
  const [self, toAnn, toCat] = [
    insider.keyLog.self,
    await holderOf(insider, ann),
    await holderOf(insider, cat),
  ]
  const stop = cat.lies.message('participant_accept_rejoin', () => [])
  const again = await house.restart(2)
  const back = await again.me.once('resumed')
  const { nonce } = await bob.lies.heard('participant_request_rejoin')
  const answer = await cat.lies.heard('participant_accept_rejoin', one => one.fromUserId === ann.me.userId)
  const binding = { callId, epoch: 1, nonce: Buffer.from(nonce!, 'base64') }
  const { encryptedAESKey } = await forge(insider, toCat, [self, toAnn, toCat], binding)
  stop()
  cat.lies.tell({ ...answer, encryptedAESKey, fromUserId: self.userId, fromDeviceId: self.deviceId })
  cat.lies.tell(answer)
  await until(back, ({ state }) => state === 'active')
  t.equal(back.fingerprint, fingerprint)
  t.equal(back.keys.length, 1)
})

t.test('a device of one’s own that this user did not approve is in no set that is taken', async t => {
  const [ann, bob] = house.people as Three
  const laptop = await newPerson(t, house.server.http, 1, { storage: memoryStorage() })
  await listed(laptop, ({ kind }) => (kind === 'waiting' ? kind : undefined))
  const { keyLog } = await startPerson(house.server, 1, laptop.options.storage)
  const insider = await house.insider(0)
  const toBob = await holderOf(insider, bob)
  bob.lies.message('call_invitation', () => [])
  const call = await ann.me.call([bob.me.userId!])
  t.same(namesIn(call), [ann, bob].map(nameOf).toSorted(), 'nor in one that is made')
  const binding = { callId: call.callId, epoch: 1 }
  const set = [insider.keyLog.self, toBob, keyLog.self]
  const incoming = await invitedWith(bob, call, await forge(insider, toBob, set, binding))
  t.equal(incoming.isVerified, false)
  const refused = failure(incoming, 'KEY_MEMBERS_REFUSED')
  t.equal(await rejectionOf(incoming.answer()), 'KEY_MEMBERS_REFUSED')
  t.match(await refused, { members: { name: keyLog.self.name } })
})

t.test('a reset that is made up at the moment of a rotation puts no device into the set', async t => {
  const [ann, bob, cat] = house.people as Three
  const [call, , cats] = (await callOf(ann, bob, cat)) as Calls
  const ghost = await newPerson(t, house.server.http, 1, { storage: memoryStorage() })
  await listed(ghost, ({ kind }) => (kind === 'waiting' ? kind : undefined))
  await startOver(ghost)
  // Bob's device is on no list now, so it has left the call.
  await until(call, ({ participants }) =>
    participants.every(one => one.userId !== bob.me.userId || one.state !== 'joined'),
  )
  const asked = ann.lies.sent('GET user/publicKeys').length
  await call.renewKey()
  t.same(namesIn(call), [ann, cat].map(nameOf).toSorted())
  t.equal(ann.lies.sent('GET user/publicKeys').length, asked, 'who was proved is not asked for again')

  ann.lies.answer('GET call/{callId}', record => ({
    ...record,
    participants: record.participants.map(one =>
      one.userId === bob.me.userId ? { ...one, state: 'joined', deviceId: ghost.me.deviceId! } : one,
    ),
  }))
  // The server that has the ghost in the call would take it.
  ann.lies.handle('POST call/{callId}/keys', (pass, { without: _, ...body }) => pass(body))
  const leftOut = failure(call, 'KEY_LEFT_OUT')
  await call.renewKey()
  t.match(await leftOut, { members: { name: `${ghost.me.userId}_${ghost.me.deviceId}` } })
  await until(cats, ({ fingerprint }) => fingerprint === call.fingerprint)
  t.same(namesIn(call), [ann, cat].map(nameOf).toSorted())
})

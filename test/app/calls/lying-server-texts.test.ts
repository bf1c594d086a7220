/** A server that changes sealed keys on their way: those of other calls, epochs, people and sets, and keys that were used before. */

import t from 'tap'
import type { Call } from '../../../src/app/app.ts'
import { makeCallKey } from '../../../src/app/devices/call-key.ts'
import type { AppPerson as Insider } from '../../support/app-people.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { callOf, DeceivedHouse, type DeceivedPerson, failure, forge } from '../../support/lying-server.ts'
import { until } from '../../support/whole-apps.ts'

type Two = [DeceivedPerson, DeceivedPerson]
type Three = [...Two, DeceivedPerson]

const house = await DeceivedHouse.open(t, 3)

/** The next call that rings, and why its key is not taken. */
async function refusedRing({ me }: DeceivedPerson) {
  const incoming = await me.once('ringing')
  const error = await incoming.once('error')
  return { incoming, error }
}

t.test(
  'a text of another call, or of a whole call that comes again after a restart, does not open',
  async t => {
    const [ann, bob] = house.people as Two
    const [first, bobs] = (await callOf(ann, bob)) as [Call, Call]
    const { callId } = first
    const invitation = await bob.lies.heard('call_invitation')
    const { session } = await house.insider(1)
    const record = await session.request('GET call/{callId}', undefined, { callId })
    const ended = bobs.once('ended')
    await first.end()
    await ended

    const { encryptedAESKey } = invitation
    const stop = bob.lies.message('call_invitation', event => [{ ...event, encryptedAESKey }])
    const refused = refusedRing(bob)
    const second = await ann.me.call([bob.me.userId!])
    const { incoming, error } = await refused
    t.match(error, { code: 'CALL_KEY_INVALID' })
    t.equal(incoming.isVerified, false)
    t.equal(await rejectionOf(incoming.answer()), 'CALL_KEY_INVALID')
    t.same(incoming.keys, [])
    stop()
    const over = incoming.once('ended')
    await second.end()
    await over

    t.comment('the first call, told as it was')
    const again = await house.restart(1)
    while (again.me.connection !== 'connected') await again.me.once('connection')
    bob.lies.handle('GET call/{callId}', async () => Response.json(record))
    const refusedAgain = refusedRing(again)
    const expiresAt = new Date(Date.now() + 60_000).toISOString()
    bob.lies.tell({ ...invitation, sentAt: Date.now(), expiresAt })
    const { incoming: repeated, error: old } = await refusedAgain
    t.equal(repeated.callId, callId)
    t.match(old, { code: 'CALL_KEY_OLD', members: { epoch: 1 } })
    t.equal(repeated.isVerified, false)
    t.equal(await rejectionOf(repeated.answer()), 'CALL_KEY_OLD')
    t.same(repeated.keys, [])
  },
)

t.test('a text of an older epoch does not open as a newer one, also after a restart', async t => {
  const [ann, bob] = house.people as Two
  const [call, bobs] = (await callOf(ann, bob)) as [Call, Call]
  const { encryptedAESKey } = await bob.lies.heard('call_invitation')
  const stop = bob.lies.message('key_update', event => [{ ...event, encryptedAESKey }])
  const refused = failure(bobs, 'CALL_KEY_INVALID')
  await call.renewKey()
  await refused
  await until(bobs, ({ state, fingerprint }) => state === 'active' && fingerprint === call.fingerprint)
  t.equal(bobs.keys[0]?.epoch, 2, 'the host gives it to a device that says so')
  stop()

  const again = await house.restart(1)
  // All that the server has of the first epoch is for no ask, and this device has left it behind.
  bob.lies.message('participant_accept_rejoin', event => [
    { ...event, keyEpoch: 1, encryptedAESKey },
    { ...event, encryptedAESKey },
    event,
  ])
  const back = await again.me.once('resumed')
  const told: string[] = []
  back.on('error', ({ code }) => told.push(code))
  await until(back, ({ state }) => state === 'active')
  t.same(told, ['CALL_KEY_OLD'])
  t.match(again.errors, [{ code: 'CALL_KEY_INVALID' }])
  t.equal(back.fingerprint, call.fingerprint)
  t.same(
    back.keys.map(({ epoch }) => epoch),
    [2],
  )
})

t.test('a set that was changed on its way is refused, and the next key is taken', async t => {
  const [ann, bob, cat] = house.people as Three
  const other = await ann.me.call([cat.me.userId!])
  const annAndCat = ann.lies.sent('POST call/start')[0]!.keyMembers!
  await other.end()

  const stops = [
    bob.lies.answer('GET call/{callId}', record => ({
      ...record,
      keySets: [{ epoch: 1, keyMembers: annAndCat }],
    })),
    bob.lies.answer('GET call/{callId}/key-members', () => ({
      callId: other.callId,
      epoch: 1,
      keyMembers: annAndCat,
    })),
  ]
  const refused = refusedRing(bob)
  const call = await ann.me.call([bob.me.userId!])
  const { incoming, error } = await refused
  t.match(error, { code: 'KEY_MEMBERS_REFUSED' })
  t.equal(incoming.isVerified, false)
  t.equal(await rejectionOf(incoming.answer()), 'KEY_MEMBERS_REFUSED')
  for (const stop of stops) stop()
  await incoming.answer()
  await until(call, ({ state }) => state === 'active')
  t.equal(incoming.fingerprint, call.fingerprint)

  t.comment('a set that is changed before it is kept is another one than that of its octets')
  ann.lies.handle('POST call/{callId}/keys', (pass, body) => pass({ ...body, keyMembers: annAndCat }))
  t.equal(await rejectionOf(call.renewKey()), 'VALIDATION_FAILED')
})

t.test('`emergency` replaces no key, from a member or from the host', async t => {
  const [ann, bob, cat] = house.people as Three
  const [call, bobs, cats] = (await callOf(ann, bob, cat)) as [Call, Call, Call]
  const { fingerprint } = call
  const { keyMembers } = ann.lies.sent('POST call/start')[0]!
  const binding = { callId: call.callId, epoch: 1 }
  const send = async (from: Insider, others: readonly DeceivedPerson[]) => {
    const participants = others.map(({ me }) => ({
      userId: me.userId!,
      deviceId: me.deviceId!,
      state: 'joined' as const,
    }))
    const { texts } = await from.exchange.sealAgain(makeCallKey(), keyMembers!, participants, binding)
    const body = { epoch: 1, reason: 'emergency', encryptedAESKeys: texts, keyMembers: keyMembers! } as const
    await from.session.request('POST call/{callId}/keys', body, { callId: call.callId })
  }
  const told = [call, cats].map(one => failure(one, 'CALL_KEY_CHANGED'))
  await send(await house.insider(1), [ann, cat])
  await Promise.all(told)
  const toldByHost = [bobs, cats].map(one => failure(one, 'CALL_KEY_CHANGED'))
  await send(await house.insider(0), [bob, cat])
  await Promise.all(toldByHost)
  for (const one of [call, bobs, cats]) {
    t.match(one, { state: 'active', fingerprint })
    t.equal(one.keys.length, 1)
  }
})

t.test('an invitation opens as from the person alone who is said to call', async t => {
  const [ann, bob, puppet] = house.people as Three
  const { userId: annId, deviceId: annsDevice } = ann.me as { userId: string; deviceId: string }
  const inAnnsName = { callerId: annId, callerName: 'Person 0' }
  for (const [named, code] of [
    [{}, 'CALLER_NOT_SEALER'],
    [{ keyFromUserId: annId, keyFromDeviceId: annsDevice }, 'CALL_KEY_INVALID'],
    [{ keyFromUserId: annId }, 'KEYS_UNAVAILABLE'],
  ] as const) {
    const stops = [
      bob.lies.message('call_invitation', event => [{ ...event, ...inAnnsName, ...named }]),
      // The record has Ann in the call, too, as its host.
      bob.lies.answer('GET call/{callId}', record => ({
        ...record,
        hostUserId: annId,
        initiatorId: annId,
        participants: [
          ...record.participants,
          { ...record.participants[0], userId: annId, deviceId: annsDevice },
        ],
      })),
    ]
    const refused = refusedRing(bob)
    const call = await puppet.me.call([bob.me.userId!])
    const { incoming, error } = await refused
    t.equal(incoming.caller.userId, annId)
    t.match(error, { code })
    t.equal(incoming.isVerified, false)
    t.equal(await rejectionOf(incoming.answer()), code)
    for (const stop of stops) stop()
    const ended = incoming.once('ended')
    await call.end()
    await ended
  }
})

t.test('a key that another epoch, set or call has had is refused', async t => {
  const [ann, bob] = house.people as Two
  const [call, bobs] = (await callOf(ann, bob)) as [Call, Call]
  const { callId, keys, fingerprint } = call
  const key = keys[0]!.key.slice()
  const insider = await house.insider(0)
  const { keyLog, session } = insider
  const to = await keyLog.deviceOf(bob.me.userId!, bob.me.deviceId!)
  const sealed = async (binding: { callId: string; epoch: number }) => {
    const { encryptedAESKey, keyMembers } = await forge(insider, to, [keyLog.self, to], binding, key)
    return { encryptedAESKeys: { [to.name]: encryptedAESKey }, keyMembers }
  }
  const refused = failure(bobs, 'CALL_KEY_REUSED')
  const body = { epoch: 2, reason: 'rotation', ...(await sealed({ callId, epoch: 2 })) } as const
  await session.request('POST call/{callId}/keys', body, { callId })
  await refused
  t.equal(bobs.fingerprint, fingerprint)
  const ended = bobs.once('ended')
  await call.end()
  await ended

  const refusedRinging = refusedRing(bob)
  const next = '6117204471893025'
  await session.request('POST call/start', {
    callId: next,
    calleeIds: [bob.me.userId!],
    ...(await sealed({ callId: next, epoch: 1 })),
    isVideo: false,
  })
  const { incoming, error } = await refusedRinging
  t.equal(incoming.callId, next)
  t.match(error, { code: 'CALL_KEY_REUSED' })
  t.equal(incoming.isVerified, false)
})

/** Whole apps of `callsign/app` with the real server: people sign in, become contacts and call each other. */

import t from 'tap'
import { type AppPerson, newFriends } from '../support/whole-apps.ts'

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
  t.match(incoming.fingerprint, /^\d{5}( \d{5}){3}$/)
  t.equal(incoming.fingerprint, call.fingerprint)
  const ended = incoming.once('ended')
  await call.end()
  t.same(await ended, { reason: 'hangup' })
  t.same([call.ending, incoming.ending], ['hangup', 'hangup'])
  t.same([call.keys, incoming.keys], [[], []])
  t.same([ann.me.calls, bob.me.calls], [[], []])
})

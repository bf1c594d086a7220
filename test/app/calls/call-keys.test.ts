/** The octets of keys, and what each key was for. */

import t from 'tap'
import { CallKeys } from '../../../src/app/calls/call-keys.ts'
import { keyHolder, makeCallKey } from '../../../src/app/devices/call-key.ts'
import { keyMembersOf } from '../../../src/app/devices/key-members.ts'
import { newPublicKey } from '../../support/app.ts'

const BINDING = { callId: '6117204471893025', epoch: 3 }
const [one, other] = ['1', '2'].map(userId => keyHolder(userId, '10', newPublicKey('P-256 X9.63')))
const SET = keyMembersOf([one!, other!])

t.test('a key serves one call, one epoch and one set of devices', async t => {
  const octets = makeCallKey()
  const uses: Readonly<Record<string, readonly [typeof BINDING, string]>> = {
    'another epoch': [{ ...BINDING, epoch: 4 }, SET],
    'another call': [{ ...BINDING, callId: '7' }, SET],
    'another set': [BINDING, keyMembersOf([one!])],
  }
  const keys = new CallKeys()
  t.equal(keys.put(1, octets, BINDING, SET), 1)
  for (const [what, [binding, set]] of Object.entries(uses)) {
    t.throws(() => keys.put(2, octets.slice(), binding, set), { code: 'CALL_KEY_REUSED' }, what)
    t.throws(
      () => keys.bind(octets, binding, set),
      { code: 'CALL_KEY_REUSED' },
      `${what}, for a key of its own`,
    )
  }
  t.equal(keys.put(2, octets.slice(), BINDING, SET), 1, 'the same use again is the same key')
  t.equal(keys.put(3, makeCallKey(), { ...BINDING, epoch: 4 }, SET), 3, 'another key is for another epoch')
})

t.test('a key that was wiped is remembered', async t => {
  const octets = makeCallKey()
  const keys = new CallKeys()
  keys.put(1, octets.slice(), BINDING, SET)
  const { key } = keys.epochKey(BINDING.callId, { ...HELD, key: 1 })
  keys.wipe(1)
  t.same(key, new Uint8Array(32), 'its octets are gone, also for who holds them')
  t.throws(() => keys.put(2, octets, { ...BINDING, epoch: 4 }, SET), { code: 'CALL_KEY_REUSED' })
  t.equal(keys.put(3, octets, BINDING, SET), 3, 'it may come once more for what it was')
})

const HELD = { epoch: BINDING.epoch, fromUserId: '1', keyMembers: SET, members: ['1_10', '2_10'] }

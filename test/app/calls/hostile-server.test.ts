/**
 * Attacks of an operator, alone or with a member of the call, on the key that a device holds. What the device decides by itself
 * stands with the stories of `test/vectors/device-calls.jsonl`.
 */

import t from 'tap'
import {
  type KeyBinding,
  keyHolder,
  makeCallKey,
  type OwnKeyHolder,
  openCallKey,
  sealCallKey,
} from '../../../src/app/devices/call-key.ts'
import { webCryptoKeys } from '../../../src/app/devices/device-keys.ts'
import { memoryStorage } from '../../../src/app/storage/storage.ts'
import { rejectionOf } from '../../support/app-sessions.ts'

async function deviceNamed(userId: string, deviceId: string): Promise<OwnKeyHolder> {
  const keys = await webCryptoKeys(memoryStorage())(userId)
  return { ...keyHolder(userId, deviceId, keys.publicKey), keys }
}

t.test(
  'a key opens for its call and epoch as they are written, not for what has the same octets',
  async t => {
    const [ann, bob] = [await deviceNamed('1', '11'), await deviceNamed('2', '22')]
    const binding = { callId: '6117204471893025', epoch: 3 }
    const text = await sealCallKey(makeCallKey(), ann, bob, binding)
    t.equal((await openCallKey(text, ann, bob, binding)).length, 32)

    // A device remembers the calls that ended, and the epochs of those that go on, by these.
    const spellings = ['0', ' ', '+', '0x'].map(before => before + binding.callId)
    for (const callId of [...spellings, `${binding.callId} `, '0x15BB9C9BF8C021', ''])
      t.equal(
        await rejectionOf(openCallKey(text, ann, bob, { ...binding, callId })),
        'CALL_KEY_INVALID',
        callId,
      )
    // Four octets hold the rest of a number alone, and no fraction.
    for (const epoch of [2 ** 32 + 3, 3.5, '3', [3], 65_536, 0, -1, Number.NaN, null])
      t.equal(
        await rejectionOf(openCallKey(text, ann, bob, { ...binding, epoch } as KeyBinding)),
        'CALL_KEY_INVALID',
        `epoch ${epoch}`,
      )
    for (const epoch of [65_536, 0, 1.5])
      await t.rejects(sealCallKey(makeCallKey(), ann, bob, { ...binding, epoch }), RangeError)
  },
)

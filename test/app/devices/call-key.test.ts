/** Call keys of the SDK against the code and the values of docs/crypto.md, in both directions. */

import { createECDH } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  fingerprintOf,
  keyHolder,
  makeCallKey,
  type OwnKeyHolder,
  openCallKey,
  sealCallKey,
} from '../../../src/app/devices/call-key.ts'
import { webCryptoKeys } from '../../../src/app/devices/device-keys.ts'
import { memoryStorage } from '../../../src/app/storage/storage.ts'
import { readCallKey } from '../../../src/client/client.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { fromHex, toHex } from '../../support/bytes.ts'
import * as printed from '../../support/call-key.ts'
import { PROJECT_ROOT, readVectors } from '../../support/vectors.ts'

const page = readFileSync(join(PROJECT_ROOT, 'docs/crypto.md'), 'utf8')
const valueIn = (row: string) => new RegExp(`^\\| ${row}.*\`([^\`]+)\` \\|$`, 'm').exec(page)![1]!

async function deviceNamed(userId: string, deviceId: string): Promise<OwnKeyHolder> {
  const keys = await webCryptoKeys(memoryStorage())(userId)
  return { ...keyHolder(userId, deviceId, keys.publicKey), keys }
}

/** A device whose private key is this scalar in hexadecimal, for the SDK and for the code of the page. */
async function deviceOf(name: string, scalar: string): Promise<OwnKeyHolder & printed.OwnDevice> {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(scalar, 'hex')
  const point = new Uint8Array(pair.getPublicKey())
  const [d, x, y] = [fromHex(scalar), point.subarray(1, 33), point.subarray(33)].map(part =>
    Buffer.from(part).toString('base64url'),
  ) as [string, string, string]
  const ecdh = { name: 'ECDH', namedCurve: 'P-256' }
  const jwk = { kty: 'EC', crv: 'P-256', d, x, y }
  const privateKey = await crypto.subtle.importKey('jwk', jwk, ecdh, false, ['deriveBits'])
  const agree = async (other: Uint8Array) => new Uint8Array(pair.computeSecret(other))
  return { name, point, privateKey, keys: { agree } }
}

const documented = async () => ({
  ann: await deviceOf('1_11', valueIn('sender \\| `1_11`')),
  bob: await deviceOf('2_22', valueIn('receiver \\| `2_22`')),
})

t.test('the values of docs/crypto.md', async t => {
  const { ann, bob } = await documented()
  const callKey = await openCallKey(valueIn('sealed'), ann, bob)
  t.equal(toHex(callKey), valueIn('call key'))
  t.equal(fingerprintOf(callKey, '6117204471893025', 1), valueIn('fingerprint'))
})

t.test('the code of docs/crypto.md opens what the SDK has sealed, and the other way round', async t => {
  const { ann, bob } = await documented()
  const callKey = makeCallKey()
  t.equal(callKey.length, 32)
  t.same(await printed.openCallKey(await sealCallKey(callKey, ann, bob), ann, bob), callKey)
  t.same(await openCallKey(await printed.sealCallKey(callKey, ann, bob), ann, bob), callKey)
  t.equal(fingerprintOf(callKey, '7', 2), await printed.fingerprintOf(callKey, '7', 2))

  const vector = readVectors<Record<string, string>>('call-key-checkpoint')
  const sealed = await sealCallKey(fromHex(vector.opened_hex!), ann, bob)
  t.equal(Buffer.from(sealed, 'base64').length, 222)
  const opened = readCallKey(await openCallKey(sealed, ann, bob), vector.note!.split('\n')[0]!)
  t.same(opened, { callKey: fromHex(vector.call_key_hex!), note: vector.note })
  const byKotlin = await openCallKey(vector.sealed_base64!, ann, bob)
  t.equal(toHex(byKotlin), vector.opened_hex, 'as the Kotlin package sealed it')
})

t.test('a key is opened by the device it was sealed for, as coming from the one that sealed it', async t => {
  const [ann, bob, eve] = [
    await deviceNamed('1', '1'),
    await deviceNamed('2', '2'),
    await deviceNamed('3', '3'),
  ]
  const callKey = makeCallKey()
  const sealed = await sealCallKey(callKey, ann, bob)
  t.same(await openCallKey(sealed, ann, bob), callKey)
  t.not(await sealCallKey(callKey, ann, bob), sealed, 'another time it looks different')
  const changed = Buffer.from(sealed, 'base64')
  changed[100]! ^= 1
  for (const [what, opening] of Object.entries({
    'from another device': () => openCallKey(sealed, eve, bob),
    'for another device': () => openCallKey(sealed, ann, eve),
    'for another name': () => openCallKey(sealed, ann, { ...bob, name: '2_3' }),
    'from another name': () => openCallKey(sealed, { ...ann, name: '1_2' }, bob),
    'changed on the way': () => openCallKey(changed.toString('base64'), ann, bob),
    'cut off': () => openCallKey(sealed.slice(0, 60), ann, bob),
    'no base64': () => openCallKey('?', ann, bob),
  }))
    t.equal(await rejectionOf(opening()), 'CALL_KEY_INVALID', what)
})

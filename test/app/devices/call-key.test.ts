/** Call keys of the SDK against the code and the values of docs/crypto.md and against `@hpke/core`, in both directions. */

import { createECDH } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core'
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
  const [userId, deviceId] = name.split('_') as [string, string]
  return {
    ...keyHolder(userId, deviceId, Buffer.from(point).toString('base64')),
    privateKey,
    keys: { agree },
  }
}

const BINDING = { callId: '6117204471893025', epoch: 1 }

const documented = async () => ({
  ann: await deviceOf('1_11', valueIn('sender \\| `1_11`')),
  bob: await deviceOf('2_22', valueIn('receiver \\| `2_22`')),
})

t.test('the values of docs/crypto.md', async t => {
  const { ann, bob } = await documented()
  const callKey = await openCallKey(valueIn('sealed'), ann, bob, BINDING)
  t.equal(toHex(callKey), valueIn('call key'))
  t.equal(fingerprintOf(callKey, new Uint8Array(32), BINDING), valueIn('fingerprint'))
})

t.test('the code of docs/crypto.md opens what the SDK has sealed, and the other way round', async t => {
  const { ann, bob } = await documented()
  const callKey = makeCallKey()
  t.equal(callKey.length, 32)
  t.same(await printed.openCallKey(await sealCallKey(callKey, ann, bob, BINDING), ann, bob, BINDING), callKey)
  t.same(await openCallKey(await printed.sealCallKey(callKey, ann, bob, BINDING), ann, bob, BINDING), callKey)
  t.equal(
    fingerprintOf(callKey, new Uint8Array(32), { callId: '7', epoch: 2 }),
    await printed.fingerprintOf(callKey, '7', 2),
  )

  const vector = readVectors<Record<string, string>>('call-key-checkpoint')
  const sealed = await sealCallKey(fromHex(vector.opened_hex!), ann, bob, BINDING)
  t.equal(Buffer.from(sealed, 'base64').length, 223)
  const opened = readCallKey(await openCallKey(sealed, ann, bob, BINDING), vector.note!.split('\n')[0]!)
  t.same(opened, { callKey: fromHex(vector.call_key_hex!), note: vector.note })
  const byKotlin = await openCallKey(vector.sealed_base64!, ann, bob, BINDING)
  t.equal(toHex(byKotlin), vector.opened_hex, 'as the Kotlin package sealed it')
})

t.test('a stranger’s HPKE opens what the SDK has sealed, and the other way round', async t => {
  const { ann, bob } = await documented()
  const suite = new CipherSuite({
    kem: new DhkemP256HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: new Aes256Gcm(),
  })
  const privateKey = (row: string) => suite.kem.importKey('raw', fromHex(valueIn(row)).buffer, false)
  const publicKey = ({ point }: OwnKeyHolder) =>
    suite.kem.importKey('raw', Uint8Array.from(point).buffer, true)
  const ids = Buffer.alloc(44)
  ids.writeBigUInt64BE(BigInt(BINDING.callId))
  ids.writeUInt32BE(BINDING.epoch, 8)
  for (const [at, id] of [1n, 11n, 2n, 22n].entries()) ids.writeBigUInt64BE(id, 12 + 8 * at)
  const info = Uint8Array.from(Buffer.concat([Buffer.from('callsign call key v2\n'), ids]))
  t.equal(toHex(info), valueIn('`info`'))

  const ours = Uint8Array.from(
    Buffer.from(await sealCallKey(fromHex(valueIn('call key')), ann, bob, BINDING), 'base64'),
  )
  const recipient = await suite.createRecipientContext({
    recipientKey: await privateKey('receiver \\| `2_22`'),
    senderPublicKey: await publicKey(ann),
    enc: ours.slice(1, 66),
    info,
  })
  t.equal(ours[0], 2)
  t.equal(toHex(new Uint8Array(await recipient.open(ours.slice(66)))), valueIn('call key'))

  const sender = await suite.createSenderContext({
    recipientPublicKey: await publicKey(bob),
    senderKey: await privateKey('sender \\| `1_11`'),
    info,
  })
  const sealed = await sender.seal(fromHex(valueIn('call key')))
  const theirs = Buffer.concat([Buffer.of(2), Buffer.from(sender.enc), Buffer.from(sealed)])
  t.equal(toHex(await openCallKey(theirs.toString('base64'), ann, bob, BINDING)), valueIn('call key'))
})

t.test('a key is opened by the device it was sealed for, as coming from the one that sealed it', async t => {
  const [ann, bob, eve] = [
    await deviceNamed('1', '1'),
    await deviceNamed('2', '2'),
    await deviceNamed('3', '3'),
  ]
  const callKey = makeCallKey()
  const sealed = await sealCallKey(callKey, ann, bob, BINDING)
  const octets = Buffer.from(sealed, 'base64')
  t.equal(octets.length, 114)
  t.same(await openCallKey(sealed, ann, bob, BINDING), callKey)
  t.not(await sealCallKey(callKey, ann, bob, BINDING), sealed, 'another time it looks different')
  const withEnc = (enc: Uint8Array) =>
    Buffer.concat([octets.subarray(0, 1), enc, octets.subarray(66)]).toString('base64')
  const off = Uint8Array.from(octets.subarray(1, 66))
  off[64]! ^= 1
  for (const [what, opening] of Object.entries({
    'for another call': () => openCallKey(sealed, ann, bob, { ...BINDING, callId: '7' }),
    'for another epoch': () => openCallKey(sealed, ann, bob, { ...BINDING, epoch: 2 }),
    'from another device': () => openCallKey(sealed, eve, bob, BINDING),
    'for another device': () => openCallKey(sealed, ann, eve, BINDING),
    'for another user': () => openCallKey(sealed, ann, { ...bob, userId: '3' }, BINDING),
    'for another device’s name': () => openCallKey(sealed, ann, { ...bob, deviceId: '3' }, BINDING),
    'from another user': () => openCallKey(sealed, { ...ann, userId: '2' }, bob, BINDING),
    'from another device’s name': () => openCallKey(sealed, { ...ann, deviceId: '2' }, bob, BINDING),
    'to its own sender': () => openCallKey(sealed, ann, ann, BINDING),
    'by a name that is no uint64': () =>
      openCallKey(sealed, { ...ann, userId: `${2n ** 64n + 1n}` }, bob, BINDING),
    'of form 1': () =>
      openCallKey(Buffer.concat([Buffer.of(1), octets.subarray(1)]).toString('base64'), ann, bob, BINDING),
    'of form 1, which had no number': () =>
      openCallKey(octets.subarray(1).toString('base64'), ann, bob, BINDING),
    'by a point off the curve': () => openCallKey(withEnc(off), ann, bob, BINDING),
    'by zeros for a point': () => openCallKey(withEnc(new Uint8Array(65)), ann, bob, BINDING),
    'by infinity for a point': () => openCallKey(withEnc(Uint8Array.of(0)), ann, bob, BINDING),
    'from a sender off the curve': () => openCallKey(sealed, { ...ann, point: off }, bob, BINDING),
    'a byte longer': () =>
      openCallKey(Buffer.concat([octets, Buffer.of(0)]).toString('base64'), ann, bob, BINDING),
    'no base64': () => openCallKey('?', ann, bob, BINDING),
    'a base64 of two spellings': () => openCallKey(`${sealed} `, ann, bob, BINDING),
  }))
    t.equal(await rejectionOf(opening()), 'CALL_KEY_INVALID', what)

  const codes = new Set<string | undefined>()
  for (let bit = 0; bit < 8 * octets.length; bit++) {
    const changed = Buffer.from(octets)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    codes.add(await rejectionOf(openCallKey(changed.toString('base64'), ann, bob, BINDING)))
  }
  for (let length = 0; length < octets.length; length++)
    codes.add(
      await rejectionOf(openCallKey(octets.subarray(0, length).toString('base64'), ann, bob, BINDING)),
    )
  t.same([...codes], ['CALL_KEY_INVALID'], 'each bit, each length')
})

t.test('no own key meets a receiver’s point that is not on the curve', async t => {
  const { ann, bob } = await documented()
  const agree = () => t.fail('the key was used') as never
  const off = Uint8Array.from(bob.point)
  off[64]! ^= 1
  for (const point of [off, new Uint8Array(65), Uint8Array.of(0), new Uint8Array(), bob.point.slice(0, 64)]) {
    const sealing = sealCallKey(makeCallKey(), { ...ann, keys: { agree } }, { ...bob, point }, BINDING)
    t.equal(await rejectionOf(sealing), 'KEY_UNSUPPORTED', toHex(point))
  }
  const failing = { agree: async () => Promise.reject(new Error('the phone is locked')) }
  await t.rejects(sealCallKey(makeCallKey(), { ...ann, keys: failing }, bob, BINDING), {
    message: 'the phone is locked',
  })
})

/** Call keys for RSA-2048 devices: sealed by the SDK, opened with node:crypto alone, and the vector that each language opens. */

import { createPrivateKey, createPublicKey } from 'node:crypto'
import t from 'tap'
import {
  keyHolder,
  makeCallKey,
  type OwnKeyHolder,
  openCallKey,
  sealCallKey,
} from '../../../src/app/devices/call-key.ts'
import { webCryptoKeys } from '../../../src/app/devices/device-keys.ts'
import { readRsaKey } from '../../../src/app/devices/rsa-seal.ts'
import { memoryStorage } from '../../../src/app/storage/storage.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { fromHex, toBase64, toHex } from '../../support/bytes.ts'
import { newRsaDevice, openForRsa, type RsaDevice, rsaInfo, rsaKeys } from '../../support/rsa-device.ts'
import { readVectors } from '../../support/vectors.ts'

const BINDING = { callId: '6117204471893025', epoch: 1 }

async function newSender(): Promise<OwnKeyHolder> {
  const keys = await webCryptoKeys(memoryStorage())('1')
  return { ...keyHolder('1', '11', keys.publicKey), keys }
}

const holderOf = ({ publicKey }: RsaDevice) => keyHolder('2', '22', toBase64(publicKey))

const useBy = ({ keys, ...from }: OwnKeyHolder, epoch = BINDING.epoch) => ({
  info: rsaInfo(BINDING.callId, epoch, from, { userId: '2', deviceId: '22' }),
  signingKey: Buffer.from(keys.signingKey, 'base64'),
})

t.test('an RSA device opens texts sealed for it, in either encoding of its key', async t => {
  const ann = await newSender()
  for (const encoding of ['spki', 'pkcs1'] as const) {
    const device = newRsaDevice(encoding)
    const content = new Uint8Array(180).fill(7)
    const text = await sealCallKey(content, ann, holderOf(device), BINDING)
    t.equal(Buffer.from(text, 'base64').length, 1 + 256 + 180 + 16 + 64)
    t.same(openForRsa(text, device, useBy(ann)), Buffer.from(content), encoding)
  }
})

t.test('it opens at no other device, for no other use, and with no bit changed', async t => {
  const [ann, eve, device] = [await newSender(), await newSender(), newRsaDevice()]
  const text = await sealCallKey(makeCallKey(), ann, holderOf(device), BINDING)
  t.throws(() => openForRsa(text, device, useBy(ann, 2)), 'another epoch')
  t.throws(() => openForRsa(text, device, useBy(eve)), 'another sender')
  t.throws(() => openForRsa(text, newRsaDevice(), useBy(ann)), 'another device')
  const otherEncoding = createPublicKey(device.privateKey).export({ type: 'pkcs1', format: 'der' })
  t.throws(
    () => openForRsa(text, { ...device, publicKey: otherEncoding }, useBy(ann)),
    'a key logged otherwise',
  )
  const octets = Buffer.from(text, 'base64')
  for (const at of [0, 1, 256, 257, octets.length - 81, octets.length - 65, octets.length - 1]) {
    const changed = Buffer.from(octets)
    changed[at]! ^= 1
    t.throws(() => openForRsa(changed.toString('base64'), device, useBy(ann)), `octet ${at}`)
  }
})

t.test('signatures have the lower s, whatever the key’s keeper gives', async t => {
  const [ann, device] = [await newSender(), newRsaDevice()]
  for (let left = 16; left > 0; left--)
    t.ok(openForRsa(await sealCallKey(makeCallKey(), ann, holderOf(device), BINDING), device, useBy(ann)))
})

t.test('a device of P-256 refuses the form, and an RSA device seals nothing', async t => {
  const [ann, bob, device] = [await newSender(), await newSender(), newRsaDevice()]
  const text = await sealCallKey(makeCallKey(), ann, holderOf(device), BINDING)
  t.equal(await rejectionOf(openCallKey(text, ann, bob, BINDING)), 'CALL_KEY_INVALID')
  const own = { ...holderOf(device), keys: await rsaKeys(device) }
  for (const to of [ann, holderOf(newRsaDevice())])
    t.equal(await rejectionOf(sealCallKey(makeCallKey(), own, to, BINDING)), 'KEY_UNSUPPORTED')
})

t.test('a key that is nearly one of RSA-2048 is none', t => {
  const { publicKey } = newRsaDevice()
  const spkiOf = (octets: Uint8Array) => readRsaKey(octets)?.spki.length
  t.same([spkiOf(publicKey), spkiOf(publicKey.slice(24))], [294, 294])
  const exponent3 = Uint8Array.from(publicKey)
  exponent3[exponent3.length - 1] = 3
  for (const octets of [
    exponent3,
    publicKey.slice(1),
    publicKey.slice(0, -1),
    new Uint8Array(270),
    publicKey.slice(-5),
  ])
    t.equal(spkiOf(octets), undefined)
  t.equal(spkiOf(new Uint8Array()), undefined)
  t.end()
})

interface Vector {
  readonly call_id: string
  readonly epoch: number
  readonly sender: string
  readonly receiver: string
  readonly signing_key_base64: string
  readonly public_key_base64: string
  readonly private_key_pkcs8_base64: string
  readonly info_hex: string
  readonly opened_hex: string
  readonly sealed_base64: string
}

t.test('the vector opens', async t => {
  const vector = readVectors<Vector>('call-key-rsa')
  const [from, to] = [vector.sender, vector.receiver].map(name => {
    const [userId, deviceId] = name.split('_') as [string, string]
    return { userId, deviceId }
  })
  t.equal(toHex(rsaInfo(vector.call_id, vector.epoch, from!, to!)), vector.info_hex)
  const der = Buffer.from(vector.private_key_pkcs8_base64, 'base64')
  const privateKey = createPrivateKey({ key: der, type: 'pkcs8', format: 'der' })
  const device = { privateKey, publicKey: Buffer.from(vector.public_key_base64, 'base64') }
  const signingKey = Buffer.from(vector.signing_key_base64, 'base64')
  const opened = openForRsa(vector.sealed_base64, device, { info: fromHex(vector.info_hex), signingKey })
  t.equal(toHex(opened), vector.opened_hex)
})

/** Call keys of the SDK against the code and the values of docs/check/crypto.md and against `@hpke/core`, in both directions. */

import { createECDH, createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core'
import t from 'tap'
import {
  fingerprintOf,
  type KeyHolder,
  keyHolder,
  makeCallKey,
  type OwnKeyHolder,
  openCallKey,
  sealCallKey,
} from '../../../src/app/devices/call-key.ts'
import { webCryptoKeys } from '../../../src/app/devices/device-keys.ts'
import { hashOfSet, keyMembersOf, readKeyMembers } from '../../../src/app/devices/key-members.ts'
import { memoryStorage } from '../../../src/app/storage/storage.ts'
import { packCallKey, readCallKey } from '../../../src/client/client.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { fromHex, toBase64, toHex } from '../../support/bytes.ts'
import * as printed from '../../support/call-key.ts'
import { PROJECT_ROOT, readVectors } from '../../support/vectors.ts'

const page = readFileSync(join(PROJECT_ROOT, 'docs/check/crypto.md'), 'utf8')
const valueIn = (row: string) => new RegExp(`^\\| ${row}.*\`([^\`]+)\` \\|$`, 'm').exec(page)![1]!

async function deviceNamed(userId: string, deviceId: string): Promise<OwnKeyHolder> {
  const keys = await webCryptoKeys(memoryStorage())(userId)
  return { ...keyHolder(userId, deviceId, keys.publicKey), keys }
}

/** A device with this scalar, in hexadecimal, as its private key: for the SDK and for the page's code. */
async function deviceOf(name: string, scalar: string): Promise<OwnKeyHolder & printed.OwnDevice> {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(scalar, 'hex')
  const publicKey = new Uint8Array(pair.getPublicKey())
  const [d, x, y] = [fromHex(scalar), publicKey.subarray(1, 33), publicKey.subarray(33)].map(part =>
    Buffer.from(part).toString('base64url'),
  ) as [string, string, string]
  const ecdh = { name: 'ECDH', namedCurve: 'P-256' }
  const jwk = { kty: 'EC', crv: 'P-256', d, x, y }
  const privateKey = await crypto.subtle.importKey('jwk', jwk, ecdh, false, ['deriveBits'])
  const agree = async (other: Uint8Array) => new Uint8Array(pair.computeSecret(other))
  const [userId, deviceId] = name.split('_') as [string, string]
  const holder = keyHolder(userId, deviceId, toBase64(publicKey))
  const { signingKey, sign } = await webCryptoKeys(memoryStorage())(userId)
  return { ...holder, publicKey, privateKey, keys: { agree, signingKey, sign } }
}

/** The same device under a point that may be none. */
const withPoint = (holder: KeyHolder, point: Uint8Array): KeyHolder => ({
  ...holder,
  key: { kind: 'P-256', point: Uint8Array.from(point) },
})

const BINDING = { callId: '6117204471893025', epoch: 1 }

const NONCE = Uint8Array.from({ length: 16 }, (_, at) => at + 1)

const documented = async () => ({
  ann: await deviceOf('1_11', valueIn('sender \\| `1_11`')),
  bob: await deviceOf('2_22', valueIn('receiver \\| `2_22`')),
})

/** A new key for these devices, and the content to seal. */
function contentFor(...holders: readonly KeyHolder[]) {
  const key = { callKey: makeCallKey(), setHash: hashOfSet(keyMembersOf(holders)), sealedAtMs: Date.now() }
  return { key, content: packCallKey(key) }
}

t.test('the values of docs/check/crypto.md', async t => {
  const { ann, bob } = await documented()
  for (const { publicKey } of [ann, bob]) t.match(page, `\`${toBase64(publicKey)}\``)
  t.equal(keyMembersOf([ann, bob]), valueIn('set'))
  t.equal(toHex(hashOfSet(valueIn('set'))), valueIn('its hash'))
  const opened = await openCallKey(valueIn('sealed'), ann, bob, BINDING)
  t.equal(toHex(opened), valueIn('`pt`'))
  const { callKey, setHash, ...rest } = readCallKey(opened, '')
  t.same([toHex(callKey), toHex(setHash)], [valueIn('call key'), valueIn('its hash')])
  t.same(rest, { sealedAtMs: Number(valueIn('time')) })
  t.equal(fingerprintOf(callKey, setHash, BINDING), valueIn('digits'))
})

t.test('the digits are the thirty of 5,200 hashes, over call, epoch, set and key', async t => {
  const [callKey, setHash] = [makeCallKey(), makeCallKey()]
  const numbers = Buffer.alloc(12)
  numbers.writeBigUInt64BE(BigInt(BINDING.callId))
  numbers.writeUInt32BE(BINDING.epoch, 8)
  let digest = Buffer.concat([Buffer.from('callsign call fingerprint v2\n'), numbers, setHash, callKey])
  for (let times = 0; times < 5_200; times++) digest = createHash('sha512').update(digest).digest()
  const groups = Array.from({ length: 6 }, (_, at) => digest.readUIntBE(5 * at, 5) % 100_000)
  const digits = groups.map(group => `${group}`.padStart(5, '0')).join(' ')
  t.equal(fingerprintOf(callKey, setHash, BINDING), digits)
  t.equal(await printed.fingerprintOf({ callKey: Uint8Array.from(callKey), setHash }, BINDING), digits)
  const others = [
    fingerprintOf(makeCallKey(), setHash, BINDING),
    fingerprintOf(callKey, makeCallKey(), BINDING),
    fingerprintOf(callKey, setHash, { ...BINDING, callId: '7' }),
    fingerprintOf(callKey, setHash, { ...BINDING, epoch: 2 }),
  ]
  t.equal(new Set([digits, ...others]).size, 5)
})

t.test('the code of docs/check/crypto.md makes the sets that the SDK makes', async t => {
  const { ann, bob } = await documented()
  const other = await deviceOf(`9_${2n ** 64n - 1n}`, toHex(makeCallKey()))
  const another = await deviceOf('10_1', toHex(makeCallKey()))
  for (const holders of [[bob, ann], [another, other, bob, ann], [ann]]) {
    const keyMembers = keyMembersOf(holders)
    t.equal(await printed.keyMembersOf(holders), keyMembers)
    t.same(await printed.hashOfSet(keyMembers), hashOfSet(keyMembers))
    t.same(
      printed.namesIn(keyMembers),
      readKeyMembers(keyMembers).map(({ name }) => name),
    )
  }
  await t.rejects(printed.keyMembersOf([ann, ann]), 'a device comes once')
  for (const set of ['', 'AAE=', valueIn('set').slice(0, 40)]) t.throws(() => printed.namesIn(set), set)
})

t.test('the code of docs/check/crypto.md opens what the SDK has sealed, and the other way round', async t => {
  const { ann, bob } = await documented()
  const { key, content } = contentFor(ann, bob)
  t.equal(key.callKey.length, 32)
  for (const binding of [BINDING, { ...BINDING, nonce: NONCE }]) {
    const ours = await sealCallKey(content, ann, bob, binding)
    t.same(await printed.openCallKey(ours, ann, bob, binding), key)
    const theirs = await printed.sealCallKey(key, ann, bob, binding)
    t.equal(Buffer.from(theirs, 'base64').length, 154)
    t.match(readCallKey(await openCallKey(theirs, ann, bob, binding), ''), {
      callKey: key.callKey,
      setHash: key.setHash,
    })
  }
})

t.test('the code of docs/check/crypto.md refuses what the SDK refuses', async t => {
  const { ann, bob } = await documented()
  const eve = await deviceOf('3_33', toHex(makeCallKey()))
  const { key, content } = contentFor(ann, bob)
  const sealed = await printed.sealCallKey(key, ann, bob, BINDING)
  t.not(await printed.sealCallKey(key, ann, bob, BINDING), sealed, 'another time it looks different')
  const octets = Buffer.from(sealed, 'base64')
  const changed = (at: number, to: number) =>
    toBase64(Uint8Array.from(octets, (octet, index) => (index === at ? to : octet)))
  const { openCallKey: open } = printed
  for (const [what, opening] of Object.entries<() => Promise<unknown>>({
    'for another call': () => open(sealed, ann, bob, { ...BINDING, callId: '7' }),
    'for another epoch': () => open(sealed, ann, bob, { ...BINDING, epoch: 2 }),
    'as an answer': () => open(sealed, ann, bob, { ...BINDING, nonce: NONCE }),
    'from another device': () => open(sealed, eve, bob, BINDING),
    'for another device': () => open(sealed, ann, eve, BINDING),
    'for another device’s name': () => open(sealed, ann, { ...bob, name: '2_3' }, BINDING),
    'by another name': () => open(sealed, { ...ann, name: '1_2' }, bob, BINDING),
    'changed on the way': () => open(changed(100, octets[100]! ^ 1), ann, bob, BINDING),
    'of form 1': () => open(changed(0, 1), ann, bob, BINDING),
    'by a point off the curve': () => open(changed(65, octets[65]! ^ 1), ann, bob, BINDING),
    'by a hybrid point': () => open(changed(1, 6 + (octets[65]! & 1)), ann, bob, BINDING),
    'cut off': () => open(octets.subarray(0, 60).toString('base64'), ann, bob, BINDING),
    'of a key alone': async () => open(await sealCallKey(key.callKey, ann, bob, BINDING), ann, bob, BINDING),
    'of an octet more': async () =>
      open(await sealCallKey(Uint8Array.of(...content, 0), ann, bob, BINDING), ann, bob, BINDING),
    'for zeros': () => printed.sealCallKey(key, ann, { ...bob, publicKey: new Uint8Array(65) }, BINDING),
  }))
    await t.rejects(opening(), what)
})

t.test('a checkpoint goes with a key, and both programs read past it', async t => {
  const { ann, bob } = await documented()
  const vector = readVectors<Record<string, string>>('call-key-checkpoint')
  const key = {
    callKey: fromHex(vector.call_key_hex!),
    setHash: fromHex(vector.set_hash_hex!),
    sealedAtMs: Number(vector.sealed_at_ms),
  }
  const sealed = await sealCallKey(fromHex(vector.opened_hex!), ann, bob, BINDING)
  t.equal(Buffer.from(sealed, 'base64').length, 262)
  const opened = readCallKey(await openCallKey(sealed, ann, bob, BINDING), vector.note!.split('\n')[0]!)
  t.same(opened, { ...key, note: vector.note })
  t.same(await printed.openCallKey(sealed, ann, bob, BINDING), key)
})

t.test('the SDK opens what the Kotlin package has sealed', async t => {
  const { ann, bob } = await documented()
  const vector = readVectors<Record<string, string>>('call-key-checkpoint')
  const byKotlin = await openCallKey(vector.sealed_base64!, ann, bob, BINDING)
  t.equal(toHex(byKotlin), vector.opened_hex)
})

t.test('a stranger’s HPKE opens what the SDK has sealed, and the other way round', async t => {
  const { ann, bob } = await documented()
  const suite = new CipherSuite({
    kem: new DhkemP256HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: new Aes256Gcm(),
  })
  const privateKey = (row: string) => suite.kem.importKey('raw', fromHex(valueIn(row)).buffer, false)
  const publicKey = (point: Uint8Array) => suite.kem.importKey('raw', Uint8Array.from(point).buffer, true)
  const infoWith = (nonce: Uint8Array) => {
    const numbers = Buffer.alloc(44)
    numbers.writeBigUInt64BE(BigInt(BINDING.callId))
    numbers.writeUInt32BE(BINDING.epoch, 8)
    for (const [at, id] of [1n, 11n, 2n, 22n].entries()) numbers.writeBigUInt64BE(id, 12 + 8 * at)
    return Uint8Array.from(Buffer.concat([Buffer.from('callsign call key v2\n'), numbers, nonce]))
  }
  t.equal(toHex(infoWith(new Uint8Array(16))), valueIn('`info`'))

  const pt = fromHex(valueIn('`pt`'))
  for (const [binding, info] of [
    [BINDING, infoWith(new Uint8Array(16))],
    [{ ...BINDING, nonce: NONCE }, infoWith(NONCE)],
  ] as const) {
    const ours = Uint8Array.from(Buffer.from(await sealCallKey(pt, ann, bob, binding), 'base64'))
    const recipient = await suite.createRecipientContext({
      recipientKey: await privateKey('receiver \\| `2_22`'),
      senderPublicKey: await publicKey(ann.publicKey),
      enc: ours.slice(1, 66),
      info,
    })
    t.equal(ours[0], 2)
    t.equal(toHex(new Uint8Array(await recipient.open(ours.slice(66)))), valueIn('`pt`'))

    const sender = await suite.createSenderContext({
      recipientPublicKey: await publicKey(bob.publicKey),
      senderKey: await privateKey('sender \\| `1_11`'),
      info,
    })
    const theirs = Buffer.concat([
      Buffer.of(2),
      Buffer.from(sender.enc),
      Buffer.from(await sender.seal(Uint8Array.from(pt).buffer)),
    ])
    t.equal(toHex(await openCallKey(theirs.toString('base64'), ann, bob, binding)), valueIn('`pt`'))
  }
})

t.test('a key is opened by the device it was sealed for, as coming from the one that sealed it', async t => {
  const [ann, bob, eve] = [
    await deviceNamed('1', '1'),
    await deviceNamed('2', '2'),
    await deviceNamed('3', '3'),
  ]
  const { content } = contentFor(ann, bob)
  const sealed = await sealCallKey(content, ann, bob, BINDING)
  const octets = Buffer.from(sealed, 'base64')
  t.equal(octets.length, 154)
  t.same(await openCallKey(sealed, ann, bob, BINDING), content)
  t.not(await sealCallKey(content, ann, bob, BINDING), sealed, 'another time it looks different')
  const answer = await sealCallKey(content, ann, bob, { ...BINDING, nonce: NONCE })
  t.same(await openCallKey(answer, ann, bob, { ...BINDING, nonce: NONCE }), content)
  const otherNonce = NONCE.map((octet, at) => (at === 15 ? octet ^ 1 : octet))
  const withEnc = (enc: Uint8Array) =>
    Buffer.concat([octets.subarray(0, 1), enc, octets.subarray(66)]).toString('base64')
  const off = Uint8Array.from(octets.subarray(1, 66))
  off[64]! ^= 1
  for (const [what, opening] of Object.entries({
    'for another call': () => openCallKey(sealed, ann, bob, { ...BINDING, callId: '7' }),
    'for another epoch': () => openCallKey(sealed, ann, bob, { ...BINDING, epoch: 2 }),
    'as the answer to an ask, of which it is none': () =>
      openCallKey(sealed, ann, bob, { ...BINDING, nonce: NONCE }),
    'as the answer to another ask': () => openCallKey(answer, ann, bob, { ...BINDING, nonce: otherNonce }),
    'without its ask': () => openCallKey(answer, ann, bob, BINDING),
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
    'from a sender off the curve': () => openCallKey(sealed, withPoint(ann, off), bob, BINDING),
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
  const off = Uint8Array.from(bob.publicKey)
  off[64]! ^= 1
  const short = bob.publicKey.slice(0, 64)
  for (const point of [off, new Uint8Array(65), Uint8Array.of(0), new Uint8Array(), short]) {
    const own = { ...ann, keys: { ...ann.keys, agree } }
    const sealing = sealCallKey(makeCallKey(), own, withPoint(bob, point), BINDING)
    t.equal(await rejectionOf(sealing), 'KEY_UNSUPPORTED', toHex(point))
  }
  const locked = { ...ann.keys, agree: async () => Promise.reject(new Error('the phone is locked')) }
  await t.rejects(sealCallKey(makeCallKey(), { ...ann, keys: locked }, bob, BINDING), {
    message: 'the phone is locked',
  })
})

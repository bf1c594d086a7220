/** HPKE against the values of RFC 9180, against `@hpke/core` in both directions, and against attackers. */

import { createECDH } from 'node:crypto'
import { Aes128Gcm, Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core'
import t from 'tap'
import { type AgreementKey, openAuth, sealAuth } from '../../../src/app/devices/hpke.ts'
import { fromHex, toHex } from '../../support/bytes.ts'
import { readVectors } from '../../support/vectors.ts'

interface Vector {
  readonly source: string
  readonly aead_id: 1 | 2
  readonly info: string
  readonly aad: string
  readonly skEm: string
  readonly pkEm: string
  readonly skRm: string
  readonly pkRm: string
  readonly skSm: string
  readonly pkSm: string
  readonly pt: string
  readonly ct: string
}

const { vectors } = readVectors<{ vectors: readonly Vector[] }>('hpke')
const contextOf = ({ info, aad, aead_id }: Vector) => ({
  ...{ info: fromHex(info), aad: fromHex(aad) },
  aead: { id: aead_id, keyBytes: 16 * aead_id },
})

interface PrivateKey extends AgreementKey {
  readonly scalar: string
  /** The points that it met. */
  readonly met: string[]
}

function keyOf(scalar: string): PrivateKey {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(scalar, 'hex')
  const met: string[] = []
  async function agree(other: Uint8Array) {
    met.push(toHex(other))
    return new Uint8Array(pair.computeSecret(other))
  }
  return { scalar, met, point: new Uint8Array(pair.getPublicKey()), agree }
}

function newKey(): PrivateKey {
  const pair = createECDH('prime256v1')
  pair.generateKeys()
  return keyOf(pair.getPrivateKey('hex').padStart(64, '0'))
}

t.test(
  'the values of RFC 9180, A.3.3 come out, sealed and opened, and with AES-256-GCM those of `@hpke/core`',
  async t => {
    t.same(
      vectors.map(({ aead_id }) => aead_id),
      [1, 2],
    )
    for (const vector of vectors) {
      const [ephemeral, receiver, sender] = [keyOf(vector.skEm), keyOf(vector.skRm), keyOf(vector.skSm)]
      t.same([toHex(receiver.point), toHex(sender.point)], [vector.pkRm, vector.pkSm])
      const context = contextOf(vector)
      const plaintext = fromHex(vector.pt)
      const sealed = await sealAuth(plaintext, { ...context, sender, receiver: receiver.point, ephemeral })
      t.equal(toHex(sealed), vector.pkEm + vector.ct, vector.source)
      const opened = await openAuth(sealed, { ...context, sender: sender.point, receiver })
      t.equal(toHex(opened), vector.pt, vector.source)
      t.equal(sender.met.length, 1, 'AuthEncap takes one agreement of the sender’s key')
      t.equal(receiver.met.length, 2, 'AuthDecap takes two of the receiver’s')
    }
  },
)

const suiteOf = (aeadId: number) =>
  new CipherSuite({
    kem: new DhkemP256HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: aeadId === 1 ? new Aes128Gcm() : new Aes256Gcm(),
  })
const suite = suiteOf(2)
const strangersKey = ({ scalar }: PrivateKey) => suite.kem.importKey('raw', fromHex(scalar).buffer, false)
const strangersPoint = ({ point }: AgreementKey) =>
  suite.kem.importKey('raw', Uint8Array.from(point).buffer, true)

t.test('`@hpke/core` opens the same values', async t => {
  for (const vector of vectors) {
    const recipient = await suiteOf(vector.aead_id).createRecipientContext({
      recipientKey: await strangersKey(keyOf(vector.skRm)),
      senderPublicKey: await strangersPoint(keyOf(vector.skSm)),
      enc: fromHex(vector.pkEm),
      info: fromHex(vector.info),
    })
    const opened = await recipient.open(fromHex(vector.ct), fromHex(vector.aad))
    t.equal(toHex(new Uint8Array(opened)), vector.pt)
  }
})

t.test('`@hpke/core` opens what we have sealed, and the other way round', async t => {
  for (const length of [0, 1, 32, 141]) {
    const [sender, receiver] = [newKey(), newKey()]
    const info = crypto.getRandomValues(new Uint8Array(length + 1))
    const plaintext = crypto.getRandomValues(new Uint8Array(length))
    const ours = await sealAuth(plaintext, { sender, receiver: receiver.point, info })
    const recipient = await suite.createRecipientContext({
      recipientKey: await strangersKey(receiver),
      senderPublicKey: await strangersPoint(sender),
      enc: ours.slice(0, 65),
      info,
    })
    t.same(new Uint8Array(await recipient.open(ours.slice(65))), plaintext)

    const theirs = await suite.createSenderContext({
      recipientPublicKey: await strangersPoint(receiver),
      senderKey: await strangersKey(sender),
      info,
    })
    const sealed = Uint8Array.of(
      ...new Uint8Array(theirs.enc),
      ...new Uint8Array(await theirs.seal(plaintext)),
    )
    t.same(await openAuth(sealed, { sender: sender.point, receiver, info }), plaintext)
  }
})

/** Octets that are no public key of RFC 9180, 7.1.1. */
function noPoints({ point }: AgreementKey): Record<string, Uint8Array> {
  const changed = (at: number, to: number) => Uint8Array.from(point, (byte, i) => (i === at ? to : byte))
  const prime = 'ffffffff00000001000000000000000000000000ffffffffffffffffffffffff'
  return {
    'off the curve': changed(64, point[64]! ^ 1),
    'zeros, which some take for infinity': new Uint8Array(65),
    'infinity, as SEC 1 has it': new Uint8Array(1),
    'x and y are zero': Uint8Array.of(4, ...new Uint8Array(64)),
    'a coordinate that is the prime': fromHex(`04${prime}${prime}`),
    compressed: Uint8Array.of(2 + (point[64]! & 1), ...point.subarray(1, 33)),
    hybrid: changed(0, 6 + (point[64]! & 1)),
    'cut off': point.slice(0, 64),
    'a byte too long': Uint8Array.of(...point, 0),
    empty: new Uint8Array(),
  }
}

t.test('no private key meets a point that is not on the curve', async t => {
  const [sender, receiver] = [newKey(), newKey()]
  const info = new Uint8Array(4)
  const sealed = await sealAuth(new Uint8Array(32), { sender, receiver: receiver.point, info })
  const opening = (bytes: Uint8Array, from: Uint8Array) => openAuth(bytes, { sender: from, receiver, info })
  for (const [what, point] of Object.entries(noPoints(receiver))) {
    await t.rejects(sealAuth(new Uint8Array(32), { sender, receiver: point, info }), RangeError, what)
    await t.rejects(opening(sealed, point), RangeError, `the sender’s point: ${what}`)
    if (point.length === 65)
      await t.rejects(opening(Uint8Array.of(...point, ...sealed.slice(65)), sender.point), RangeError, what)
  }
  await t.rejects(opening(sealed.slice(0, 64), sender.point), RangeError, 'enc is cut off')
  t.same([sender.met.length, receiver.met.length], [1, 0])
})

t.test('only the same keys, info, aad and octets open it', async t => {
  const [sender, receiver, eve] = [newKey(), newKey(), newKey()]
  const [info, aad] = [Uint8Array.of(1, 2), Uint8Array.of(3)]
  const sealed = await sealAuth(new Uint8Array(32), { sender, receiver: receiver.point, info, aad })
  const right = { sender: sender.point, receiver, info, aad }
  t.same(await openAuth(sealed, right), new Uint8Array(32))
  const wrong = {
    'another sender': { ...right, sender: eve.point },
    'the receiver as the sender': { ...right, sender: receiver.point },
    'another receiver': { ...right, receiver: eve },
    'the sender as the receiver': { ...right, receiver: sender },
    'another receiver’s name for its key': { ...right, receiver: { ...receiver, point: eve.point } },
    'another info': { ...right, info: Uint8Array.of(1) },
    'another aad': { ...right, aad: new Uint8Array() },
    'another aead': { ...right, aead: { id: 1, keyBytes: 16 } },
  }
  for (const [what, context] of Object.entries(wrong)) await t.rejects(openAuth(sealed, context), what)
  let opened = 0
  const tryToOpen = (bytes: Uint8Array) =>
    openAuth(bytes, right).then(
      () => opened++,
      () => undefined,
    )
  for (let bit = 0; bit < 8 * sealed.length; bit++)
    await tryToOpen(sealed.map((byte, at) => (at === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte)))
  for (let length = 0; length < sealed.length; length++) await tryToOpen(sealed.slice(0, length))
  await tryToOpen(Uint8Array.of(...sealed, 0))
  t.equal(opened, 0, 'each bit, each length')
})

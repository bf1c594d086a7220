import { createHash } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import t from 'tap'
import * as node from '../../src/log/primitives-node.ts'
import * as portable from '../../src/log/primitives-portable.ts'
import { flipBit, fromHex, fromUtf8, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'

const { Point } = ed25519
const BOTH = [node, portable]
const ORDER = Point.Fn.ORDER

t.test('digests of every length are those of the standard', async t => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, at) => at * 7)
  const wrong: string[] = []
  for (const { sha256, sha512 } of BOTH) {
    for (let length = 0; length <= 1000; length++) {
      const input = bytes.subarray(1000 - length)
      if (toHex(sha256(input)) !== createHash('sha256').update(input).digest('hex'))
        wrong.push(`256 ${length}`)
      if (toHex(sha512(input)) !== createHash('sha512').update(input).digest('hex'))
        wrong.push(`512 ${length}`)
    }
  }
  t.same(wrong, [])
})

t.test('results are plain arrays with memory of their own', async t => {
  const seed = new Uint8Array(32).fill(3)
  for (const { sha256, sha512, ed25519PublicKey, ed25519Sign, decodeBase64 } of BOTH) {
    const results = [
      sha256(seed),
      sha512(seed),
      ed25519PublicKey(seed),
      ed25519Sign(seed, seed),
      decodeBase64('AAAA'),
    ]
    for (const bytes of results) {
      t.equal(bytes.constructor, Uint8Array)
      t.equal(bytes.buffer.byteLength, bytes.length)
    }
  }
})

t.test('the signatures of RFC 8032 come out and verify', async t => {
  for (const { seed, publicKey, message, signature } of RFC_8032) {
    for (const primitives of BOTH) {
      t.equal(toHex(primitives.ed25519PublicKey(fromHex(seed))), publicKey)
      t.equal(toHex(primitives.ed25519Sign(fromHex(seed), fromHex(message))), signature)
      t.ok(primitives.ed25519Verify(fromHex(publicKey), fromHex(message), fromHex(signature)))
    }
  }
})

t.test('a signature with any bit of key, message or signature flipped is refused', async t => {
  const { publicKey, message, signature } = RFC_8032[2]!
  const good = [fromHex(publicKey), fromHex(message), fromHex(signature)] as const
  const accepted: string[] = []
  for (const { ed25519Verify } of BOTH) {
    for (const [part, bytes] of good.entries()) {
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const [key, text, proof] = good.with(part, flipBit(bytes, bit)) as [
          Uint8Array,
          Uint8Array,
          Uint8Array,
        ]
        if (ed25519Verify(key, text, proof)) accepted.push(`bit ${bit} of part ${part}`)
      }
    }
  }
  t.same(accepted, [])
})

t.test('odd inputs give false, not an error', async t => {
  const { publicKey, message, signature } = RFC_8032[1]!
  const [key, text, proof] = [fromHex(publicKey), fromHex(message), fromHex(signature)]
  const beyondOrder = littleEndian(scalarOf(proof.subarray(32)) + ORDER)
  for (const { ed25519Verify } of BOTH) {
    t.notOk(ed25519Verify(new Uint8Array(0), text, proof))
    t.notOk(ed25519Verify(key.subarray(1), text, proof))
    t.notOk(ed25519Verify(Buffer.concat([key, key]), text, proof))
    t.notOk(ed25519Verify(key, text, new Uint8Array(0)))
    t.notOk(ed25519Verify(key, text, proof.subarray(1)))
    t.notOk(ed25519Verify(key, text, Buffer.concat([proof, proof])))
    t.notOk(ed25519Verify(new Uint8Array(32).fill(0xff), text, proof))
    t.notOk(ed25519Verify(fromHex(NO_POINT), text, proof))
    t.notOk(ed25519Verify(key, text, Buffer.concat([proof.subarray(0, 32), beyondOrder])))
    t.notOk(ed25519Verify(key, text, new Uint8Array(64)))
  }
})

t.test('keys of small order sign nothing, in any encoding', async t => {
  // For such a key R = B, S = 1 satisfies the equation of many messages.
  const base = Point.BASE.toBytes()
  const forged = Buffer.concat([base, littleEndian(1n)])
  const accepted: string[] = []
  for (const encoding of SMALL_ORDER_KEYS) {
    for (const top of [0, 0x80]) {
      const key = fromHex(encoding)
      key[31]! |= top
      for (let number = 0; number < 16; number++) {
        for (const { ed25519Verify } of BOTH) {
          if (ed25519Verify(key, fromUtf8(`message ${number}`), forged))
            accepted.push(`${encoding} ${number}`)
        }
      }
    }
  }
  t.same(accepted, [])
})

t.test('both judge signatures with points outside the prime-order group alike', async t => {
  const torsion = Point.fromHex(ORDER_EIGHT)
  let differing = 0
  let accepted = 0
  for (let number = 0; number < 64; number++) {
    const message = fromUtf8(`message ${number}`)
    const secret = BigInt(number + 1) * 0x1234567n
    const nonce = BigInt(number + 1) * 0x89abcdn
    const honestKey = Point.BASE.multiply(secret)
    const honestR = Point.BASE.multiply(nonce)
    for (const [key, r] of [
      [honestKey, honestR],
      [honestKey.add(torsion), honestR],
      [honestKey, honestR.add(torsion)],
      [honestKey.add(torsion), honestR.add(torsion)],
    ] as const) {
      const publicKey = key.toBytes()
      const k = scalarOf(portable.sha512(Buffer.concat([r.toBytes(), publicKey, message])))
      const signature = Buffer.concat([r.toBytes(), littleEndian((nonce + k * secret) % ORDER)])
      const [byNode, byPortable] = BOTH.map(({ ed25519Verify }) =>
        ed25519Verify(publicKey, message, signature),
      )
      if (byNode !== byPortable) differing++
      if (byNode) accepted++
    }
  }
  t.equal(differing, 0)
  t.ok(accepted >= 64, `${accepted} accepted`)
  t.ok(accepted < 128, `${accepted} accepted`)
})

t.test('more keys than are kept ready go on verifying, each with its own', async t => {
  const seeds = Array.from({ length: 20 }, (_, at) => new Uint8Array(32).fill(at + 1))
  const message = fromUtf8('message')
  let wrong = 0
  for (let round = 0; round < 3; round++) {
    const keys = seeds.map(seed => node.ed25519PublicKey(seed))
    const signatures = seeds.map(seed => node.ed25519Sign(seed, message))
    for (const [at, key] of keys.entries()) {
      if (!node.ed25519Verify(key, message, signatures[at]!)) wrong++
      if (node.ed25519Verify(key, message, signatures[(at + 1) % 20]!)) wrong++
      if (toHex(signatures[at]!) !== toHex(portable.ed25519Sign(seeds[at]!, message))) wrong++
    }
  }
  t.equal(wrong, 0)
})

t.test('a key changed in place is another key', async t => {
  const key = node.ed25519PublicKey(new Uint8Array(32).fill(1))
  const message = fromUtf8('message')
  const signature = node.ed25519Sign(new Uint8Array(32).fill(1), message)
  t.ok(node.ed25519Verify(key, message, signature))
  key.set(node.ed25519PublicKey(new Uint8Array(32).fill(2)))
  t.notOk(node.ed25519Verify(key, message, signature))
})

t.test('a seed of another length is refused without being told', async t => {
  for (const { ed25519PublicKey, ed25519Sign } of BOTH) {
    for (const bytes of [0, 31, 33, 64]) {
      t.equal(
        codeOf(() => ed25519PublicKey(new Uint8Array(bytes))),
        'KEY_INVALID',
      )
      t.equal(
        codeOf(() => ed25519Sign(new Uint8Array(bytes), new Uint8Array(1))),
        'KEY_INVALID',
      )
    }
  }
})

function scalarOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${toHex(Uint8Array.from(bytes).reverse())}`) % (1n << 512n)
}

function littleEndian(value: bigint): Uint8Array {
  return fromHex(value.toString(16).padStart(64, '0')).reverse()
}

/** RFC 8032, section 7.1, tests 1 to 3. */
const RFC_8032 = [
  {
    seed: '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    publicKey: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    message: '',
    signature:
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  },
  {
    seed: '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    publicKey: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    message: '72',
    signature:
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  },
  {
    seed: 'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    publicKey: 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    message: 'af82',
    signature:
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  },
]

/** y = 2 has no x on the curve. */
const NO_POINT = '0200000000000000000000000000000000000000000000000000000000000000'
const ORDER_EIGHT = 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'
/** The points of small order, and the spellings of them at or above the field prime. */
const SMALL_ORDER_KEYS = [
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  ORDER_EIGHT,
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
]

/** Signatures of P-256 are judged as OpenSSL and @noble/curves judge them, also where the formulas meet their limits. */

import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { p256 } from '@noble/curves/nist.js'
import t from 'tap'
import { isP256Point, P256_ORDER, verifyP256 } from '../../src/log/p256.ts'
import * as node from '../../src/log/primitives-node.ts'
import * as portable from '../../src/log/primitives-portable.ts'
import { flipBit, fromHex, fromUtf8, toHex } from '../support/bytes.ts'

const { Point } = p256
const PRIME = Point.Fp.ORDER
const CURVE_B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn
type P256Point = InstanceType<typeof Point>

const octets = (value: bigint) => fromHex(value.toString(16).padStart(64, '0'))
const signatureOf = (r: bigint, s: bigint) => Buffer.concat([octets(r), octets(s)])
const reduced = (value: bigint) => Point.Fn.create(value)

/** Mine, and the library's judgement of the same digest. */
function judged(key: P256Point, digest: Uint8Array, signature: Uint8Array): readonly [boolean, boolean] {
  const publicKey = key.toBytes(false)
  const byLibrary = p256.verify(signature, digest, publicKey, { lowS: false, prehash: false })
  return [verifyP256(publicKey, digest, signature), byLibrary]
}

function signed(message: Uint8Array) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const point = publicKey.export({ type: 'spki', format: 'der' }).subarray(-65)
  const signature = sign('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return { point: Uint8Array.from(point), signature: Uint8Array.from(signature) }
}

t.test('signatures of OpenSSL verify, with either s; those of another message or key do not', async t => {
  const [message, other] = [fromUtf8('message'), fromUtf8('another')]
  const wrong: string[] = []
  const expect = (is: boolean, point: Uint8Array, text: Uint8Array, signature: Uint8Array) => {
    for (const { p256Verify } of [node, portable])
      if (p256Verify(point, text, signature) !== is) wrong.push(`${is} ${toHex(point)} ${toHex(signature)}`)
  }
  let last = signed(message)
  for (let time = 0; time < 100; time++) {
    const { point, signature } = signed(message)
    const s = P256_ORDER - BigInt(`0x${toHex(signature.subarray(32))}`)
    expect(true, point, message, signature)
    expect(true, point, message, Buffer.concat([signature.subarray(0, 32), octets(s)]))
    expect(false, point, other, signature)
    expect(false, last.point, message, signature)
    last = { point, signature }
  }
  t.same(wrong, [])
})

t.test('a signature with any bit of key or signature flipped is refused', async t => {
  const message = fromUtf8('message')
  const { point, signature } = signed(message)
  const accepted: string[] = []
  for (let bit = 0; bit < 8 * 65; bit++)
    if (portable.p256Verify(flipBit(point, bit), message, signature)) accepted.push(`key ${bit}`)
  for (let bit = 0; bit < 8 * 64; bit++)
    if (portable.p256Verify(point, message, flipBit(signature, bit))) accepted.push(`signature ${bit}`)
  t.same(accepted, [])
})

t.test('odd inputs give false, not an error', async t => {
  const message = fromUtf8('message')
  const { point, signature } = signed(message)
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32)]
  const bounds = [0n, P256_ORDER, P256_ORDER + 1n, PRIME, 2n ** 256n - 1n].map(octets)
  const compressed = Point.fromBytes(point).toBytes(true)
  const beyond = (coordinate: Uint8Array) =>
    octets((BigInt(`0x${toHex(coordinate)}`) % (2n ** 256n - PRIME)) + PRIME)
  const cases: readonly (readonly [Uint8Array, Uint8Array])[] = [
    ...bounds.map(each => [point, Buffer.concat([each, s])] as const),
    ...bounds.map(each => [point, Buffer.concat([r, each])] as const),
    [point, new Uint8Array(0)],
    [point, signature.subarray(1)],
    [point, Buffer.concat([signature, r])],
    [new Uint8Array(0), signature],
    [new Uint8Array(65), signature],
    [point.subarray(1), signature],
    [Buffer.concat([point, point]), signature],
    [compressed, signature],
    [Uint8Array.of(6, ...point.subarray(1)), signature],
    [Uint8Array.of(4, ...beyond(point.subarray(1, 33)), ...point.subarray(33)), signature],
    [Uint8Array.of(4, ...new Uint8Array(64)), signature],
  ]
  for (const [key, proof] of cases)
    for (const { p256Verify } of [node, portable]) t.notOk(p256Verify(key, message, proof))
})

t.test('points are on the curve, with coordinates below the prime', async t => {
  const { point } = signed(fromUtf8('message'))
  t.ok(isP256Point(point))
  t.notOk(isP256Point(flipBit(point, 300)))
  // (0, y) and (p, y) are one point.
  const y = Point.Fp.sqrt(CURVE_B)
  t.ok(isP256Point(Uint8Array.of(4, ...octets(0n), ...octets(y))))
  t.notOk(isP256Point(Uint8Array.of(4, ...octets(PRIME), ...octets(y))))
})

t.test('sums that meet infinity, or add a point to itself', async t => {
  const digest = (value: bigint) => octets(reduced(value))
  for (const secret of [1n, 2n, 3n, P256_ORDER - 1n, P256_ORDER - 2n, 0x1234567n]) {
    const key = Point.BASE.multiply(secret)
    for (const r of [1n, 2n, 7n, P256_ORDER - 1n]) {
      for (const s of [1n, 5n, P256_ORDER - 1n]) {
        // u1 G = -u2 Q; u1 G = u2 Q; and no part of one of them.
        for (const e of [-r * secret, r * secret, 0n]) {
          const [mine, library] = judged(key, digest(e), signatureOf(r, s))
          t.equal(mine, library)
          if (e < 0n) t.notOk(mine)
        }
      }
    }
    const nonce = secret === 1n ? 9n : secret
    const r = reduced(Point.BASE.multiply(nonce).toAffine().x)
    for (const e of [0n, 1n, r * secret, P256_ORDER - 1n]) {
      const s = reduced(Point.Fn.inv(nonce) * reduced(e + r * secret))
      if (s === 0n) continue
      t.same(judged(key, digest(e), signatureOf(r, s)), [true, true])
    }
  }
})

/** The first points on the curve from this x on. */
function pointsFrom(first: bigint, count: number): (readonly [bigint, P256Point])[] {
  const points: (readonly [bigint, P256Point])[] = []
  for (let x = first; points.length < count; x++) {
    const { Fp } = Point
    const square = Fp.create(x ** 3n - 3n * x + CURVE_B)
    if (Fp.pow(square, (PRIME - 1n) / 2n) === 1n)
      points.push([x, Point.fromAffine({ x, y: Fp.sqrt(square) })])
  }
  return points
}

/** The key for which e / s G + r / s Q is the point. */
function keyFor(point: P256Point, e: bigint, r: bigint, s: bigint): P256Point {
  return point.multiply(s).add(Point.BASE.multiply(e).negate()).multiply(Point.Fn.inv(r))
}

t.test('an x above the order is taken by its remainder, and no other one', async t => {
  const [e, s] = [123n, 456n]
  for (const [x, point] of pointsFrom(P256_ORDER + 1n, 4)) {
    const r = x - P256_ORDER
    const key = keyFor(point, e, r, s)
    t.same(judged(key, octets(e), signatureOf(r, s)), [true, true])
    t.same(judged(key, octets(e), signatureOf(r + 1n, s)), [false, false])
  }
  for (const [x, point] of pointsFrom(1n, 4)) {
    const r = x + PRIME - P256_ORDER
    t.same(judged(keyFor(point, e, r, s), octets(e), signatureOf(r, s)), [false, false])
  }
})

t.test('a digest above the order is taken as it is', async t => {
  const secret = 77n
  const digest = octets(2n ** 256n - 1n)
  const signature = p256.sign(digest, octets(secret), { lowS: false, prehash: false })
  t.same(judged(Point.BASE.multiply(secret), digest, signature), [true, true])
  t.equal(createHash('sha256').digest().length, digest.length)
})

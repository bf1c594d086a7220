/** The group that clients verify with, held against @noble/curves and the vectors of RFC 9496. */

import { createHash } from 'node:crypto'
import { ed25519, ristretto255, ristretto255_hasher } from '@noble/curves/ed25519.js'
import t from 'tap'
import {
  add,
  BASE,
  decodeElement,
  decodePoint,
  type EdwardsPoint,
  elementOf,
  encodeElement,
  encodePoint,
  isIdentity,
  isSmallOrder,
  L,
  negated,
  numberOf,
  sumOfMultiples,
} from '../../src/log/edwards25519.ts'
import { fromHex, toHex } from '../support/bytes.ts'
import { readVectors } from '../support/vectors.ts'

const { Point } = ed25519
const P = 2n ** 255n - 19n

interface RistrettoVectors {
  readonly generator_multiples_hex: readonly string[]
  readonly invalid_encodings_hex: Readonly<Record<string, readonly string[]>>
  readonly derive_from_bytes: readonly { readonly uniform_bytes_hex: string; readonly element_hex: string }[]
}
const vectors = readVectors<RistrettoVectors>('ristretto255')

/** Bytes that look random, the same in each run. */
function bytesOf(name: string, length: 32 | 64): Uint8Array {
  return Uint8Array.from(createHash('sha512').update(name).digest().subarray(0, length))
}

function littleEndian(value: bigint): Uint8Array {
  return fromHex(value.toString(16).padStart(64, '0')).reverse()
}

function hexOrNone(decode: () => string | undefined): string {
  try {
    return decode() ?? 'none'
  } catch {
    return 'none'
  }
}

/** Numbers around each bound, in both spellings of the sign, and others. */
const ENCODINGS = [
  ...[0n, 1n, 2n, 3n, P / 2n, P - 2n, P - 1n, P, P + 1n, P + 2n, P + 18n].flatMap(y => [
    littleEndian(y),
    littleEndian(y + 2n ** 255n),
  ]),
  ...Array.from({ length: 300 }, (_, at) => bytesOf(`encoding ${at}`, 32)),
  ...Array.from({ length: 30 }, (_, at) => Point.BASE.multiply(BigInt(at) + 1n).toBytes()),
  new Uint8Array(0),
  new Uint8Array(31),
  new Uint8Array(33),
]

t.test('points of Ed25519 are decoded and encoded as the library does', async t => {
  let points = 0
  for (const bytes of ENCODINGS) {
    const library = hexOrNone(() => Point.fromBytes(bytes, false).toHex())
    const own = hexOrNone(() => {
      const point = decodePoint(bytes)
      return point && toHex(encodePoint(point))
    })
    if (own !== library) t.equal(own, library, toHex(bytes))
    if (own !== 'none') points++
  }
  t.ok(points > 100 && points < 250, `${points} points`)
})

t.test('elements of ristretto255 are decoded and encoded as the library does', async t => {
  const { generator_multiples_hex, invalid_encodings_hex } = vectors
  const invalid = Object.values(invalid_encodings_hex).flat()
  for (const hex of invalid) t.equal(decodeElement(fromHex(hex)), undefined)
  let sum: EdwardsPoint = [0n, 1n, 1n, 0n]
  for (const hex of generator_multiples_hex) {
    t.equal(toHex(encodeElement(sum)), hex)
    t.equal(toHex(encodeElement(decodeElement(fromHex(hex))!)), hex)
    sum = add(sum, BASE)
  }
  for (const bytes of ENCODINGS) {
    const library = hexOrNone(() => ristretto255.Point.fromBytes(bytes).toHex())
    const own = hexOrNone(() => {
      const element = decodeElement(bytes)
      return element && toHex(encodeElement(element))
    })
    if (own !== library) t.equal(own, library, toHex(bytes))
  }
})

t.test('64 bytes are mapped to the element that the RFC and the library map them to', async t => {
  for (const { uniform_bytes_hex, element_hex } of vectors.derive_from_bytes)
    t.equal(toHex(encodeElement(elementOf(fromHex(uniform_bytes_hex)))), element_hex)
  const edges = [new Uint8Array(64), new Uint8Array(64).fill(0xff), new Uint8Array(64).fill(1, 0, 1)]
  for (const bytes of [...edges, ...Array.from({ length: 100 }, (_, at) => bytesOf(`element ${at}`, 64))]) {
    const library = ristretto255_hasher.deriveToCurve!(bytes).toHex()
    t.equal(toHex(encodeElement(elementOf(bytes))), library)
  }
})

/** Eight points, whose multiples by eight are the identity. */
const TORSION = Array.from({ length: 8 }, (_, at) => {
  const eighth = Point.fromHex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a')
  return at === 0 ? Point.ZERO : eighth.multiplyUnsafe(BigInt(at))
})
const ownOf = (point: InstanceType<typeof Point>) => decodePoint(point.toBytes())!

t.test('sums of multiples, also of points that are the same, opposite or of small order', async t => {
  const numbers = [0n, 1n, 2n, 8n, L - 1n, 2n ** 252n, numberOf(bytesOf('k', 32)) % L]
  const points = [Point.BASE, Point.BASE.negate(), Point.BASE.multiply(77n), ...TORSION]
  const wrong: string[] = []
  for (const one of points) {
    for (const other of points) {
      for (const [at, k] of numbers.entries()) {
        const l = numbers[(at + 3) % numbers.length]!
        // The library takes numbers below the order.
        if (k >= L || l >= L) continue
        const library = one.multiplyUnsafe(k).add(other.multiplyUnsafe(l))
        const own = sumOfMultiples(k, ownOf(one), l, ownOf(other))
        if (toHex(encodePoint(own)) !== library.toHex())
          wrong.push(`${k} ${one.toHex()} ${l} ${other.toHex()}`)
      }
    }
  }
  t.same(wrong, [])
})

t.test('the points of small order are known, and stand for the identity of ristretto255', async t => {
  t.equal(new Set(TORSION.map(point => point.toHex())).size, 8)
  for (const [at, point] of TORSION.entries()) {
    t.ok(isSmallOrder(ownOf(point)))
    t.notOk(isSmallOrder(ownOf(point.add(Point.BASE))))
    const isOfOrderFour = at % 2 === 0
    t.equal(isIdentity(ownOf(point)), isOfOrderFour)
    t.notOk(isIdentity(ownOf(point.add(Point.BASE))))
    const encoded = toHex(encodeElement(add(BASE, ownOf(point))))
    if (isOfOrderFour) t.equal(encoded, toHex(encodeElement(BASE)))
  }
  t.same(encodePoint(add(BASE, negated(BASE))), littleEndian(1n))
})

/**
 * Points of P-256 and signatures by them, to be verified only: everything is public here, so nothing has to take the same
 * time for each input. A library's code for all such curves would be a sixth of the client.
 */
import { invert } from '@noble/curves/abstract/modular.js'

/** The number of points on the curve. */
export const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** Whether the bytes are an uncompressed point on P-256 (SEC 1, 3.2.2.1). */
export function isP256Point(bytes: Uint8Array): boolean {
  if (bytes.length !== 65 || bytes[0] !== 4) return false
  const [x, y] = pointIn(bytes)
  return x < PRIME && y < PRIME && (y * y - (x * x - 3n) * x - CURVE_B) % PRIME === 0n
}

/**
 * Whether the 64 bytes r ‖ s are an ECDSA signature by the uncompressed point of a message with this SHA-256 (FIPS 186-5,
 * 6.4.2). Both values of s are taken. False, never an error, for any odd input.
 */
export function verifyP256(publicKey: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean {
  if (!isP256Point(publicKey) || signature.length !== 64) return false
  const [r, s] = [unsignedOf(signature.subarray(0, 32)), unsignedOf(signature.subarray(32))]
  if (r === 0n || r >= P256_ORDER || s === 0n || s >= P256_ORDER) return false
  const w = invert(s, P256_ORDER)
  const [u1, u2] = [(unsignedOf(digest) * w) % P256_ORDER, (r * w) % P256_ORDER]
  const [x, , z] = sumOfMultiples(u1, BASE, u2, pointIn(publicKey))
  // x / z is below the prime, and r is that modulo the order.
  const isR = (candidate: bigint) => candidate < PRIME && (candidate * z - x) % PRIME === 0n
  return z !== 0n && (isR(r) || isR(r + P256_ORDER))
}

/** The bytes as a big-endian number. */
export function unsignedOf(bytes: Uint8Array): bigint {
  let value = 0n
  for (const byte of bytes) value = (value << 8n) | BigInt(byte)
  return value
}

/** (x : y : z) stands for (x / z, y / z), and for infinity where z is 0. Members are modulo the prime, of either sign. */
type Point = readonly [x: bigint, y: bigint, z: bigint]

function pointIn(bytes: Uint8Array): Point {
  return [unsignedOf(bytes.subarray(1, 33)), unsignedOf(bytes.subarray(33)), 1n]
}

/** u1 times one point and u2 times the other, bit by bit for both at once. */
function sumOfMultiples(u1: bigint, one: Point, u2: bigint, other: Point): Point {
  const both = add(one, other)
  let sum: Point = [0n, 1n, 0n]
  for (let bit = 255n; bit >= 0n; bit--) {
    sum = add(sum, sum)
    const [isOne, isOther] = [(u1 >> bit) & 1n, (u2 >> bit) & 1n]
    if (isOne && isOther) sum = add(sum, both)
    else if (isOne) sum = add(sum, one)
    else if (isOther) sum = add(sum, other)
  }
  return sum
}

/** The complete formula for a curve with a = -3 (Renes, Costello, Batina 2015, algorithm 4): it has no exceptions. */
function add([x1, y1, z1]: Point, [x2, y2, z2]: Point): Point {
  const [xx, yy, zz] = [x1 * x2, y1 * y2, (z1 * z2) % PRIME]
  const xy = (x1 * y2 + x2 * y1) % PRIME
  const yz = (y1 * z2 + y2 * z1) % PRIME
  const xz = (x1 * z2 + x2 * z1) % PRIME
  const u = 3n * (xz - CURVE_B * zz)
  const v = (3n * (xx - zz)) % PRIME
  const w = (3n * (CURVE_B * xz - 3n * zz - xx)) % PRIME
  const [plus, minus] = [(yy + u) % PRIME, (yy - u) % PRIME]
  return [(xy * plus - yz * w) % PRIME, (plus * minus + v * w) % PRIME, (yz * minus + xy * v) % PRIME]
}

/** The curve and its base point (SP 800-186, 3.2.1.3). */
const PRIME = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn
const CURVE_B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn
const BASE: Point = [
  0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296n,
  0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5n,
  1n,
]

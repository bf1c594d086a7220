/**
 * The group of Ed25519 (RFC 8032) and of ristretto255 (RFC 9496), to verify with: everything is public here, so nothing has
 * to take the same time for each input. Whatever has a secret uses a library. Names are those of the two documents.
 */

/** The field's prime. */
const P = 2n ** 255n - 19n
/** The order of the base point. */
export const L = 2n ** 252n + 27742317777372353535851937790883648493n

/**
 * (X : Y : Z : T) with x = X / Z, y = Y / Z and x y = T / Z (RFC 8032, 5.1.4). Members are modulo the prime, of either
 * sign.
 */
export type EdwardsPoint = readonly [X: bigint, Y: bigint, Z: bigint, T: bigint]

/** The bytes as a little-endian number. */
export function numberOf(bytes: Uint8Array): bigint {
  let value = 0n
  for (let at = bytes.length - 1; at >= 0; at--) value = (value << 8n) | BigInt(bytes[at]!)
  return value
}

/** k times one point and l times the other, bit by bit for both at once. The numbers are below 2^253. */
export function sumOfMultiples(k: bigint, one: EdwardsPoint, l: bigint, other: EdwardsPoint): EdwardsPoint {
  const both = add(one, other)
  let sum: EdwardsPoint = IDENTITY
  for (let bit = 252n; bit >= 0n; bit--) {
    sum = doubled(sum)
    const [isOne, isOther] = [(k >> bit) & 1n, (l >> bit) & 1n]
    if (isOne && isOther) sum = add(sum, both)
    else if (isOne) sum = add(sum, one)
    else if (isOther) sum = add(sum, other)
  }
  return sum
}

/** The formula has no exceptions (RFC 8032, 5.1.4). */
export function add([x1, y1, z1, t1]: EdwardsPoint, [x2, y2, z2, t2]: EdwardsPoint): EdwardsPoint {
  const a = ((y1 - x1) * (y2 - x2)) % P
  const b = ((y1 + x1) * (y2 + x2)) % P
  const c = (((2n * t1 * t2) % P) * D) % P
  const d = (2n * z1 * z2) % P
  const [e, f, g, h] = [b - a, d - c, d + c, b + a]
  return [(e * f) % P, (g * h) % P, (f * g) % P, (e * h) % P]
}

/** RFC 8032, 5.1.4. */
function doubled([x, y, z]: EdwardsPoint): EdwardsPoint {
  const [a, b] = [(x * x) % P, (y * y) % P]
  const h = a + b
  const e = h - (((x + y) * (x + y)) % P)
  const g = a - b
  const f = ((2n * z * z) % P) + g
  return [(e * f) % P, (g * h) % P, (f * g) % P, (e * h) % P]
}

export function negated([x, y, z, t]: EdwardsPoint): EdwardsPoint {
  return [-x, y, z, -t]
}

/** The point of 32 bytes (RFC 8032, 5.1.3); undefined where they are not one, or another spelling of one. */
export function decodePoint(bytes: Uint8Array): EdwardsPoint | undefined {
  const number = numberOf(bytes)
  const y = number & (2n ** 255n - 1n)
  if (bytes.length !== 32 || y >= P) return undefined
  const isOdd = number >> 255n === 1n
  const yy = y * y
  const { isSquare, root } = sqrtRatio(yy - 1n, D * yy + 1n)
  if (!isSquare || (root === 0n && isOdd)) return undefined
  const x = isOdd ? -root : root
  return [x, y, 1n, (x * y) % P]
}

/** RFC 8032, 5.1.2. */
export function encodePoint([x, y, z]: EdwardsPoint): Uint8Array {
  const inverse = inverseOf(z)
  const isOdd = isNegative(x * inverse)
  return bytesOf(mod(y * inverse) | (isOdd ? 1n << 255n : 0n))
}

/** Whether eight times the point is the identity. */
export function isSmallOrder(point: EdwardsPoint): boolean {
  const [x, y, z] = doubled(doubled(doubled(point)))
  return mod(x) === 0n && mod(y - z) === 0n
}

/** RFC 9496, 4.3.1; undefined for bytes that are not the encoding of an element. */
export function decodeElement(bytes: Uint8Array): EdwardsPoint | undefined {
  const s = numberOf(bytes)
  if (bytes.length !== 32 || s >= P || isNegative(s)) return undefined
  const ss = mod(s * s)
  const [u1, u2] = [1n - ss, 1n + ss]
  const u2Squared = mod(u2 * u2)
  const v = mod(-D * mod(u1 * u1) - u2Squared)
  const { isSquare, root } = sqrtRatio(1n, v * u2Squared)
  const denX = mod(root * u2)
  const denY = mod(root * denX * v)
  const x = absolute(2n * s * denX)
  const y = mod(u1 * denY)
  const t = mod(x * y)
  return !isSquare || isNegative(t) || y === 0n ? undefined : [x, y, 1n, t]
}

/** RFC 9496, 4.3.2. */
export function encodeElement([x0, y0, z0, t0]: EdwardsPoint): Uint8Array {
  const u1 = mod((z0 + y0) * (z0 - y0))
  const u2 = mod(x0 * y0)
  const { root } = sqrtRatio(1n, u1 * mod(u2 * u2))
  const [den1, den2] = [mod(root * u1), mod(root * u2)]
  const zInverse = mod(den1 * den2 * t0)
  const isRotated = isNegative(t0 * zInverse)
  const x = isRotated ? y0 * SQRT_M1 : x0
  const y = isRotated ? x0 * SQRT_M1 : y0
  const denominator = isRotated ? den1 * INVSQRT_A_MINUS_D : den2
  return bytesOf(absolute(mod(denominator) * (z0 - (isNegative(mod(x) * zInverse) ? -y : y))))
}

/** Whether the element is the identity of ristretto255 (RFC 9496, 4.5). */
export function isIdentity([x, y]: EdwardsPoint): boolean {
  return mod(x) === 0n || mod(y) === 0n
}

/** The element that 64 bytes are mapped to (RFC 9496, 4.3.4). */
export function elementOf(bytes: Uint8Array): EdwardsPoint {
  return add(map(bytes.subarray(0, 32)), map(bytes.subarray(32)))
}

/** MAP of RFC 9496, 4.3.4. */
function map(bytes: Uint8Array): EdwardsPoint {
  const t = mod(numberOf(bytes) & (2n ** 255n - 1n))
  const r = mod(SQRT_M1 * mod(t * t))
  const u = (r + 1n) * ONE_MINUS_D_SQUARED
  const v = mod((-1n - r * D) * (r + D))
  const { isSquare, root } = sqrtRatio(u, v)
  const s = isSquare ? root : -absolute(root * t)
  const c = isSquare ? -1n : r
  const n = mod(mod(c * (r - 1n)) * D_MINUS_ONE_SQUARED - v)
  const [w0, w1] = [mod(2n * s * v), mod(n * SQRT_AD_MINUS_ONE)]
  const [w2, w3] = [mod(1n - s * s), mod(1n + s * s)]
  return [mod(w0 * w3), mod(w2 * w1), mod(w1 * w3), mod(w0 * w2)]
}

/** SQRT_RATIO_M1 of RFC 9496, 4.2: the root of u / v that is not negative, or that of SQRT_M1 u / v. */
function sqrtRatio(u: bigint, v: bigint): { readonly isSquare: boolean; readonly root: bigint } {
  const v1 = mod(v)
  const v3 = mod(v1 * v1 * v1)
  const power = powerOf(mod(u * mod(v3 * v3 * v1)))
  const r = mod(mod(u * v3) * power)
  const check = mod(v1 * r * r)
  const isCorrect = check === mod(u)
  const isFlipped = check === mod(-u)
  const isFlippedI = check === mod(-u * SQRT_M1)
  const root = absolute(isFlipped || isFlippedI ? r * SQRT_M1 : r)
  return { isSquare: isCorrect || isFlipped, root }
}

function inverseOf(value: bigint): bigint {
  // P - 2 is 8 times the exponent of `powerOf` and 3.
  return mod(squared(powerOf(value), 3) * mod(value * value * value))
}

/** To the power of (P - 5) / 8, which is 2^252 - 3. */
function powerOf(value: bigint): bigint {
  return mod(squared(powerOfOnes(value, 250), 2) * value)
}

/** To the power of 2^bits - 1. */
function powerOfOnes(value: bigint, bits: number): bigint {
  if (bits === 1) return value
  if (bits % 2 === 1) return mod(squared(powerOfOnes(value, bits - 1), 1) * value)
  const half = powerOfOnes(value, bits / 2)
  return mod(squared(half, bits / 2) * half)
}

/** Squared so many times. */
function squared(value: bigint, times: number): bigint {
  let result = value
  for (let time = 0; time < times; time++) result = (result * result) % P
  return result
}

function absolute(value: bigint): bigint {
  const least = mod(value)
  return isNegative(least) ? P - least : least
}

/** Odd numbers are called negative (RFC 9496, 3.1). */
function isNegative(value: bigint): boolean {
  return (mod(value) & 1n) === 1n
}

function mod(value: bigint): bigint {
  const rest = value % P
  return rest < 0n ? rest + P : rest
}

function bytesOf(value: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, at) => Number((value >> BigInt(8 * at)) & 0xffn))
}

/** RFC 9496, 4.1. */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n
const SQRT_M1 = 19681161376707505956807079304988542015446066515923890162744021073123829784752n
const SQRT_AD_MINUS_ONE = 25063068953384623474111414158702152701244531502492656460079210482610430750235n
const INVSQRT_A_MINUS_D = 54469307008909316920995813868745141605393597292927456921205312896311721017578n
const ONE_MINUS_D_SQUARED = mod(1n - D * D)
const D_MINUS_ONE_SQUARED = mod((D - 1n) ** 2n)
const IDENTITY: EdwardsPoint = [0n, 1n, 1n, 0n]
const BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202n
const BASE_Y = 46316835694926478169428394003475163141307993866256225615783033603165251855960n
export const BASE: EdwardsPoint = [BASE_X, BASE_Y, 1n, (BASE_X * BASE_Y) % P]

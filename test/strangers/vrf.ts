/**
 * Verifies c2sp.org/vrf-r255 (ECVRF-RISTRETTO255-SHA512, RFC 9381 section 5.3) with nothing but the group and SHA-512.
 * Names are the specification's; integers are little-endian.
 */

import { createHash } from 'node:crypto'
import { ristretto255, ristretto255_hasher } from '@noble/curves/ed25519.js'
import { check, VerificationError } from './verification-error.ts'

const { Point } = ristretto255
type Element = InstanceType<typeof Point>

/** beta, the 64-byte hash that an 80-byte proof pi proves for Y and alpha. Throws at step `vrf`. */
export function verifyVrf(publicKey: Uint8Array, alpha: Uint8Array, pi: Uint8Array): Buffer {
  check(pi.length === 80, 'vrf', `a proof of ${pi.length} bytes`)
  const Y = decode(publicKey)
  check(!Y.is0(), 'vrf', 'the public key is the identity')
  const Gamma = decode(pi.subarray(0, 32))
  const c = littleEndian(pi.subarray(32, 48))
  const s = littleEndian(pi.subarray(48, 80))
  check(s < Point.Fn.ORDER, 'vrf', 's is not reduced')
  const H = ristretto255_hasher.deriveToCurve!(hash(0x82, Y.toBytes(), alpha)) as Element
  const U = Point.BASE.multiplyUnsafe(s).subtract(Y.multiplyUnsafe(c))
  const V = H.multiplyUnsafe(s).subtract(Gamma.multiplyUnsafe(c))
  const points = [Y, H, Gamma, U, V].map(point => point.toBytes())
  const challenge = hash(0x02, ...points, Uint8Array.of(0)).subarray(0, 16)
  check(littleEndian(challenge) === c, 'vrf', 'the proof is not of this key and input')
  return hash(0x03, Gamma.toBytes(), Uint8Array.of(0))
}

function hash(domain: number, ...parts: readonly Uint8Array[]): Buffer {
  const sha512 = createHash('sha512').update(SUITE).update(Uint8Array.of(domain))
  for (const part of parts) sha512.update(part)
  return sha512.digest()
}

function decode(bytes: Uint8Array): Element {
  try {
    return Point.fromBytes(bytes)
  } catch {
    throw new VerificationError('vrf', 'not the encoding of a group element')
  }
}

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
}

const SUITE = Buffer.concat([Uint8Array.of(0xff), Buffer.from('c2sp.org/vrf-r255')])

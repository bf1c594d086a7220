/** Keys and signatures at the edges of their curves, where libraries differ. */
import { ed25519 } from '@noble/curves/ed25519.js'
import { p256 } from '@noble/curves/nist.js'
import { ed25519PublicKey, ed25519Sign, sha512 } from '../../src/log/primitives-node.ts'
import { fromHex, fromUtf8, toHex } from './bytes.ts'
import { listSigner, signWith } from './device-lists.ts'
import type { Json } from './verdict-edits.ts'

const { Point } = ed25519
const ORDER = Point.Fn.ORDER
const P256_ORDER = p256.Point.Fn.ORDER
const P256_PRIME = p256.Point.Fp.ORDER

export function ed25519Bases(): Record<string, Json> {
  const seed = new Uint8Array(32).fill(3)
  const message = fromUtf8('message')
  const [publicKey, signature] = [ed25519PublicKey(seed), ed25519Sign(seed, message)]
  const s = numberOf(signature.subarray(32))
  const beyond = Buffer.concat([signature.subarray(0, 32), littleEndian(s + ORDER)])
  return {
    sound: signed(publicKey, message, signature),
    'a scalar beyond the order': signed(publicKey, message, beyond),
    'no point': signed(fromHex(`02${'00'.repeat(31)}`), message, signature),
    ...withTorsion(),
    ...ofSmallOrder(),
  }
}

/** Points outside of the prime-order group as key, as R, and as both: with the cofactor, all of them would hold. */
function withTorsion(): Record<string, Json> {
  const torsion = Point.fromHex(ORDER_EIGHT)
  const values: Record<string, Json> = {}
  for (let number = 0; number < 16; number++) {
    const message = fromUtf8(`message ${number}`)
    const [secret, nonce] = [BigInt(number + 1) * 0x1234567n, BigInt(number + 1) * 0x89abcdn]
    const isInKey = number % 4 > 1
    const isInR = number % 2 === 1
    const honestKey = Point.BASE.multiply(secret)
    const honestR = Point.BASE.multiply(nonce)
    const key = (isInKey ? honestKey.add(torsion) : honestKey).toBytes()
    const r = (isInR ? honestR.add(torsion) : honestR).toBytes()
    const k = numberOf(sha512(Buffer.concat([r, key, message])))
    const signature = Buffer.concat([r, littleEndian((nonce + k * secret) % ORDER)])
    values[`torsion ${number}`] = signed(key, message, signature)
  }
  return values
}

/** For such a key R = B, S = 1 satisfies the equation of many messages. */
function ofSmallOrder(): Record<string, Json> {
  const forged = Buffer.concat([Point.BASE.toBytes(), littleEndian(1n)])
  const values: Record<string, Json> = {}
  for (const [at, encoding] of SMALL_ORDER_KEYS.entries()) {
    for (const top of [0, 0x80]) {
      const key = fromHex(encoding)
      key[31]! |= top
      for (let number = 0; number < 4; number++)
        values[`small order ${at} ${top} ${number}`] = signed(key, fromUtf8(`message ${number}`), forged)
    }
  }
  return values
}

export function p256Bases(): Record<string, Json> {
  const signer = listSigner('corpus')
  const message = fromUtf8('message')
  const signature = signWith(signer, message)
  const [r, s] = [signature.slice(0, 32), signature.slice(32)]
  const key = signer.signingKey
  const values: Record<string, Json> = { sound: signed(key, message, signature) }
  const high = bigEndian(P256_ORDER - BigInt(`0x${toHex(s)}`))
  values['the other s'] = signed(key, message, Buffer.concat([r, high]))
  for (const [at, bound] of [0n, 1n, P256_ORDER - 1n, P256_ORDER, P256_PRIME, 2n ** 256n - 1n].entries()) {
    values[`r at bound ${at}`] = signed(key, message, Buffer.concat([bigEndian(bound), s]))
    values[`s at bound ${at}`] = signed(key, message, Buffer.concat([r, bigEndian(bound)]))
    values[`x at bound ${at}`] = signed(
      Buffer.concat([Uint8Array.of(4), bigEndian(bound), key.slice(33)]),
      message,
      signature,
    )
  }
  values.compressed = signed(p256.Point.fromBytes(key).toBytes(true), message, signature)
  values.hybrid = signed(Uint8Array.of(6 + (key[64]! & 1), ...key.slice(1)), message, signature)
  values.infinity = signed(new Uint8Array(65), message, signature)
  return values
}

function signed(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): Json {
  return { publicKey: toHex(publicKey), message: toHex(message), signature: toHex(signature) }
}

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${toHex(Uint8Array.from(bytes).reverse())}`)
}

function littleEndian(value: bigint): Uint8Array {
  return bigEndian(value).reverse()
}

function bigEndian(value: bigint): Uint8Array {
  return fromHex(value.toString(16).padStart(64, '0'))
}

const ORDER_EIGHT = 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'
/** The points of small order, and the spellings of them at or above the field prime. */
const SMALL_ORDER_KEYS = [
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  ORDER_EIGHT,
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
]

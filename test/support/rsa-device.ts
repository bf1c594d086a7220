/** Devices with RSA-2048 keys, which no app of the SDK has: they open form 3 of docs/check/crypto.md, with node:crypto alone. */

import {
  constants,
  createDecipheriv,
  createHash,
  createPublicKey,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  privateDecrypt,
  verify,
} from 'node:crypto'
import { type DeviceKeys, webCryptoKeys } from '../../src/app/devices/device-keys.ts'
import { memoryStorage } from '../../src/app/storage/storage.ts'

export interface RsaDevice {
  readonly privateKey: KeyObject
  /** As registered. */
  readonly publicKey: Uint8Array
}

/** The use that form 3 is bound to, and its sender's key. */
export interface RsaUse {
  /** The 81 octets of docs/check/crypto.md. */
  readonly info: Uint8Array
  /** The uncompressed point that the sender's device list has. */
  readonly signingKey: Uint8Array
}

export function newRsaDevice(encoding: 'spki' | 'pkcs1' = 'spki'): RsaDevice {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { privateKey, publicKey: publicKey.export({ type: encoding, format: 'der' }) }
}

/** Keys to register such a device with: it signs device lists as every other one does. */
export async function rsaKeys({ publicKey }: RsaDevice): Promise<DeviceKeys> {
  const { signingKey, sign } = await webCryptoKeys(memoryStorage())('1')
  const agree = async () => Promise.reject(new Error('RSA has no agreement'))
  return { publicKey: Buffer.from(publicKey).toString('base64'), signingKey, sign, agree }
}

export interface UsedBy {
  readonly userId: string
  readonly deviceId: string
}

/** `info` of docs/check/crypto.md, with a nonce of zeros. */
export function rsaInfo(callId: string, epoch: number, from: UsedBy, to: UsedBy): Uint8Array {
  const ids = [callId, from.userId, from.deviceId, to.userId, to.deviceId].map(id => {
    const octets = Buffer.alloc(8)
    octets.writeBigUInt64BE(BigInt(id))
    return octets
  })
  const epochOctets = Buffer.from([0, 0, epoch >> 8, epoch & 255])
  const [call, ...devices] = ids
  return Buffer.concat([
    Buffer.from('callsign call key v2\n'),
    call!,
    epochOctets,
    ...devices,
    Buffer.alloc(16),
  ])
}

/** The octets that were sealed. Throws unless the sender sealed it for this device and use. */
export function openForRsa(
  text: string,
  { privateKey, publicKey }: RsaDevice,
  { info, signingKey }: RsaUse,
): Buffer {
  const octets = Buffer.from(text, 'base64')
  const [sealed, signature] = [octets.subarray(0, -64), octets.subarray(-64)]
  if (octets[0] !== 3) throw new Error('a sealed key of another form')
  const signed = Buffer.concat([Buffer.from('callsign call key rsa signature v2\n'), info, sealed])
  // IEEE P1363 is r and s, 32 octets each.
  const verifier = { key: ecKeyOf(signingKey), dsaEncoding: 'ieee-p1363' as const }
  if (!verify('sha256', signed, verifier, signature)) throw new Error('the sender has not signed it')
  if (BigInt(`0x${signature.subarray(32).toString('hex')}`) > HALF_ORDER) throw new Error('the higher s')

  const oaep = { key: privateKey, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }
  const secret = privateDecrypt(oaep, sealed.subarray(1, 257))
  const keyHash = createHash('sha256').update(publicKey).digest()
  const use = Buffer.concat([Buffer.from('callsign call key rsa v2\n'), info, keyHash, signingKey])
  const derived = Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), use, 44))
  const decipher = createDecipheriv('aes-256-gcm', derived.subarray(0, 32), derived.subarray(32))
  decipher.setAuthTag(sealed.subarray(-16))
  return Buffer.concat([decipher.update(sealed.subarray(257, -16)), decipher.final()])
}

function ecKeyOf(point: Uint8Array): KeyObject {
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map(part =>
    Buffer.from(part).toString('base64url'),
  )
  return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: x!, y: y! }, format: 'jwk' })
}

const HALF_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n / 2n

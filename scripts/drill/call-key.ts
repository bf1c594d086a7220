/**
 * A call's key and how it is sealed for a device: the construction that docs/crypto.md recommends, on node:crypto, so that
 * an app that follows the page and a fake user understand each other. Devices with RSA keys get OAEP-SHA256.
 */

import {
  constants,
  createCipheriv,
  createDecipheriv,
  createECDH,
  createHash,
  createPublicKey,
  type ECDH,
  hkdfSync,
  type KeyObject,
  publicEncrypt,
  randomBytes,
} from 'node:crypto'

/** A device and its public key. */
export interface KeyHolder {
  /** `<userId>_<deviceId>` */
  readonly name: string
  /** The X9.63 point of a P-256 key, or an RSA key. */
  readonly key: Buffer | KeyObject
}

/** The key pair of a fake user's device, P-256. */
export class DeviceKeys {
  /** The X9.63 point, 65 bytes. */
  readonly point: Buffer
  readonly #pair: ECDH

  constructor() {
    this.#pair = createECDH(CURVE)
    this.point = this.#pair.generateKeys()
  }

  /** The call's key for one device: base64 of 113 bytes, of 256 for an RSA key. `name` is this device's. */
  seal(callKey: Uint8Array, name: string, to: KeyHolder): string {
    if (!Buffer.isBuffer(to.key)) return sealForRsa(callKey, to.key)
    const ephemeral = createECDH(CURVE)
    const point = ephemeral.generateKeys()
    const shared = [ephemeral.computeSecret(to.key), this.#pair.computeSecret(to.key)]
    const { key, iv } = derive(shared, point, { name, key: this.point }, { name: to.name, key: to.key })
    const cipher = createCipheriv('aes-256-gcm', key, iv)
    return Buffer.concat([point, cipher.update(callKey), cipher.final(), cipher.getAuthTag()]).toString(
      'base64',
    )
  }

  /** Throws unless `from` sealed it for this device, which is called `name`. */
  open(sealed: string, name: string, from: KeyHolder): Buffer {
    if (!Buffer.isBuffer(from.key)) throw new Error(`${from.name} has no P-256 key`)
    const bytes = Buffer.from(sealed, 'base64')
    if (bytes.length !== SEALED_BYTES) throw new Error(`a sealed key has ${SEALED_BYTES} bytes`)
    const point = bytes.subarray(0, POINT_BYTES)
    const shared = [this.#pair.computeSecret(point), this.#pair.computeSecret(from.key)]
    const { key, iv } = derive(shared, point, { name: from.name, key: from.key }, { name, key: this.point })
    const cipher = createDecipheriv('aes-256-gcm', key, iv)
    cipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    return Buffer.concat([cipher.update(bytes.subarray(POINT_BYTES, -TAG_BYTES)), cipher.final()])
  }
}

/** A device as the server names it. `publicKey` is in any encoding that `register_device` takes. */
export function keyHolder(
  userId: string,
  deviceId: string,
  device: { readonly publicKey: string; readonly keyAlgorithm: string },
): KeyHolder {
  const bytes = Buffer.from(device.publicKey, 'base64')
  const name = `${userId}_${deviceId}`
  if (device.keyAlgorithm === 'P-256') return { name, key: bytes.subarray(-POINT_BYTES) }
  const type = bytes.length > PKCS1_BYTES_MAX ? 'spki' : 'pkcs1'
  return { name, key: createPublicKey({ key: bytes, format: 'der', type }) }
}

export function newCallKey(): Buffer {
  return randomBytes(CALL_KEY_BYTES)
}

/**
 * The fingerprint people read to each other: twenty digits in groups of five, the same on both ends with the same
 * key.
 */
export function fingerprintOf(callKey: Uint8Array, callId: string, epoch: number): string {
  const purpose = `callsign call fingerprint v1 ${callId} ${epoch} `
  const digest = createHash('sha256').update(purpose).update(callKey).digest()
  const groups = [0, 4, 8, 12].map(at => digest.readUInt32BE(at) % 100_000)
  return groups.map(group => String(group).padStart(5, '0')).join(' ')
}

interface Point {
  readonly name: string
  readonly key: Buffer
}

/** HKDF-SHA256 over both secrets, bound to who sends, who is to read, and all keys that took part. */
function derive(shared: readonly Buffer[], ephemeral: Buffer, from: Point, to: Point) {
  const purpose = Buffer.from(`callsign call key v1 ${from.name} ${to.name} `)
  const info = Buffer.concat([purpose, ephemeral, from.key, to.key])
  const bytes = Buffer.from(hkdfSync('sha256', Buffer.concat(shared), NO_BYTES, info, KEY_BYTES + IV_BYTES))
  return { key: bytes.subarray(0, KEY_BYTES), iv: bytes.subarray(KEY_BYTES) }
}

function sealForRsa(callKey: Uint8Array, key: KeyObject): string {
  const padding = constants.RSA_PKCS1_OAEP_PADDING
  return publicEncrypt({ key, padding, oaepHash: 'sha256' }, callKey).toString('base64')
}

const CURVE = 'prime256v1'
const CALL_KEY_BYTES = 32
const [POINT_BYTES, KEY_BYTES, IV_BYTES, TAG_BYTES] = [65, 32, 12, 16]
const SEALED_BYTES = POINT_BYTES + CALL_KEY_BYTES + TAG_BYTES
const PKCS1_BYTES_MAX = 270
const NO_BYTES = Buffer.alloc(0)

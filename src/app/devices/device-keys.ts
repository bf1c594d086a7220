/**
 * The device's keys: one that call keys are sealed for, and one that signs device lists. Both are of P-256. They are kept
 * under their user, so that a restart and a later sign-in find the same device.
 */

import { decodeBase64, encodeBase64 } from '../../log/base64.ts'
import { type AppStorage, readStored, storageCorrupt, writeStored } from '../storage/storage.ts'

export type Bytes = Uint8Array<ArrayBuffer>

/** The operations on the keys, wherever these are kept. */
export interface DeviceKeys {
  /** SPKI, base64: as it is registered and logged. */
  readonly publicKey: string
  /** The uncompressed point, base64. */
  readonly signingKey: string
  /** ECDH with an uncompressed point: the x-coordinate. */
  agree(point: Uint8Array): Promise<Bytes>
  /** ECDSA with SHA-256, as r ‖ s. */
  sign(bytes: Uint8Array): Promise<Bytes>
}

/** Gives the keys of a user on this device, made now if there are none. */
export type DeviceKeysOf = (userId: string) => Promise<DeviceKeys>

/**
 * Keys of WebCrypto in the app's storage: as `CryptoKey`s that can't be exported where it keeps those, else as PKCS#8.
 * Rejects with `STORAGE_CORRUPT` for keys that do not belong together.
 */
export function webCryptoKeys(storage: AppStorage): DeviceKeysOf {
  const opening = new Map<string, Promise<DeviceKeys>>()
  return userId => {
    const opened = opening.get(userId) ?? openKeys(storage, `keys.${userId}`)
    opening.set(userId, opened)
    opened.catch(() => opening.delete(userId))
    return opened
  }
}

/** Private keys are `CryptoKey`s or base64 of PKCS#8. */
interface KeptKeys {
  readonly publicKey: string
  readonly privateKey: CryptoKey | string
  readonly signingKey: string
  readonly signingPrivateKey: CryptoKey | string
}

async function openKeys(storage: AppStorage, key: string): Promise<DeviceKeys> {
  const kept = (await readKept(storage, key)) ?? (await alone(key, () => makeOnce(storage, key)))
  const keys = await keysFrom(kept).catch(cause => {
    throw storageCorrupt(key, cause)
  })
  if (!(await belongTogether(keys).catch(() => false))) throw storageCorrupt(key)
  return keys
}

function readKept(storage: AppStorage, key: string): Promise<KeptKeys | undefined> {
  return readStored<KeptKeys>(storage, key, isKeptKeys)
}

/** Another tab may have made them first. */
async function makeOnce(storage: AppStorage, key: string): Promise<KeptKeys> {
  const kept = await readKept(storage, key)
  if (kept !== undefined) return kept
  const made = await makeKeys(storage.keepsCryptoKeys === true)
  await writeStored(storage, key, made)
  return made
}

/** One tab after the other, by a lock of the browser; without such locks at once. */
async function alone<Value>(name: string, act: () => Promise<Value>): Promise<Value> {
  const locks = globalThis.navigator?.locks
  return locks === undefined ? act() : locks.request(`callsign.${name}`, act)
}

async function makeKeys(keepsCryptoKeys: boolean): Promise<KeptKeys> {
  const { subtle } = globalThis.crypto
  const agreement = await subtle.generateKey(ECDH, !keepsCryptoKeys, ['deriveBits'])
  const signing = await subtle.generateKey(ECDSA, !keepsCryptoKeys, ['sign', 'verify'])
  const kept = async (key: CryptoKey) =>
    keepsCryptoKeys ? key : encodeBase64(new Uint8Array(await subtle.exportKey('pkcs8', key)))
  return {
    publicKey: encodeBase64(new Uint8Array(await subtle.exportKey('spki', agreement.publicKey))),
    privateKey: await kept(agreement.privateKey),
    signingKey: encodeBase64(new Uint8Array(await subtle.exportKey('raw', signing.publicKey))),
    signingPrivateKey: await kept(signing.privateKey),
  }
}

async function keysFrom(kept: KeptKeys): Promise<DeviceKeys> {
  const { subtle } = globalThis.crypto
  const { publicKey, signingKey } = kept
  const privateKey = await imported(kept.privateKey, ECDH, 'deriveBits')
  const signingPrivateKey = await imported(kept.signingPrivateKey, ECDSA, 'sign')
  return {
    publicKey,
    signingKey,
    async agree(point) {
      const other = await subtle.importKey('raw', Uint8Array.from(point), ECDH, false, [])
      return new Uint8Array(await subtle.deriveBits({ name: 'ECDH', public: other }, privateKey, 256))
    },
    async sign(bytes) {
      return new Uint8Array(await subtle.sign(ECDSA_SHA256, signingPrivateKey, Uint8Array.from(bytes)))
    },
  }
}

async function imported(
  key: CryptoKey | string,
  algorithm: EcKeyImportParams,
  usage: KeyUsage,
): Promise<CryptoKey> {
  if (typeof key !== 'string') return key
  const bytes = Uint8Array.from(decodeBase64(key))
  return globalThis.crypto.subtle.importKey('pkcs8', bytes, algorithm, false, [usage])
}

/** Whether the private keys are those of the public ones. */
async function belongTogether({ publicKey, signingKey, agree, sign }: DeviceKeys): Promise<boolean> {
  const { subtle } = globalThis.crypto
  const other = await subtle.generateKey(ECDH, false, ['deriveBits'])
  const own = await subtle.importKey('spki', Uint8Array.from(decodeBase64(publicKey)), ECDH, false, [])
  const shared = await subtle.deriveBits({ name: 'ECDH', public: own }, other.privateKey, 256)
  const agreed = await agree(new Uint8Array(await subtle.exportKey('raw', other.publicKey)))
  const bytes = new Uint8Array(shared)
  if (agreed.some((octet, at) => octet !== bytes[at])) return false
  const point = Uint8Array.from(decodeBase64(signingKey))
  const verifier = await subtle.importKey('raw', point, ECDSA, false, ['verify'])
  return subtle.verify(ECDSA_SHA256, verifier, await sign(bytes), bytes)
}

function isKeptKeys({ publicKey, privateKey, signingKey, signingPrivateKey }: Record<string, unknown>) {
  const isPrivate = (key: unknown) => typeof key === 'string' || (typeof key === 'object' && key !== null)
  const areTexts = typeof publicKey === 'string' && typeof signingKey === 'string'
  return areTexts && isPrivate(privateKey) && isPrivate(signingPrivateKey)
}

const ECDH = { name: 'ECDH', namedCurve: 'P-256' }
const ECDSA = { name: 'ECDSA', namedCurve: 'P-256' }
const ECDSA_SHA256 = { name: 'ECDSA', hash: 'SHA-256' }

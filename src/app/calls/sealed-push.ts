/** Pushes that Apple and Google can't read (docs/build/push.md), and the key that this device opens them with. */

import { sha256 } from '#primitives'
import { decodeBase64, encodeBase64 } from '../../log/base64.ts'
import { textOf } from '../connection/stomp-socket.ts'
import { concat } from '../devices/octets.ts'
import { type AppStorage, readStored, writeStored } from '../storage/storage.ts'

type Members = Readonly<Record<string, unknown>>

interface StoredKey {
  /** Base64 of 32 octets. */
  readonly pushKey: string
}

/** The key of the user's pushes on this device; undefined where none was made. */
export async function pushKeyOf(storage: AppStorage, userId: string): Promise<string | undefined> {
  const stored = await readStored<StoredKey>(storage, storedName(userId), ({ pushKey }) => {
    return typeof pushKey === 'string' && octetsIn(pushKey)?.length === KEY_BYTES
  })
  return stored?.pushKey
}

/** Likewise, made where there is none: kept before any server has it. */
export async function makePushKey(storage: AppStorage, userId: string): Promise<string> {
  const kept = await pushKeyOf(storage, userId)
  if (kept !== undefined) return kept
  const pushKey = encodeBase64(globalThis.crypto.getRandomValues(new Uint8Array(KEY_BYTES)))
  await writeStored(storage, storedName(userId), { pushKey } satisfies StoredKey)
  return pushKey
}

/** The members in a push. Undefined for one that was not sealed with the key for this device. */
export async function openPush(
  pushKey: string,
  deviceId: string,
  sealed: string,
): Promise<Members | undefined> {
  const octets = octetsIn(sealed)
  if (octets === undefined || octets.length < NONCE_BYTES + TAG_BYTES) return undefined
  const { subtle } = globalThis.crypto
  const raw = hmac(decodeBase64(pushKey), encode(PURPOSE))
  const key = await subtle.importKey('raw', raw, 'AES-GCM', false, ['decrypt'])
  const cipher = {
    name: 'AES-GCM',
    iv: octets.slice(0, NONCE_BYTES),
    additionalData: encode(`${PURPOSE}\n${deviceId}`),
  }
  try {
    const padded = new Uint8Array(await subtle.decrypt(cipher, key, octets.slice(NONCE_BYTES)))
    return membersIn(padded)
  } catch {
    return undefined
  }
}

/** HMAC-SHA256 with a key of at most a block: not all that stand in for WebCrypto on phones have it. */
function hmac(key: Uint8Array, text: Uint8Array) {
  const padded = (octet: number) => Uint8Array.from({ length: 64 }, (_, at) => (key[at] ?? 0) ^ octet)
  return Uint8Array.from(sha256(concat(padded(0x5c), sha256(concat(padded(0x36), text)))))
}

function membersIn(padded: Uint8Array): Members | undefined {
  let end = padded.length
  while (end > 0 && padded[end - 1] === 0) end--
  const members: unknown = JSON.parse(textOf(padded.subarray(0, end)) ?? '')
  const isObject = typeof members === 'object' && members !== null && !Array.isArray(members)
  return isObject ? (members as Members) : undefined
}

function octetsIn(base64: string) {
  try {
    return Uint8Array.from(decodeBase64(base64))
  } catch {
    return undefined
  }
}

function encode(text: string) {
  return Uint8Array.from(new TextEncoder().encode(text))
}

function storedName(userId: string): string {
  return `push-key.${userId}`
}

const PURPOSE = 'callsign sealed push v1'
const [KEY_BYTES, NONCE_BYTES, TAG_BYTES] = [32, 12, 16]

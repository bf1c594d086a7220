/**
 * The device's key pair: P-256, made by WebCrypto and kept in IndexedDB under its person, so that a reload, and a later
 * sign-in, find the same device. The private key can't be exported: it never leaves the browser, not even to this page.
 */

export type Bytes = Uint8Array<ArrayBuffer>

export interface DeviceKey {
  readonly privateKey: CryptoKey
  /** SPKI, base64 with padding: as it is registered and logged. */
  readonly publicKey: string
}

/** The key pair of a person in this browser, made now if there is none. */
export async function deviceKeyOf(userId: string): Promise<DeviceKey> {
  const database = await open()
  try {
    const kept = await done<DeviceKey | undefined>(store(database, 'readonly').get(userId))
    if (kept !== undefined) return kept
    const made = await makeDeviceKey()
    await done(store(database, 'readwrite').put(made, userId))
    return made
  } finally {
    database.close()
  }
}

/** Forgets the pair: the next one is another device. */
export async function forgetDeviceKey(userId: string): Promise<void> {
  const database = await open()
  await done(store(database, 'readwrite').delete(userId))
  database.close()
}

/** The X9.63 point of a P-256 key: the last 65 bytes of SPKI, and all of the other encoding. */
export function pointOf(publicKey: string): Bytes {
  return bytesFromBase64(publicKey).slice(-POINT_BYTES)
}

export function bytesFromBase64(text: string): Bytes {
  return Uint8Array.from(atob(text), char => char.charCodeAt(0))
}

export function base64FromBytes(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''))
}

async function makeDeviceKey(): Promise<DeviceKey> {
  const pair = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits'])
  const spki = new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey))
  return { privateKey: pair.privateKey, publicKey: base64FromBytes(spki) }
}

function open(): Promise<IDBDatabase> {
  const request = indexedDB.open('callsign', 1)
  request.onupgradeneeded = () => request.result.createObjectStore(KEYS)
  return done(request)
}

function store(database: IDBDatabase, mode: IDBTransactionMode): IDBObjectStore {
  return database.transaction(KEYS, mode).objectStore(KEYS)
}

function done<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

const KEYS = 'device-keys'
const POINT_BYTES = 65

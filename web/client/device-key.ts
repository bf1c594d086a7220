/**
 * The device's keys: a P-256 pair that call keys are sealed for, and one that signs device lists. WebCrypto makes them, and
 * IndexedDB keeps them under their person, so that a reload, and a later sign-in, find the same device. The private keys
 * can't be exported: they never leave the browser, not even to this page.
 */

export type Bytes = Uint8Array<ArrayBuffer>

export interface DeviceKey {
  readonly privateKey: CryptoKey
  /** SPKI, base64 with padding: as it is registered and logged. */
  readonly publicKey: string
  readonly signing: SigningKey
}

export interface SigningKey {
  readonly privateKey: CryptoKey
  /** The uncompressed point, base64. */
  readonly publicKey: string
}

/** The keys of a person in this browser, made now if there are none. */
export async function deviceKeyOf(userId: string): Promise<DeviceKey> {
  const database = await open()
  try {
    const kept = await done<DeviceKey | undefined>(store(database, 'readonly').get(userId))
    if (kept?.signing !== undefined) return kept
    const made = { ...(kept ?? (await makeAgreementKey())), signing: await makeSigningKey() }
    const keys = store(database, 'readwrite')
    // Another tab may have made them meanwhile.
    const first = await done<DeviceKey | undefined>(keys.get(userId))
    if (first?.signing !== undefined) return first
    await done(keys.put(made, userId))
    return made
  } finally {
    database.close()
  }
}

/** Forgets the keys: the next ones are another device. */
export async function forgetDeviceKey(userId: string): Promise<void> {
  const database = await open()
  await done(store(database, 'readwrite').delete(userId))
  database.close()
}

/** The ECDSA signature with SHA-256, as r ‖ s. */
export async function signWith({ privateKey }: SigningKey, bytes: Uint8Array): Promise<Bytes> {
  const signed = await crypto.subtle.sign(
    { name: 'ECDSA', hash: 'SHA-256' },
    privateKey,
    Uint8Array.from(bytes),
  )
  return new Uint8Array(signed)
}

/** Twenty digits by which a person tells that the device on one screen is the one that the other screen means. */
export async function deviceCode(publicKey: string, signingKey: string): Promise<string> {
  const text = new TextEncoder().encode(`callsign device v1\n${publicKey}\n${signingKey}`)
  const digest = new DataView(await crypto.subtle.digest('SHA-256', text))
  const groups = [0, 4, 8, 12].map(at => digest.getUint32(at) % 100_000)
  return groups.map(group => String(group).padStart(5, '0')).join(' ')
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

async function makeAgreementKey() {
  const pair = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits'])
  const spki = new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey))
  return { privateKey: pair.privateKey, publicKey: base64FromBytes(spki) }
}

async function makeSigningKey(): Promise<SigningKey> {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, [
    'sign',
    'verify',
  ])
  const point = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey))
  return { privateKey: pair.privateKey, publicKey: base64FromBytes(point) }
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

/** The settings that are the log's keys: all of them or, in development, none. */

import { SignalError } from '../../errors.ts'
import { assertOrigin } from '../../log/checkpoint.ts'
import { indexOriginOf } from '../../log/index-leaf.ts'
import { parseSignerKey, type SignerKey } from '../../log/note.ts'
import { parseVrfSecret } from '../../log/vrf.ts'
import type { EnvironmentReader } from './environment.ts'

export interface LogKeys {
  readonly origin: string
  /** `PRIVATE+KEY+<origin>+<id>+<base64>`. */
  readonly ktPrivateKey: string
  /** Signs each checkpoint, too, while the log changes its key. */
  readonly secondKtPrivateKey?: string
  /** Signs the output log of the log's index; absent: there is no index. */
  readonly ktIndexPrivateKey?: string
  /** Signs that, too, while the index changes its key. */
  readonly secondKtIndexPrivateKey?: string
  /** Base64 of the 32-byte scalar. */
  readonly vrfPrivateKey: string
  /** Base64, at least 32 bytes. */
  readonly secret: string
}

/** For auditors and clients; a server that gets them from the same file serves without them. */
export interface PublicKeys {
  readonly ktPublicKey?: string
  readonly vrfPublicKey?: string
  readonly ktIndexPublicKey?: string
}

/** The keys of the log: all or, in development, none. What production lacks is named. */
export function readKeySettings(
  reader: EnvironmentReader,
  isDevelopment: boolean,
): { readonly keys?: LogKeys; readonly publicKeys: PublicKeys } {
  const keys = {
    origin: reader.text('CALLSIGN_ORIGIN', 'name of the log'),
    ktPrivateKey: reader.secret('KT_PRIVATE_KEY', 'key from keygen'),
    vrfPrivateKey: reader.secret('VRF_PRIVATE_KEY', 'key from keygen'),
    secret: reader.secret('CALLSIGN_SECRET', 'base64 of 32 bytes or more'),
  }
  const second = reader.secret('KT_SECOND_PRIVATE_KEY', FOR_CHANGE)
  const index = reader.secret('KT_INDEX_PRIVATE_KEY', 'key from keygen')
  const secondIndex = reader.secret('KT_INDEX_SECOND_PRIVATE_KEY', FOR_CHANGE)
  const publicKeys = readPublicKeys(reader)
  const names = {
    origin: 'CALLSIGN_ORIGIN',
    ktPrivateKey: 'KT_PRIVATE_KEY',
    vrfPrivateKey: 'VRF_PRIVATE_KEY',
    secret: 'CALLSIGN_SECRET',
  }
  const { origin, ktPrivateKey, vrfPrivateKey, secret } = keys
  if (
    origin !== undefined &&
    ktPrivateKey !== undefined &&
    vrfPrivateKey !== undefined &&
    secret !== undefined
  ) {
    if (Buffer.from(secret, 'base64').length < SECRET_BYTES_MIN) {
      reader.problems.push(`CALLSIGN_SECRET is base64 of at least ${SECRET_BYTES_MIN} bytes`)
    }
    const logKeys = {
      origin,
      ktPrivateKey,
      vrfPrivateKey,
      ...(second && { secondKtPrivateKey: second }),
      ...(index && { ktIndexPrivateKey: index }),
      ...(secondIndex && { secondKtIndexPrivateKey: secondIndex }),
    }
    reader.problems.push(...faultsOf(logKeys))
    return { publicKeys, keys: { ...logKeys, secret } }
  }
  const missing = Object.entries(keys).filter(([, value]) => value === undefined)
  if (isDevelopment && missing.length === Object.keys(keys).length) return { publicKeys }
  for (const [name] of missing) {
    reader.problems.push(
      `${names[name as keyof typeof names]} is missing; \`node dist/scripts/keygen.js --origin O\` makes the keys`,
    )
  }
  return { publicKeys }
}

function readPublicKeys(reader: EnvironmentReader): PublicKeys {
  const ktPublicKey = reader.text('KT_PUBLIC_KEY', FOR_CLIENTS)
  const vrfPublicKey = reader.text('VRF_PUBLIC_KEY', FOR_CLIENTS)
  const ktIndexPublicKey = reader.text('KT_INDEX_PUBLIC_KEY', FOR_CLIENTS)
  return {
    ...(ktPublicKey === undefined ? {} : { ktPublicKey }),
    ...(vrfPublicKey === undefined ? {} : { vrfPublicKey }),
    ...(ktIndexPublicKey === undefined ? {} : { ktIndexPublicKey }),
  }
}

/** The faults of keys that are all there, a sentence each. */
function faultsOf(keys: Omit<LogKeys, 'secret'>): readonly string[] {
  const { origin, ktPrivateKey, secondKtPrivateKey, vrfPrivateKey } = keys
  const faults: string[] = []
  const attempt = <Key>(name: string, parse: () => Key): Key | undefined => {
    try {
      return parse()
    } catch (error) {
      faults.push(`${name}: ${error instanceof SignalError ? error.message : 'not usable'}`)
      return undefined
    }
  }
  const signerOf = (name: string, text: string | undefined) =>
    text === undefined ? undefined : attempt(name, () => parseSignerKey(text))
  const signer = signerOf('KT_PRIVATE_KEY', ktPrivateKey)
  attempt('VRF_PRIVATE_KEY', () => parseVrfSecret(vrfPrivateKey))
  if (signer !== undefined && signer.name !== origin) {
    faults.push(
      `KT_PRIVATE_KEY is of ${signer.name}, CALLSIGN_ORIGIN is ${origin}: both come from one keygen`,
    )
  }
  const second = signerOf('KT_SECOND_PRIVATE_KEY', secondKtPrivateKey)
  if (second !== undefined && second.name !== origin)
    faults.push(`KT_SECOND_PRIVATE_KEY is of ${second.name}, CALLSIGN_ORIGIN is ${origin}`)
  if (second !== undefined && second.keyId === signer?.keyId)
    faults.push('KT_SECOND_PRIVATE_KEY is the same key as KT_PRIVATE_KEY: leave it out')
  const index = signerOf('KT_INDEX_PRIVATE_KEY', keys.ktIndexPrivateKey)
  const secondIndex = signerOf('KT_INDEX_SECOND_PRIVATE_KEY', keys.secondKtIndexPrivateKey)
  if (index !== undefined || secondIndex !== undefined) {
    attempt('CALLSIGN_ORIGIN leaves no room for the name of the index', () =>
      assertOrigin(indexOriginOf(origin)),
    )
  }
  faults.push(...indexFaults(origin, { signer, second, index, secondIndex }))
  return faults
}

type Signers = Readonly<Record<'signer' | 'second' | 'index' | 'secondIndex', SignerKey | undefined>>

function indexFaults(origin: string, { signer, second, index, secondIndex }: Signers): readonly string[] {
  const faults: string[] = []
  const named = { KT_INDEX_PRIVATE_KEY: index, KT_INDEX_SECOND_PRIVATE_KEY: secondIndex }
  for (const [name, key] of Object.entries(named)) {
    if (key === undefined) continue
    if (key.name !== indexOriginOf(origin)) {
      faults.push(
        `${name} is of ${key.name}, not of ${indexOriginOf(origin)}: \`node dist/scripts/keygen.js --index --origin ${origin}\` makes one`,
      )
    }
    if ([signer, second].some(other => other !== undefined && isSamePair(other, key)))
      faults.push(`${name} is a key of the log under another name: the index needs a key of its own`)
  }
  if (secondIndex !== undefined && index === undefined)
    faults.push('KT_INDEX_SECOND_PRIVATE_KEY goes with KT_INDEX_PRIVATE_KEY, which is missing')
  if (secondIndex !== undefined && index !== undefined && isSamePair(secondIndex, index))
    faults.push('KT_INDEX_SECOND_PRIVATE_KEY is the same key as KT_INDEX_PRIVATE_KEY: leave it out')
  return faults
}

/** Whatever their names are. */
function isSamePair(one: SignerKey, other: SignerKey): boolean {
  return Buffer.compare(one.publicKey, other.publicKey) === 0
}

const SECRET_BYTES_MIN = 32
const FOR_CHANGE = 'key from keygen, for a change of key'
const FOR_CLIENTS = 'key from keygen; the server ignores it'

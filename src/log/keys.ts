/** Makes the keys of a new log, in the forms that operators keep them in (contract 14). */

import { encodeBase64 } from '#primitives'
import { SignalError } from '../errors.ts'
import { assertOrigin } from './checkpoint.ts'
import { indexOriginOf } from './index-leaf.ts'
import { formatSignerKey, formatVerifierKey, signerKeyFromSeed } from './note.ts'
import { generateVrfSecret, vrfPublicKey } from './vrf.ts'

/** The index's key alone, for a log that has its other keys. */
interface GeneratedIndexKey {
  readonly ktIndexPrivateKey: string
  readonly ktIndexPublicKey: string
}

export interface GeneratedKeys extends GeneratedIndexKey {
  readonly origin: string
  readonly ktPrivateKey: string
  readonly ktPublicKey: string
  readonly vrfPrivateKey: string
  readonly vrfPublicKey: string
  readonly secret: string
}

/**
 * `randomBytes(n)` must come from the system's generator. Throws `MALFORMED` for a bad origin, for one that leaves no room for
 * the index's, and for one that an environment file would not give back as it is.
 */
export function generateKeys(origin: string, randomBytes: (length: number) => Uint8Array): GeneratedKeys {
  assertOrigin(origin)
  const signer = signerKeyFromSeed(origin, randomBytes(32))
  const vrfSecret = generateVrfSecret(randomBytes(64))
  return {
    origin,
    ktPrivateKey: formatSignerKey(signer),
    ktPublicKey: formatVerifierKey(signer),
    vrfPrivateKey: encodeBase64(vrfSecret),
    vrfPublicKey: encodeBase64(vrfPublicKey(vrfSecret)),
    secret: encodeBase64(randomBytes(32)),
    ...generateIndexKey(origin, randomBytes),
  }
}

/** As `generateKeys`. */
export function generateIndexKey(
  origin: string,
  randomBytes: (length: number) => Uint8Array,
): GeneratedIndexKey {
  if (/[#'"`]/.test(origin)) throw new SignalError('MALFORMED', 'origin has a quotation mark or number sign')
  assertOrigin(indexOriginOf(origin))
  const signer = signerKeyFromSeed(indexOriginOf(origin), randomBytes(32))
  return { ktIndexPrivateKey: formatSignerKey(signer), ktIndexPublicKey: formatVerifierKey(signer) }
}

/** `NAME=value` lines, as `node --env-file` reads them. */
export function formatKeys(keys: GeneratedKeys): string {
  return [
    `CALLSIGN_ORIGIN=${keys.origin}`,
    `KT_PRIVATE_KEY=${keys.ktPrivateKey}`,
    `KT_PUBLIC_KEY=${keys.ktPublicKey}`,
    `VRF_PRIVATE_KEY=${keys.vrfPrivateKey}`,
    `VRF_PUBLIC_KEY=${keys.vrfPublicKey}`,
    `CALLSIGN_SECRET=${keys.secret}`,
    formatIndexKey(keys),
  ].join('\n')
}

/** As `formatKeys`. */
export function formatIndexKey({ ktIndexPrivateKey, ktIndexPublicKey }: GeneratedIndexKey): string {
  return `KT_INDEX_PRIVATE_KEY=${ktIndexPrivateKey}\nKT_INDEX_PUBLIC_KEY=${ktIndexPublicKey}\n`
}

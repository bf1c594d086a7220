/**
 * What a stranger checks who has only the log's public keys: signed checkpoints and lookup results, step by step by
 * c2sp.org/signed-note, tlog-checkpoint and tlog-proof. Nothing here or in the files beside it comes from `src/`.
 */

import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { fromBase64, fromDecimal, leafHash, rootOfPath } from './tree.ts'
import { check } from './verification-error.ts'
import { verifyVrf } from './vrf.ts'

/** The public keys of a log, from a channel that the log does not control. */
export interface LogKeys {
  readonly origin: string
  /** The four bytes in front of the log's signatures. */
  readonly keyId: Buffer
  readonly key: KeyObject
  readonly vrfPublicKey: Buffer
}

export interface Checkpoint {
  readonly size: number
  readonly rootHash: Buffer
}

/** The identity that the client asks about, and the key it expects. */
export interface ExpectedKey {
  readonly userId: bigint
  readonly deviceId: bigint
  readonly publicKey: string
}

/** One result of `get-public-keys` or, with the hash asked for, one entry of `get-key-history`. */
export interface LookupResult {
  readonly publicKey: string
  readonly vrfHash: string
  readonly proof: string
}

export interface TlogProof {
  readonly extra: Buffer
  readonly index: number
  readonly path: readonly Buffer[]
  readonly checkpoint: string
}

/** Reads a verifier key (`name+hexid+base64`) and the base64 of a VRF public key. */
export function readLogKeys(vkey: string, vrfPublicKey: string): LogKeys {
  const [, name, hexId, base64] = /^([^+\s]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? []
  const typed = fromBase64(base64 ?? '')
  const isEd25519 = typed !== undefined && typed.length === 33 && typed[0] === 1
  check(name !== undefined && isEd25519, 'verifier key', 'not an Ed25519 key')
  const keyId = createHash('sha256').update(`${name}\n`).update(typed).digest().subarray(0, 4)
  check(keyId.toString('hex') === hexId, 'verifier key', `key id ${hexId} is not of this key`)
  const x = typed.subarray(1).toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const vrf = fromBase64(vrfPublicKey)
  check(vrf?.length === 32, 'verifier key', 'the VRF key is not 32 bytes')
  return { origin: name, keyId, key, vrfPublicKey: vrf }
}

/** The tree head in a signed note, after its origin and the log's signature were checked. */
export function openCheckpoint(note: string, keys: LogKeys): Checkpoint {
  const split = note.lastIndexOf('\n\n')
  check(split > 0 && note.endsWith('\n'), 'note', 'no empty line between text and signatures')
  const text = note.slice(0, split + 1)
  verifySignatures(text, note.slice(split + 2, -1).split('\n'), keys)
  const [origin, sizeText, rootText, ...extensions] = text.slice(0, -1).split('\n')
  check(origin === keys.origin, 'origin', `${origin} is not ${keys.origin}`)
  const size = fromDecimal(sizeText ?? '')
  const rootHash = fromBase64(rootText ?? '')
  check(size !== undefined, 'checkpoint', `size ${sizeText}`)
  check(rootHash?.length === 32, 'checkpoint', `root ${rootText}`)
  check(!extensions.includes(''), 'checkpoint', 'empty extension line')
  return { size, rootHash }
}

/** The log's own signatures must all verify, and there must be one; those of other keys are not looked at. */
function verifySignatures(text: string, lines: readonly string[], { origin, keyId, key }: LogKeys): void {
  let verified = 0
  for (const line of lines) {
    const [dash, name, base64, ...more] = line.split(' ')
    check(dash === '\u2014' && more.length === 0, 'note', 'not a signature line')
    const bytes = fromBase64(base64 ?? '')
    check(bytes !== undefined && bytes.length > 4, 'note', 'a signature is not base64')
    if (name !== origin || !bytes.subarray(0, 4).equals(keyId)) continue
    check(verify(null, Buffer.from(text), key, bytes.subarray(4)), 'signature', 'does not verify')
    verified++
  }
  check(verified > 0, 'signature', 'none of the key that is known')
}

/** Takes a proof text apart, strictly (c2sp.org/tlog-proof). Here `extra` must be there: it holds the VRF proof. */
export function parseProof(text: string): TlogProof {
  // The first empty line ends the proof; the checkpoint behind it has one of its own.
  const split = text.indexOf('\n\n')
  check(split > 0, 'proof text', 'no empty line')
  const [header, extraLine, indexLine, ...hashLines] = text.slice(0, split).split('\n')
  check(header === 'c2sp.org/tlog-proof@v1', 'proof text', `header ${header}`)
  const extra = fromBase64(/^extra (.+)$/.exec(extraLine ?? '')?.[1] ?? '!')
  check(extra !== undefined, 'proof text', 'extra line')
  const index = fromDecimal(/^index (.+)$/.exec(indexLine ?? '')?.[1] ?? '!')
  check(index !== undefined, 'proof text', 'index line')
  const path = hashLines.map(line => {
    const hash = fromBase64(line)
    check(hash?.length === 32, 'proof text', 'a hash is not 32 bytes')
    return hash
  })
  return { extra, index, path, checkpoint: text.slice(split + 2) }
}

/** Checks a lookup result in the order of c2sp.org/tlog-proof; returns where in which tree the key is. */
export function verifyLookup(
  keys: LogKeys,
  { userId, deviceId, publicKey }: ExpectedKey,
  result: LookupResult,
): { readonly index: number; readonly checkpoint: Checkpoint } {
  const proof = parseProof(result.proof)
  check(result.publicKey === publicKey, 'public key', 'another key than expected')
  // (1) The leaf from what the client expects; of the answer it takes only what the VRF proof proves.
  const beta = verifyVrf(keys.vrfPublicKey, Buffer.from(`${userId}_${deviceId}`), proof.extra)
  check(beta.toString('base64') === result.vrfHash, 'vrf hash', 'not the one that the proof proves')
  const leaf = leafHash(Buffer.from(`${beta.toString('base64')}\n${publicKey}\n`))
  // (2) Origin and signature. (3) No cosignatures are asked for. (4) Inclusion.
  const checkpoint = openCheckpoint(proof.checkpoint, keys)
  const root = rootOfPath(leaf, proof.index, checkpoint.size, proof.path)
  check(root.equals(checkpoint.rootHash), 'root', 'the path leads to another root')
  return { index: proof.index, checkpoint }
}

/**
 * The text of an inclusion proof (c2sp.org/tlog-proof, version 1): index, path and the whole checkpoint it leads to.
 * Read as strictly as written; Go's reader takes more (carriage returns, leading zeros, an empty `extra`).
 */
import { decodeBase64, encodeBase64 } from '#primitives'
import { SignalError } from '../errors.ts'
import { parseDecimal } from './decimal.ts'
import { HASH_BYTES, type Hash } from './hash.ts'

/**
 * `extra` is application data that nothing authenticates: here the 80 bytes of the VRF proof, to be verified by
 * itself. `path` runs from the leaf's sibling up. `checkpoint` is a signed note, kept as it was.
 */
export interface Proof {
  readonly extra?: Uint8Array
  readonly index: number
  readonly path: readonly Hash[]
  readonly checkpoint: string
}

/** The proof as text. Throws `MALFORMED` for what `parseProof` would not read back. */
export function formatProof({ extra, index, path, checkpoint }: Proof): string {
  if (!Number.isSafeInteger(index) || index < 0) throw malformed(`index ${index} is not one below 2^53`)
  if (extra !== undefined) assertExtra(extra.length)
  assertCheckpoint(checkpoint)
  const extraLine = extra === undefined ? '' : `${EXTRA_START}${encodeBase64(extra)}\n`
  return `${PROOF_HEADER}\n${extraLine}${INDEX_START}${index}\n${formatPath(path)}\n${checkpoint}`
}

/** The lines of a path, each with its newline. Throws `MALFORMED` for a path that no tree has. */
export function formatPath(path: readonly Hash[]): string {
  if (path.length > PATH_HASHES_MAX) throw malformed(`path has ${path.length} hashes`)
  let lines = ''
  for (const hash of path) {
    if (hash.length !== HASH_BYTES) throw malformed('path has a hash that is not 32 bytes')
    lines += `${encodeBase64(hash)}\n`
  }
  return lines
}

/**
 * Reads the text of a proof. Nothing is verified, and the checkpoint is not looked into. Throws `MALFORMED` for any
 * deviation from the specification, an index from 2^53 on, above 63 hashes, or 48 kB of extra data.
 */
export function parseProof(text: string): Proof {
  // The checkpoint has a blank line of its own, so the first one ends the proof.
  const end = text.indexOf('\n\n')
  if (end < 0) throw malformed('has no blank line')
  const checkpoint = text.slice(end + 2)
  assertCheckpoint(checkpoint)
  const lines = text.slice(0, end).split('\n')
  if (lines[0] !== PROOF_HEADER) throw malformed(`does not start with ${PROOF_HEADER}`)
  const extra = lines[1]?.startsWith(EXTRA_START)
    ? decodeBase64(lines[1].slice(EXTRA_START.length))
    : undefined
  const [indexLine, ...hashes] = lines.slice(extra === undefined ? 1 : 2)
  if (!indexLine?.startsWith(INDEX_START)) throw malformed('has no index where it belongs')
  const index = parseDecimal(indexLine.slice(INDEX_START.length))
  if (hashes.length > PATH_HASHES_MAX) throw malformed(`path has ${hashes.length} hashes`)
  const path = hashes.map(parseHash)
  if (extra === undefined) return { index, path, checkpoint }
  assertExtra(extra.length)
  return { extra, index, path, checkpoint }
}

function parseHash(line: string): Hash {
  const hash = decodeBase64(line)
  if (hash.length !== HASH_BYTES) throw malformed('path has a hash that is not 32 bytes')
  return hash
}

function assertExtra(bytes: number): void {
  if (bytes === 0 || bytes > EXTRA_BYTES_MAX) throw malformed(`extra data has ${bytes} bytes`)
}

function assertCheckpoint(checkpoint: string): void {
  if (checkpoint.startsWith('\n') || !checkpoint.endsWith('\n')) {
    throw malformed('checkpoint is not lines of text')
  }
}

function malformed(reason: string): SignalError {
  return new SignalError('MALFORMED', `proof ${reason}`)
}

/** The first line of a proof, which names its form and version. */
export const PROOF_HEADER = 'c2sp.org/tlog-proof@v1'
const EXTRA_START = 'extra '
const INDEX_START = 'index '
/** No tree the C2SP protocols know is deeper. */
const PATH_HASHES_MAX = 63
/** Go's reader refuses lines above 64 KiB, which is this in base64. */
const EXTRA_BYTES_MAX = 48 * 1024

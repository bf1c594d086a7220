/**
 * Checkpoints (c2sp.org/tlog-checkpoint): the signed note by which a log commits to a tree size and a root hash.
 * Whether a tree may be signed at all, an extension of everything signed before, is for the log appender to know.
 */
import { decodeBase64, encodeBase64 } from '#primitives'
import { SignalError } from '../errors.ts'
import { parseDecimal } from './decimal.ts'
import { EMPTY_ROOT, equalHashes, HASH_BYTES, type Hash } from './hash.ts'
import { isKeyName, isNoteText, openNote, type SignerKey, signNote, type VerifierKey } from './note.ts'
import { assertTreeSize } from './tree.ts'

/** A checkpoint's content. `extensions` are lines without their newline; ours has none. */
export interface Checkpoint {
  readonly origin: string
  readonly treeSize: number
  readonly rootHash: Hash
  readonly extensions: readonly string[]
}

/** A signed tree: its size and the whole signed note. */
export interface LogHead {
  readonly treeSize: number
  readonly checkpoint: string
}

/** Longer origins are refused by torchwood, and cannot be cosigned. */
const ORIGIN_BYTES_MAX = 255

/** The text to sign. Throws `MALFORMED` for what `parseCheckpoint` would not read back. */
export function formatCheckpoint({ origin, treeSize, rootHash, extensions }: Checkpoint): string {
  assertTreeSize(treeSize)
  assertRoot(rootHash)
  for (const line of [origin, ...extensions]) {
    if (line === '' || line.includes('\n') || !isNoteText(line))
      throw malformed('has an empty or broken line')
  }
  assertOriginLength(origin)
  let text = `${origin}\n${treeSize}\n${encodeBase64(rootHash)}\n`
  for (const line of extensions) text += `${line}\n`
  return text
}

/**
 * Reads the text of a checkpoint, without its signatures. Any origin of 1 to 255 bytes is taken: other logs' names
 * may hold spaces. Throws `MALFORMED` for everything the specification does not allow and for sizes from 2^53 on.
 */
export function parseCheckpoint(text: string): Checkpoint {
  if (!text.endsWith('\n') || !isNoteText(text)) throw malformed('is not lines of text')
  const [origin, size, root, ...extensions] = text.slice(0, -1).split('\n')
  if (origin === undefined || size === undefined || root === undefined) throw malformed('has not three lines')
  assertOriginLength(origin)
  if (extensions.includes('')) throw malformed('has an empty extension line')
  const rootHash = decodeBase64(root)
  assertRoot(rootHash)
  return { origin, treeSize: parseDecimal(size), rootHash, extensions }
}

/**
 * The checkpoint of our own log, whose origin is the name of its key; `second` is another key of that name, while the log
 * changes its key. Throws `MALFORMED` for a broken tree head.
 */
export function signCheckpoint(
  { treeSize, rootHash }: { readonly treeSize: number; readonly rootHash: Hash },
  signer: SignerKey,
  second?: SignerKey,
): string {
  assertOrigin(signer.name)
  if (treeSize === 0 && !equalHashes(rootHash, EMPTY_ROOT)) throw malformed('of size 0 has another root')
  const text = formatCheckpoint({ origin: signer.name, treeSize, rootHash, extensions: [] })
  return signNote(text, second === undefined ? [signer] : [signer, second])
}

/**
 * The checkpoint in a note that the log with that key signed. Throws `MALFORMED` for bad form and
 * `SIGNATURE_INVALID` when the key did not sign it, or signed it for another origin than its name.
 */
export function openCheckpoint(note: string | Uint8Array, verifier: VerifierKey): Checkpoint {
  const checkpoint = parseCheckpoint(openNote(note, [verifier]).text)
  if (checkpoint.origin !== verifier.name) {
    throw new SignalError('SIGNATURE_INVALID', `checkpoint signed by ${verifier.name} has another origin`)
  }
  return checkpoint
}

/** Throws `MALFORMED` unless a log can have that origin and sign with a key of that name: see `isKeyName`. */
export function assertOrigin(text: string): void {
  if (!isKeyName(text)) throw malformed('origin is empty or has spaces, plus signs or control characters')
  assertOriginLength(text)
}

function assertOriginLength(origin: string): void {
  const bytes = encoder.encode(origin).length
  if (bytes < 1 || bytes > ORIGIN_BYTES_MAX) throw malformed(`origin has ${bytes} bytes, not 1 to 255`)
}

function assertRoot(rootHash: Hash): void {
  if (rootHash.length !== HASH_BYTES) throw malformed(`root hash has ${rootHash.length} bytes, not 32`)
}

function malformed(reason: string): SignalError {
  return new SignalError('MALFORMED', `checkpoint ${reason}`)
}

const encoder = new TextEncoder()

/**
 * Signed notes (c2sp.org/signed-note): a text, a blank line, and one line per signature. Ed25519 ones (type 0x01) are
 * made and checked here; other types are parsed and left to the caller. Choice, where the specification leaves room:
 * base64 is canonical or the note is refused, and a known key whose signature fails spoils the whole note, also when
 * another of its signatures is good.
 */
import { decodeBase64, ed25519PublicKey, ed25519Sign, ed25519Verify, encodeBase64, sha256 } from '#primitives'
import { SignalError } from '../errors.ts'

/** A possible signer, from a verifier key (vkey). `keyId` is a uint32, `publicKey` 32 bytes. */
export interface VerifierKey {
  readonly name: string
  readonly keyId: number
  readonly publicKey: Uint8Array
}

/** A signer: a verifier key with its 32-byte seed. */
export interface SignerKey extends VerifierKey {
  readonly seed: Uint8Array
}

/** One signature line: `signature` has the bytes behind the four of the key id. */
export interface NoteSignature {
  readonly name: string
  readonly keyId: number
  readonly signature: Uint8Array
}

/** An opened note. `text` is the signed text and ends in a newline; a key occurs once in `signatures`. */
export interface OpenedNote {
  readonly text: string
  readonly signatures: readonly NoteSignature[]
  readonly unverified: readonly NoteSignature[]
}

/** The type of an Ed25519 signature over the text of the note. */
export const ED25519_TYPE = 0x01

/** The first four bytes of SHA-256(name || 0x0A || type || publicKey), big-endian, as a number. */
export function keyId(name: string, type: number, publicKey: Uint8Array): number {
  const digest = sha256(joinBytes(encoder.encode(`${name}\n`), Uint8Array.of(type), publicKey))
  return uint32At(digest)
}

/**
 * Reads `name+keyid+base64(type || public key)`. Throws `KEY_INVALID` for any other form, another type than Ed25519,
 * or an id that is not the key's.
 */
export function parseVerifierKey(vkey: string): VerifierKey {
  const { type: _, ...key } = parseTypedKey(vkey, [ED25519_TYPE])
  return key
}

/** As `parseVerifierKey`, for keys of 32 bytes of any of these types. */
export function parseTypedKey(vkey: string, types: readonly number[]): VerifierKey & { type: number } {
  const { name, id, type, key: publicKey } = parseKey(vkey, 'verifier key', types)
  return checked({ name, keyId: keyId(name, type, publicKey), publicKey, type }, id, 'verifier key')
}

/** The inverse of `parseVerifierKey`: the vkey to publish. */
export function formatVerifierKey(key: VerifierKey): string {
  return formatTypedKey(key, ED25519_TYPE)
}

/** The inverse of `parseTypedKey`. */
export function formatTypedKey({ name, keyId, publicKey }: VerifierKey, type: number): string {
  return `${name}+${hexId(keyId)}+${encodeBase64(joinBytes(Uint8Array.of(type), publicKey))}`
}

/**
 * Reads Go's form of a signing key, `PRIVATE+KEY+name+keyid+base64(type || seed)`. Throws `KEY_INVALID` for any
 * other form or an id that is not the key's; no error quotes the text.
 */
export function parseSignerKey(skey: string): SignerKey {
  if (!skey.startsWith(SIGNER_PREFIX)) throw keyInvalid('signer key', 'does not start with PRIVATE+KEY+')
  const { name, id, key: seed } = parseKey(skey.slice(SIGNER_PREFIX.length), 'signer key', [ED25519_TYPE])
  return checked(signerKeyFromSeed(name, seed), id, 'signer key')
}

/** The inverse of `parseSignerKey`. A secret: it goes to the operator and nowhere else. */
export function formatSignerKey({ name, keyId, seed }: SignerKey): string {
  return `${SIGNER_PREFIX}${name}+${hexId(keyId)}+${encodeBase64(joinBytes(Uint8Array.of(ED25519_TYPE), seed))}`
}

/** The signing key of that name and 32-byte seed. Throws `KEY_INVALID` for a name notes cannot carry. */
export function signerKeyFromSeed(name: string, seed: Uint8Array): SignerKey {
  if (!isKeyName(name)) throw keyInvalid('signer key', 'has a name with spaces, plus signs or nothing in it')
  const publicKey = ed25519PublicKey(seed)
  return { name, keyId: keyId(name, ED25519_TYPE, publicKey), publicKey, seed }
}

/**
 * The note: `text`, which has to end in a newline, with a signature of each signer in order. Throws `MALFORMED` for
 * text a note cannot hold and for no signers.
 */
export function signNote(text: string, signers: readonly SignerKey[]): string {
  if (!text.endsWith('\n') || !isNoteText(text)) throw malformed('text cannot be signed as a note')
  if (signers.length === 0) throw malformed('without a signer')
  const message = encoder.encode(text)
  let note = `${text}\n`
  for (const { name, keyId, seed } of signers) {
    note += formatSignature({ name, keyId, signature: ed25519Sign(seed, message) })
  }
  return note
}

/** The signature line, with its newline. */
export function formatSignature({ name, keyId, signature }: NoteSignature): string {
  return `${SIGNATURE_START}${name} ${encodeBase64(joinBytes(uint32Bytes(keyId), signature))}\n`
}

/**
 * Opens a note with the keys we know. Signatures of other keys are handed back unverified, identical lines once.
 * Throws `MALFORMED` for bad form, above 100 signatures or a million bytes; `SIGNATURE_INVALID` when one of a known
 * key fails or there is none of a known key; `KEY_INVALID` when two verifiers share the name and id of a signature.
 */
export function openNote(note: string | Uint8Array, verifiers: readonly VerifierKey[]): OpenedNote {
  const { text, lines } = splitNote(noteText(note))
  const message = encoder.encode(text)
  const signatures: NoteSignature[] = []
  const unverified: NoteSignature[] = []
  for (const line of new Set(lines)) {
    const signature = parseSignatureLine(line)
    const verifier = findVerifier(verifiers, signature)
    if (verifier === undefined) {
      unverified.push(signature)
      continue
    }
    if (!ed25519Verify(verifier.publicKey, message, signature.signature)) {
      throw new SignalError('SIGNATURE_INVALID', `signature of ${verifier.name} does not verify`)
    }
    if (!signatures.some(known => isOfKey(signature, known))) signatures.push(signature)
  }
  if (signatures.length === 0) throw new SignalError('SIGNATURE_INVALID', 'no signature of a known key')
  return { text, signatures, unverified }
}

/**
 * The keys that a note says it is signed with, each as `name+id`, with which a vkey begins. None of them is verified.
 * Throws `MALFORMED` for bad form.
 */
export function statedKeys(note: string): string[] {
  return readNote(note).signatures.map(({ name, keyId }) => `${name}+${hexId(keyId)}`)
}

/** The text of a note and what its signature lines say. None of them is verified. Throws `MALFORMED` for bad form. */
export function readNote(note: string): { text: string; signatures: NoteSignature[] } {
  const { text, lines } = splitNote(noteText(note))
  return { text, signatures: lines.map(parseSignatureLine) }
}

/** Whether the name can stand in a signature line: not empty, no Unicode space, no plus, no control character. */
export function isKeyName(name: string): boolean {
  return name !== '' && !name.includes('+') && !WHITE_SPACE.test(name) && isNoteText(name)
}

/** Whether a note can hold the text: Unicode without control characters below U+0020 but for the newline. */
export function isNoteText(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) < 0x20 && text.charCodeAt(at) !== NEWLINE) return false
  }
  return !LONE_SURROGATE.test(text)
}

function noteText(note: string | Uint8Array): string {
  if (note.length > NOTE_BYTES_MAX) throw malformed(`has more than ${NOTE_BYTES_MAX} bytes`)
  if (typeof note === 'string') return note
  // A byte order mark is part of the text that was signed, so it stays. Where there is no decoder, as in React
  // Native, notes are read as texts.
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  try {
    return decoder.decode(note)
  } catch (cause) {
    throw new SignalError('MALFORMED', 'note is not UTF-8', { cause })
  }
}

/** Cuts a note at its last blank line; the text before it may hold blank lines of its own. */
function splitNote(note: string): { text: string; lines: string[] } {
  if (!isNoteText(note)) throw malformed('has control characters or lone surrogates')
  const split = note.lastIndexOf('\n\n')
  if (split < 0) throw malformed('has no blank line')
  const block = note.slice(split + 2)
  if (!block.endsWith('\n')) throw malformed('does not end in a signature line')
  const lines = block.slice(0, -1).split('\n')
  if (lines.length > SIGNATURES_MAX) throw malformed(`has more than ${SIGNATURES_MAX} signatures`)
  return { text: note.slice(0, split + 1), lines }
}

function parseSignatureLine(line: string): NoteSignature {
  const nameEnd = line.indexOf(' ', SIGNATURE_START.length)
  if (!line.startsWith(SIGNATURE_START) || nameEnd < 0) throw malformed('has a line that is no signature')
  const name = line.slice(SIGNATURE_START.length, nameEnd)
  if (!isKeyName(name)) throw malformed('has a signature without a proper name')
  const bytes = decodeBase64(line.slice(nameEnd + 1))
  if (bytes.length <= KEY_ID_BYTES) throw malformed('has a signature without bytes')
  return { name, keyId: uint32At(bytes), signature: bytes.subarray(KEY_ID_BYTES) }
}

function findVerifier(verifiers: readonly VerifierKey[], signature: NoteSignature): VerifierKey | undefined {
  const [verifier, second] = verifiers.filter(candidate => isOfKey(signature, candidate))
  if (second !== undefined) throw keyInvalid('verifier key', 'is there twice')
  return verifier
}

function isOfKey(signature: NoteSignature, key: { readonly name: string; readonly keyId: number }): boolean {
  return signature.name === key.name && signature.keyId === key.keyId
}

/** Both kinds of key: a name, eight hexadecimal digits, and 33 bytes starting with the type. */
function parseKey(
  text: string,
  kind: string,
  types: readonly number[],
): { name: string; id: string; type: number; key: Uint8Array } {
  // The base64 may hold plus signs, so only the first two separate.
  const nameEnd = text.indexOf('+')
  const idEnd = text.indexOf('+', nameEnd + 1)
  if (nameEnd < 0 || idEnd < 0) throw keyInvalid(kind, 'has not three parts')
  const name = text.slice(0, nameEnd)
  if (!isKeyName(name)) throw keyInvalid(kind, 'has no proper name')
  const bytes = keyBytes(text.slice(idEnd + 1), kind)
  const [type] = bytes
  if (type === undefined || !types.includes(type) || bytes.length !== 1 + KEY_BYTES) {
    throw keyInvalid(kind, 'is not one of Ed25519')
  }
  return { name, id: text.slice(nameEnd + 1, idEnd), type, key: bytes.slice(1) }
}

function keyBytes(text: string, kind: string): Uint8Array {
  try {
    return decodeBase64(text)
  } catch {
    throw keyInvalid(kind, 'is not canonical base64')
  }
}

function checked<Key extends VerifierKey>(key: Key, statedId: string, kind: string): Key {
  if (hexId(key.keyId) !== statedId) throw keyInvalid(kind, 'has the id of another key')
  return key
}

function keyInvalid(kind: string, reason: string): SignalError {
  return new SignalError('KEY_INVALID', `${kind} ${reason}`)
}

function malformed(reason: string): SignalError {
  return new SignalError('MALFORMED', `note ${reason}`)
}

function hexId(id: number): string {
  return id.toString(16).padStart(2 * KEY_ID_BYTES, '0')
}

function uint32At(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
}

function uint32Bytes(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value)
}

function joinBytes(...parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((total, part) => total + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

/** As Go's reader has it; the specification asks for at least 16. A post-quantum signature has about 5 kB. */
const SIGNATURES_MAX = 100
const NOTE_BYTES_MAX = 1_000_000

const SIGNER_PREFIX = 'PRIVATE+KEY+'
const SIGNATURE_START = '\u2014 '
const KEY_ID_BYTES = 4
const KEY_BYTES = 32
const NEWLINE = 0x0a
/**
 * Unicode's White_Space: `\s` lacks U+0085 and has U+FEFF, unlike Go's `unicode.IsSpace`. Spelt out, because React
 * Native's engine does not compile `\p{White_Space}`.
 */
const WHITE_SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/
const LONE_SURROGATE = /[\ud800-\udfff]/u

const encoder = new TextEncoder()

import { ed25519 } from '@noble/curves/ed25519.js'
import fc from 'fast-check'
import t from 'tap'
import {
  formatSignerKey,
  formatVerifierKey,
  isKeyName,
  keyId,
  openNote,
  parseSignerKey,
  parseVerifierKey,
  signerKeyFromSeed,
  signNote,
} from '../../src/log/note.ts'
import { sha512 } from '../../src/log/primitives-node.ts'
import { fromBase64, fromHex, fromUtf8, toBase64, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { checkProperty } from '../support/property.ts'
import { readVectors } from '../support/vectors.ts'

interface NoteVectors {
  keys: {
    vkey: string
    name: string
    key_id_hex: string
    type: number
    public_key_hex?: string
    skey?: string
    seed_hex?: string
  }[]
  key_id: { name: string; type: number; public_key_hex: string; key_id_hex: string }[]
  invalid_vkeys: { vkey: string; why: string }[]
  sign: { skey: string; text: string; existing_signatures?: string[]; note: string }[]
  open: {
    id: string
    note?: string
    note_hex?: string
    known: string[]
    ok: boolean
    error?: string
    verified?: string[]
    unverified?: string[]
  }[]
  verify: { vkey: string; note: string }[]
  signature_line_parse: { want_name: string; cases: { line: string; result: string; key_id_hex?: string }[] }
}
const vectors = readVectors<NoteVectors>('signed-note')
const ED25519_KEYS = vectors.keys.filter(key => key.type === 1)

const signer = signerKeyFromSeed('kt.example.com/log', new Uint8Array(32).fill(1))
const other = signerKeyFromSeed('witness.example.org', new Uint8Array(32).fill(2))

t.test('published Ed25519 keys are read and written', async t => {
  for (const { vkey, name, key_id_hex, public_key_hex, skey, seed_hex } of ED25519_KEYS) {
    const verifier = parseVerifierKey(vkey)
    t.equal(verifier.name, name)
    t.equal(verifier.keyId, Number.parseInt(key_id_hex, 16))
    t.equal(toHex(verifier.publicKey), public_key_hex)
    t.equal(formatVerifierKey(verifier), vkey)
    if (skey === undefined) continue
    const read = parseSignerKey(skey)
    t.equal(toHex(read.seed), seed_hex)
    t.equal(formatSignerKey(read), skey)
    t.equal(formatVerifierKey(read), vkey)
    t.same(signerKeyFromSeed(name, fromHex(seed_hex!)), read)
  }
  t.equal(ED25519_KEYS.length, 18)
})

t.test('keys of other types are refused, though their ids follow the same rule', async t => {
  for (const { vkey, name, key_id_hex, type } of vectors.keys.filter(key => key.type !== 1)) {
    t.throws(() => parseVerifierKey(vkey), { code: 'KEY_INVALID' })
    const publicKey = fromBase64(vkey.split('+').slice(2).join('+')).subarray(1)
    t.equal(keyId(name, type, publicKey), Number.parseInt(key_id_hex, 16))
  }
})

t.test('published key ids come out', async t => {
  for (const { name, type, public_key_hex, key_id_hex } of vectors.key_id) {
    t.equal(keyId(name, type, fromHex(public_key_hex)), Number.parseInt(key_id_hex, 16))
  }
})

t.test('published invalid keys are refused', async t => {
  for (const { vkey, why } of vectors.invalid_vkeys) {
    t.throws(() => parseVerifierKey(vkey), { code: 'KEY_INVALID' }, why)
    t.throws(() => parseSignerKey(`PRIVATE+KEY+${vkey}`), { code: 'KEY_INVALID' }, why)
  }
})

t.test('every part of a key and every key with a character moved on is refused', async t => {
  const read: string[] = []
  for (const { vkey, skey } of [ED25519_KEYS[0]!, ED25519_KEYS[1]!]) {
    for (const key of [vkey, skey!]) {
      const parse = key === vkey ? parseVerifierKey : parseSignerKey
      for (const changed of [...properParts(key), ...increments(key)]) {
        if (codeOf(() => parse(changed)) !== 'KEY_INVALID') read.push(changed)
      }
    }
  }
  t.same(read, [])
})

t.test('a key with a fitting id is still refused for its length, type or name', async t => {
  const vkey = (name: string, type: number, publicKey: Uint8Array) => {
    const id = keyId(name, type, publicKey).toString(16).padStart(8, '0')
    return `${name}+${id}+${toBase64(Buffer.concat([Uint8Array.of(type), publicKey]))}`
  }
  const key = other.publicKey
  t.equal(vkey(other.name, 1, key), formatVerifierKey(other))
  for (const wrong of [key.subarray(1), Buffer.concat([key, key]), new Uint8Array(0)]) {
    t.throws(() => parseVerifierKey(vkey(other.name, 1, wrong)), { code: 'KEY_INVALID' })
  }
  for (const type of [0, 2, 4, 255]) {
    t.throws(() => parseVerifierKey(vkey(other.name, type, key)), { code: 'KEY_INVALID' })
  }
  for (const name of ['', 'a b', 'a\u{a0}b', 'a\nb']) {
    t.throws(() => parseVerifierKey(vkey(name, 1, key)), { code: 'KEY_INVALID' })
  }
})

t.test('spellings of a key that lax readers take are refused', async t => {
  const [name, id, base64] = formatVerifierKey(other).split('+') as [string, string, string]
  const spellings = [
    `${name}+${id.toUpperCase()}+${base64}`,
    `${name}+${id}+${base64}=`,
    `${name}+${id}+${base64}\n`,
    ` ${name}+${id}+${base64}`,
    `${name}+${id}+${base64} `,
    `${name}+0x${id.slice(2)}+${base64}`,
  ]
  t.match(id, /[a-f]/)
  for (const vkey of spellings) t.throws(() => parseVerifierKey(vkey), { code: 'KEY_INVALID' })
})

t.test('no error about a signing key quotes it', async t => {
  const skey = formatSignerKey(signer)
  const secret = toBase64(signer.seed)
  const leaks: string[] = []
  for (const changed of [
    ...properParts(skey),
    ...increments(skey),
    skey.replace('PRIVATE', 'private'),
    secret,
  ]) {
    try {
      parseSignerKey(changed)
    } catch (error) {
      const { message, cause } = error as Error
      if (cause !== undefined || message.length > 80 || message.includes(secret.slice(0, 6)))
        leaks.push(message)
    }
  }
  t.same(leaks, [])
})

t.test('names that notes cannot carry make no key', async t => {
  const names = [
    '',
    'a b',
    'a+b',
    'a\n',
    'a\t',
    'a\u{a0}b',
    'a\u{85}b',
    'a\u{2003}b',
    'a\u{3000}',
    'a\u{1}',
    'a\u{d800}',
  ]
  for (const name of names) {
    t.throws(() => signerKeyFromSeed(name, signer.seed), { code: 'KEY_INVALID' }, JSON.stringify(name))
  }
  // U+FEFF is no white space to Unicode, though it is to a JavaScript \s.
  t.doesNotThrow(() => signerKeyFromSeed('ünï\u{feff}cödé', signer.seed))
  t.throws(() => signerKeyFromSeed('name', new Uint8Array(31)), { code: 'KEY_INVALID' })
})

t.test(
  'no name holds a character that Unicode calls white space, and each other one above U+0020 is taken',
  async t => {
    const disagreeing: string[] = []
    for (let code = 0x21; code <= 0x10_ffff; code++) {
      const char = String.fromCodePoint(code)
      const isRefused = char === '+' || /[\p{White_Space}\p{Surrogate}]/u.test(char)
      if (isKeyName(`a${char}b`) === isRefused) disagreeing.push(code.toString(16))
    }
    t.same(disagreeing, [])
  },
)

t.test('published notes are signed byte for byte', async t => {
  for (const { skey, text, existing_signatures, note } of vectors.sign) {
    const signers = [parseSignerKey(skey)]
    // Ed25519 signatures are deterministic, so the signer that was there before signs again.
    if (existing_signatures !== undefined) signers.unshift(parseSignerKey(ED25519_KEYS[0]!.skey!))
    t.equal(signNote(text, signers), note)
  }
  for (const { vkey, note } of vectors.verify) {
    t.doesNotThrow(() => openNote(note, [parseVerifierKey(vkey)]))
  }
})

t.test('published notes are opened or refused', async t => {
  for (const { id, note, note_hex, known, ok, error, verified, unverified } of vectors.open) {
    const verifiers = known.map(parseVerifierKey)
    const bytes = note === undefined ? fromHex(note_hex!) : fromUtf8(note)
    for (const form of note === undefined ? [bytes] : [bytes, note]) {
      if (!ok) {
        t.throws(() => openNote(form, verifiers), { code: codeFor(error!) }, id)
        continue
      }
      const opened = openNote(form, verifiers)
      t.same(
        opened.signatures.map(signature => signature.name),
        verified,
        id,
      )
      t.same(
        opened.unverified.map(signature => signature.name),
        unverified,
        id,
      )
    }
  }
})

t.test('published signature lines are read or refused', async t => {
  const { want_name, cases } = vectors.signature_line_parse
  for (const { line, result, key_id_hex } of cases) {
    const note = `${signNote('text\n', [signer])}${line}\n`
    // A line too short for a key id is skipped by sigsum and refused by Go; we are strict.
    if (result.startsWith('error') || result.includes('too short')) {
      t.throws(() => openNote(note, [signer]), { code: 'MALFORMED' }, result)
      continue
    }
    const [signature] = openNote(note, [signer]).unverified
    t.equal(signature?.name === want_name, result === 'accept')
    if (key_id_hex !== undefined) t.equal(signature?.keyId, Number.parseInt(key_id_hex, 16))
  }
})

t.test('any text that can be signed opens again as it was, from text and from bytes', async t => {
  checkProperty(t, [TEXT], text => {
    const note = signNote(text, [signer, other])
    const fromText = openNote(note, [other])
    const fromBytes = openNote(fromUtf8(note), [signer, other])
    return fromText.text === text && fromBytes.text === text && fromBytes.signatures.length === 2
  })
})

t.test('a note with any character changed, dropped or doubled does not open', async t => {
  const note = signNote('origin\n\n12\nünï\n', [signer])
  const opened: string[] = []
  for (let at = 0; at < note.length; at++) {
    for (const character of ['', 'x', '\n', ' ', '+', '\u{2014}', note[at]!.repeat(2)]) {
      const changed = note.slice(0, at) + character + note.slice(at + 1)
      if (changed !== note && codeOf(() => openNote(changed, [signer])) === 'none')
        opened.push(`${character} at ${at}`)
    }
  }
  t.same(opened, [])
})

t.test('text that a note cannot hold is not signed', async t => {
  for (const text of [
    '',
    'abc',
    'a\n\nb',
    'a\tb\n',
    'a\r\n',
    '\0\n',
    '\u{1f}\n',
    'a\u{d800}\n',
    '\u{dc00}a\n',
  ]) {
    t.throws(() => signNote(text, [signer]), { code: 'MALFORMED' }, JSON.stringify(text))
  }
  t.throws(() => signNote('text\n', []), { code: 'MALFORMED' })
})

t.test('a byte order mark belongs to the text', async t => {
  const note = signNote('\u{feff}text\n', [signer])
  t.equal(openNote(fromUtf8(note), [signer]).text, '\u{feff}text\n')
  t.throws(() => openNote(fromUtf8(note.slice(1)), [signer]), { code: 'SIGNATURE_INVALID' })
})

t.test('a known name with another id, and a known id with another name, are unknown keys', async t => {
  const note = signNote('text\n', [signer])
  t.throws(() => openNote(note, [{ ...signer, keyId: signer.keyId + 1 }]), { code: 'SIGNATURE_INVALID' })
  t.throws(() => openNote(note, [{ ...signer, name: 'another' }]), { code: 'SIGNATURE_INVALID' })
})

t.test('a failing signature of a known key spoils the note, wherever the good ones stand', async t => {
  const [text, good] = splitSignatures(signNote('text\n', [signer]))
  const [, foreign] = splitSignatures(signNote('other text\n', [signer]))
  const [, known] = splitSignatures(signNote('text\n', [other]))
  for (const lines of [
    [foreign],
    [good, foreign],
    [foreign, good],
    [known, foreign],
    [good, known, foreign],
  ]) {
    t.throws(() => openNote(text + lines.join(''), [signer, other]), { code: 'SIGNATURE_INVALID' })
  }
  t.equal(openNote(text + good + known + good, [signer, other]).signatures.length, 2)
})

t.test('two different good signatures of one key count once', async t => {
  const [text, first] = splitSignatures(signNote('text\n', [signer]))
  // Signed with a nonce of our choosing: RFC 8032 derives it, but verifiers cannot tell.
  const { BASE, Fn } = ed25519.Point
  const { scalar } = ed25519.utils.getExtendedPublicKey(signer.seed)
  const r = BASE.multiply(12345n)
  const digest = sha512(Buffer.concat([r.toBytes(), signer.publicKey, fromUtf8('text\n')]))
  const k = BigInt(`0x${toHex(digest.reverse())}`)
  const s = Fn.toBytes(Fn.create(12345n + k * scalar))
  const id = fromBase64(first.split(' ')[2]!).subarray(0, 4)
  const second = `\u{2014} ${signer.name} ${toBase64(Buffer.concat([id, r.toBytes(), s]))}\n`
  t.not(second, first)
  t.equal(openNote(text + second, [signer]).signatures.length, 1)
  t.equal(openNote(text + first + second, [signer]).signatures.length, 1)
})

t.test('a signature line without a proper name is refused, though its key is unknown', async t => {
  const note = signNote('text\n', [signer])
  for (const name of ['', 'a+b', 'a\u{a0}b', 'a\u{2003}']) {
    t.throws(() => openNote(`${note}\u{2014} ${name} AAAAAAAA\n`, [signer]), { code: 'MALFORMED' })
  }
  t.equal(openNote(`${note}\u{2014} a AAAAAAAA\n`, [signer]).unverified.length, 1)
})

t.test('sixteen post-quantum signatures fit, 101 lines and a million bytes do not', async t => {
  const line = (at: number) => `\u{2014} witness${at} ${toBase64(new Uint8Array(5000).fill(at))}\n`
  const note = signNote('text\n', [signer])
  const lines = (count: number) => Array.from({ length: count }, (_, at) => line(at)).join('')
  t.equal(openNote(note + lines(16), [signer]).unverified.length, 16)
  t.equal(openNote(note + lines(99), [signer]).unverified.length, 99)
  t.throws(() => openNote(note + lines(100), [signer]), { code: 'MALFORMED' })
  const long = signNote(`${'a'.repeat(1_000_000)}\n`, [signer])
  t.throws(() => openNote(long, [signer]), { code: 'MALFORMED' })
  t.throws(() => openNote(fromUtf8(long), [signer]), { code: 'MALFORMED' })
})

t.test('a non-canonical signature is refused, also of an unknown key', async t => {
  const note = signNote('text\n', [signer])
  t.match(note, /[A-Za-z0-9+/]=\n$/)
  const loose = (line: string) => line.replace(/(.)=\n$/, (_, digit) => `${nextCharacter(digit)}=\n`)
  t.throws(() => openNote(loose(note), [signer]), { code: 'MALFORMED' })
  const [, foreign] = splitSignatures(signNote('text\n', [other]))
  t.throws(() => openNote(note + loose(foreign), [signer]), { code: 'MALFORMED' })
})

/** Lines of any Unicode a note can hold, empty ones included. */
const TEXT = fc
  .array(
    fc
      .string({ unit: 'binary', maxLength: 20 })
      .map(line => [...line].filter(character => character >= ' ').join('')),
    { minLength: 1, maxLength: 6 },
  )
  .map(lines => `${lines.join('\n')}\n`)

function codeFor(error: string): string {
  if (error.startsWith('malformed')) return 'MALFORMED'
  return error === 'ambiguous key' ? 'KEY_INVALID' : 'SIGNATURE_INVALID'
}

function* properParts(text: string): Generator<string> {
  for (let start = 0; start < text.length; start++) {
    for (let end = start; end <= text.length; end++) {
      if (end - start < text.length) yield text.slice(start, end)
    }
  }
}

function* increments(text: string): Generator<string> {
  for (let at = 0; at < text.length; at++) {
    yield text.slice(0, at) + nextCharacter(text[at]!) + text.slice(at + 1)
  }
}

function nextCharacter(character: string): string {
  return String.fromCharCode(character.charCodeAt(0) + 1)
}

/** The text with its blank line, and the signature lines. */
function splitSignatures(note: string): [string, string] {
  const split = note.lastIndexOf('\n\n') + 2
  return [note.slice(0, split), note.slice(split)]
}

import t from 'tap'
import {
  assertOrigin,
  type Checkpoint,
  formatCheckpoint,
  openCheckpoint,
  parseCheckpoint,
  signCheckpoint,
} from '../../src/log/checkpoint.ts'
import { EMPTY_ROOT } from '../../src/log/hash.ts'
import {
  openNote,
  parseSignerKey,
  parseVerifierKey,
  signerKeyFromSeed,
  signNote,
} from '../../src/log/note.ts'
import { RightEdge } from '../../src/log/tree.ts'
import { fromHex, fromUtf8, toBase64, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { naiveLeafHash } from '../support/naive-tree.ts'
import { readVectors } from '../support/vectors.ts'

interface CheckpointVectors {
  verify: { vkey: string; seed_hex?: string; note: string; ok: boolean; size?: number }[]
  parse: { id: string; text: string; ok: boolean; remark?: string }[]
  marshal: { origin: string; size: number; hash_utf8: string; text: string }[]
  origin_length: { valid_bytes: number[]; invalid_bytes: number[] }
  webtessera: { skey: string; checkpoints: { size: number; note: string }[] }
}
const vectors = readVectors<CheckpointVectors>('checkpoint')

const rootHash = new Uint8Array(32).fill(9)
const root = toBase64(rootHash)
const signer = signerKeyFromSeed('kt.example.com/log', new Uint8Array(32).fill(1))

t.test('published checkpoints verify, those whose key has another name only without that rule', async t => {
  for (const { vkey, note, ok, size } of vectors.verify) {
    const verifier = parseVerifierKey(vkey)
    if (!ok) {
      t.throws(() => openNote(note, [verifier]), { code: 'SIGNATURE_INVALID' })
      continue
    }
    const checkpoint = parseCheckpoint(openNote(note, [verifier]).text)
    t.equal(checkpoint.treeSize, size)
    if (checkpoint.origin === verifier.name) t.same(openCheckpoint(note, verifier), checkpoint)
    else t.throws(() => openCheckpoint(note, verifier), { code: 'SIGNATURE_INVALID' })
  }
})

t.test('published texts are read or refused, roots of other lengths and empty lines refused', async t => {
  for (const { id, text, ok } of vectors.parse) {
    const lines = text.split('\n')
    // Leniencies of the libraries named in the remarks, against the specification.
    const isLax = lines[0] === '' || lines.slice(3, -1).includes('') || rootBytes(lines[2]) !== 32
    if (!ok || isLax) {
      t.throws(() => parseCheckpoint(text), { code: 'MALFORMED' }, id)
      continue
    }
    t.equal(formatCheckpoint(parseCheckpoint(text)), text, id)
  }
})

t.test('the lax texts are read as soon as their root has 32 bytes', async t => {
  for (const { id, text, ok } of vectors.parse) {
    const [origin, size, , ...rest] = text.split('\n')
    const repaired = [origin, size, root, ...rest].join('\n')
    if (!ok || origin === '' || rest.slice(0, -1).includes('')) continue
    t.equal(formatCheckpoint(parseCheckpoint(repaired)), repaired, id)
  }
})

t.test('a checkpoint is written as published, but for roots that are no hashes', async t => {
  for (const { origin, size, hash_utf8, text } of vectors.marshal) {
    const checkpoint = { origin, treeSize: size, rootHash: fromUtf8(hash_utf8), extensions: [] }
    t.throws(() => formatCheckpoint(checkpoint), { code: 'MALFORMED' })
    const expected = text.replace(toBase64(fromUtf8(hash_utf8)), root)
    t.equal(formatCheckpoint({ ...checkpoint, rootHash }), expected)
  }
})

t.test('the checkpoints of the webtessera log come out byte for byte', async t => {
  const { skey, checkpoints } = vectors.webtessera
  const key = parseSignerKey(skey)
  const edge = new RightEdge(0, [])
  for (const { size, note } of checkpoints) {
    while (edge.treeSize < size) edge.append(naiveLeafHash(Buffer.from(`entry-${edge.treeSize}`)))
    t.equal(signCheckpoint({ treeSize: size, rootHash: edge.rootHash() }, key), note)
    t.equal(openCheckpoint(fromUtf8(note), key).treeSize, size)
  }
})

t.test('a line of the signature has 98 bytes more than the origin', async t => {
  const note = signCheckpoint({ treeSize: 1, rootHash }, signer)
  t.equal(fromUtf8(note.slice(note.lastIndexOf('\n\n') + 2)).length, signer.name.length + 98)
})

t.test('texts the specification does not allow are refused', async t => {
  const texts = [
    '',
    '\n',
    `o\n1\n${root}`,
    `o\n1\n${root}\n\n`,
    `o\n1\n\n${root}\n`,
    `o\n1\n${root}\nx\n\ny\n`,
    `o\n1\n${root}\nxy`,
    `o\n01\n${root}\n`,
    `o\n1 \n${root}\n`,
    `o\n+1\n${root}\n`,
    `o\n\n${root}\n`,
    `o\n1.0\n${root}\n`,
    `o\n9007199254740992\n${root}\n`,
    `o\n18446744073709551615\n${root}\n`,
    `o\n1\n${root.slice(0, -1)}\n`,
    `o\n1\n${root}=\n`,
    `o\n1\n ${root}\n`,
    `o\n1\n\n`,
    `o\r\n1\r\n${root}\r\n`,
    `o\n1\n${root}\n\0\n`,
    `\u{d800}\n1\n${root}\n`,
    `o\n1\n${toBase64(rootHash.subarray(1))}\n`,
    `o\n1\n${toBase64(new Uint8Array(33))}\n`,
    // The unused bits of the last digit are set: the same root to a lax reader.
    `o\n1\n${root.slice(0, -2)}l=\n`,
  ]
  const read = texts.filter(text => codeOf(() => parseCheckpoint(text)) !== 'MALFORMED')
  t.same(read, [])
  t.equal(parseCheckpoint(`o\n9007199254740991\n${root}\n`).treeSize, Number.MAX_SAFE_INTEGER)
})

t.test('a checkpoint that could not be read back is not written', async t => {
  const good: Checkpoint = { origin: 'o', treeSize: 1, rootHash, extensions: ['x'] }
  const broken: Partial<Checkpoint>[] = [
    { origin: '' },
    { origin: 'a\nb' },
    { origin: 'a\tb' },
    { origin: '\u{d800}' },
    { treeSize: -1 },
    { treeSize: 1.5 },
    { treeSize: 2 ** 53 },
    { rootHash: rootHash.subarray(1) },
    { extensions: [''] },
    { extensions: ['a', ''] },
    { extensions: ['a\n'] },
    { extensions: ['a\rb'] },
  ]
  t.equal(formatCheckpoint(good), `o\n1\n${root}\nx\n`)
  for (const part of broken) {
    t.throws(() => formatCheckpoint({ ...good, ...part }), { code: 'MALFORMED' }, JSON.stringify(part))
  }
})

t.test('origins have 1 to 255 bytes', async t => {
  const { valid_bytes, invalid_bytes } = vectors.origin_length
  for (const bytes of valid_bytes) {
    const text = `${'o'.repeat(bytes)}\n1\n${root}\n`
    t.doesNotThrow(() => assertOrigin('o'.repeat(bytes)))
    t.equal(formatCheckpoint(parseCheckpoint(text)), text)
  }
  for (const bytes of invalid_bytes) {
    t.throws(() => assertOrigin('o'.repeat(bytes)), { code: 'MALFORMED' })
    t.throws(() => parseCheckpoint(`${'o'.repeat(bytes)}\n1\n${root}\n`), { code: 'MALFORMED' })
  }
  // 128 characters, 256 bytes.
  t.throws(() => assertOrigin('ü'.repeat(128)), { code: 'MALFORMED' })
  t.throws(() => parseCheckpoint(`${'ü'.repeat(128)}\n1\n${root}\n`), { code: 'MALFORMED' })
})

t.test('our own origin has no spaces, plus signs or control characters', async t => {
  for (const origin of ['a b', 'a+b', 'a\u{a0}b', 'a\u{2028}b', 'a\nb', 'a\u{1}b']) {
    t.throws(() => assertOrigin(origin), { code: 'MALFORMED' })
  }
  t.doesNotThrow(() => assertOrigin('localhost/callsign-dev'))
})

t.test('a checkpoint of another origin is not taken from the key', async t => {
  const text = formatCheckpoint({ origin: 'other.example.com', treeSize: 1, rootHash, extensions: [] })
  t.throws(() => openCheckpoint(signNote(text, [signer]), signer), { code: 'SIGNATURE_INVALID' })
  const stranger = signerKeyFromSeed(signer.name, new Uint8Array(32).fill(2))
  const note = signCheckpoint({ treeSize: 1, rootHash }, stranger)
  t.throws(() => openCheckpoint(note, signer), { code: 'SIGNATURE_INVALID' })
})

t.test('a signed checkpoint may carry extension lines and foreign signatures', async t => {
  const witness = signerKeyFromSeed('witness.example.org', new Uint8Array(32).fill(3))
  const text = formatCheckpoint({ origin: signer.name, treeSize: 5, rootHash, extensions: ['one', 'two'] })
  const checkpoint = openCheckpoint(signNote(text, [witness, signer]), signer)
  t.same(checkpoint.extensions, ['one', 'two'])
  t.equal(toHex(checkpoint.rootHash), toHex(rootHash))
})

t.test('the empty tree is signed with the empty root and no other', async t => {
  t.doesNotThrow(() => signCheckpoint({ treeSize: 0, rootHash: EMPTY_ROOT }, signer))
  t.throws(() => signCheckpoint({ treeSize: 0, rootHash }, signer), { code: 'MALFORMED' })
  t.throws(() => signCheckpoint({ treeSize: 1, rootHash: fromHex('00') }, signer), { code: 'MALFORMED' })
})

function rootBytes(line: string | undefined): number {
  return Buffer.from(line ?? '', 'base64').length
}

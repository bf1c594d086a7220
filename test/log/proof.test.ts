import fc from 'fast-check'
import t from 'tap'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { hashLeaf } from '../../src/log/hash.ts'
import { rootFromPath, verifyInclusion } from '../../src/log/inclusion.ts'
import { openNote, parseVerifierKey } from '../../src/log/note.ts'
import { formatProof, type Proof, parseProof } from '../../src/log/proof.ts'
import { fromBase64, fromHex, toBase64, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { checkProperty } from '../support/property.ts'
import { readVectors } from '../support/vectors.ts'

interface ProofVectors {
  header: string
  serialize: {
    index: string
    hashes: string[]
    extra_base64: string | null
    checkpoint: string
    text: string
  }[]
  parse_error: { id: string; text?: string }[]
  strictness: { id: string; text: string; recommended: string }[]
  end_to_end: {
    id: string
    log_vkey: string
    entry_hex: string
    leaf_hash_base64: string
    index: number
    proof: string
  }[]
}
const vectors = readVectors<ProofVectors>('tlog-proof')
const HEADER = vectors.header

t.test('published proofs are written and read', async t => {
  for (const { index, hashes, extra_base64, checkpoint, text } of vectors.serialize) {
    const proof: Proof = { index: Number(index), path: hashes.map(fromBase64), checkpoint }
    const whole = extra_base64 === null ? proof : { ...proof, extra: fromBase64(extra_base64) }
    t.equal(formatProof(whole), text)
    const read = parseProof(text)
    t.equal(formatProof(read), text)
    t.equal(read.extra === undefined, extra_base64 === null)
    t.equal(read.checkpoint, checkpoint)
  }
})

t.test('published refusals are refused, and so is what only Go lets pass', async t => {
  for (const { id, text } of vectors.parse_error) {
    const long = `${HEADER}\nindex 0\n${'a'.repeat(66_560)}\n\ncheckpoint\n`
    t.throws(() => parseProof(text ?? long), { code: 'MALFORMED' }, id)
  }
  for (const { id, text, recommended } of vectors.strictness) {
    t.equal(recommended, 'refuse')
    t.throws(() => parseProof(text), { code: 'MALFORMED' }, id)
  }
})

t.test('proofs of another key transparency log lead from its entries to its signed root', async t => {
  for (const vector of vectors.end_to_end) {
    const proof = parseProof(vector.proof)
    const verifier = parseVerifierKey(vector.log_vkey)
    const leafHash = hashLeaf(fromHex(vector.entry_hex))
    const { treeSize, rootHash } = openCheckpoint(proof.checkpoint, verifier)
    t.equal(toBase64(leafHash), vector.leaf_hash_base64)
    t.equal(proof.index, vector.index)
    t.equal(toHex(rootFromPath(leafHash, proof.index, treeSize, proof.path)), toHex(rootHash))
    t.equal(openNote(proof.checkpoint, [verifier]).unverified.length, vector.id.includes('three') ? 3 : 0)
    t.equal(formatProof(proof), vector.proof)
    // Changed in one place each, the proof holds for nothing.
    const claim = { leafHash, index: proof.index, treeSize, path: proof.path, rootHash }
    t.throws(() => verifyInclusion({ ...claim, index: proof.index - 1 }), { code: 'PROOF_INVALID' })
    t.throws(() => verifyInclusion({ ...claim, index: proof.index + 1 }), { code: 'PROOF_INVALID' })
    const renamed = proof.checkpoint.replace('test.', 'tesu.')
    t.throws(() => openCheckpoint(renamed, verifier), { code: 'SIGNATURE_INVALID' })
  }
})

t.test('any proof comes back as it was written', async t => {
  const hash = fc.uint8Array({ minLength: 32, maxLength: 32 })
  const extra = fc.option(fc.uint8Array({ minLength: 1, maxLength: 200 }), { nil: undefined })
  checkProperty(t, [extra, fc.maxSafeNat(), fc.array(hash, { maxLength: 63 })], (extra, index, path) => {
    const checkpoint = 'origin\n\n1\n\n\u{2014} x\n'
    const text = formatProof({ ...(extra === undefined ? {} : { extra }), index, path, checkpoint })
    const read = parseProof(text)
    return formatProof(read) === text && read.index === index && read.checkpoint === checkpoint
  })
})

t.test(
  'a proof cut short before its checkpoint ends is refused or ends in a line of the checkpoint',
  async t => {
    const { proof } = vectors.end_to_end[1]!
    const start = proof.indexOf('\n\n') + 2
    const wrong: number[] = []
    for (let length = 0; length < proof.length; length++) {
      const text = proof.slice(0, length)
      const mayBeRead = length > start + 1 && text.endsWith('\n')
      if ((codeOf(() => parseProof(text)) === 'none') !== mayBeRead) wrong.push(length)
    }
    t.same(wrong, [])
  },
)

t.test('texts out of order or with anything between are refused', async t => {
  const hash = toBase64(new Uint8Array(32))
  const heads = [
    '',
    'index 0',
    `${HEADER} \nindex 0`,
    `${HEADER.toUpperCase()}\nindex 0`,
    `\u{feff}${HEADER}\nindex 0`,
    `c2sp.org/tlog-proof@v2\nindex 0`,
    `${HEADER}\nindex 0\nextra AAAA`,
    `${HEADER}\n${hash}\nindex 0`,
    `${HEADER}\nextra AAAA\nextra AAAA\nindex 0`,
    `${HEADER}\nindex 0\nindex 0`,
    `${HEADER}\nINDEX 0`,
    `${HEADER}\nindex 0 `,
    `${HEADER}\nindex\t0`,
    `${HEADER}\nindex 9007199254740992`,
    `${HEADER}\nindex `,
    `${HEADER}\nextra  AAAA\nindex 0`,
    `${HEADER}\nextra AAAA \nindex 0`,
    `${HEADER}\nextra AAA\nindex 0`,
    `${HEADER}\nindex 0\n${hash} `,
    `${HEADER}\nindex 0\n ${hash}`,
    `${HEADER}\nindex 0\nAAAA`,
    `${HEADER}\nindex 0\n${Array(64).fill(hash).join('\n')}`,
    `${HEADER}\n# comment\nindex 0`,
  ]
  const read = heads.filter(head => codeOf(() => parseProof(`${head}\n\ncheckpoint\n`)) !== 'MALFORMED')
  t.same(read, [])
  for (const checkpoint of ['', '\n', '\ncheckpoint\n', 'checkpoint']) {
    t.throws(() => parseProof(`${HEADER}\nindex 0\n\n${checkpoint}`), { code: 'MALFORMED' })
  }
  t.doesNotThrow(() => parseProof(`${HEADER}\nindex 0\n${Array(63).fill(hash).join('\n')}\n\ncheckpoint\n`))
})

t.test('the longest extra data Go reads is read, a byte more is not', async t => {
  const proof = { index: 0, path: [], checkpoint: 'checkpoint\n' }
  const text = formatProof({ ...proof, extra: new Uint8Array(48 * 1024) })
  t.equal(parseProof(text).extra?.length, 48 * 1024)
  t.throws(() => formatProof({ ...proof, extra: new Uint8Array(48 * 1024 + 1) }), { code: 'MALFORMED' })
  const longer = toBase64(new Uint8Array(48 * 1024 + 1))
  t.throws(() => parseProof(`${HEADER}\nextra ${longer}\nindex 0\n\ncheckpoint\n`), { code: 'MALFORMED' })
})

t.test('a proof that could not be read back is not written', async t => {
  const good: Proof = { index: 0, path: [], checkpoint: 'checkpoint\n' }
  const broken: Partial<Proof>[] = [
    { index: -1 },
    { index: 0.5 },
    { index: 2 ** 53 },
    { index: Number.NaN },
    { extra: new Uint8Array(0) },
    { path: [new Uint8Array(31)] },
    { path: Array(64).fill(new Uint8Array(32)) },
    { checkpoint: '' },
    { checkpoint: '\n' },
    { checkpoint: 'checkpoint' },
    { checkpoint: '\ncheckpoint\n' },
  ]
  t.doesNotThrow(() => formatProof(good))
  for (const part of broken) t.throws(() => formatProof({ ...good, ...part }), { code: 'MALFORMED' })
})

/** Cosignatures as other implementations make and read them. */
import t from 'tap'
import {
  cosignatureLine,
  cosignedAtSeconds,
  parseWitnessKey,
  witnessKeyFromSeed,
} from '../../src/log/cosignature.ts'
import { openNote, parseSignerKey, signNote, type VerifierKey } from '../../src/log/note.ts'
import { fromHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { readVectors } from '../support/vectors.ts'

interface CosignatureVectors {
  sign_and_verify: {
    text: string
    name: string
    seed_hex: string
    vkey: string
    time: number
    line: string
  }[]
  verify_only: { text: string; vkey: string; line: string; time: number }[]
  key_forms: {
    skey: string
    ed25519_vkey?: string
    cosignature_vkey: string
  }[]
  timestamp_parse: { cases: { signature_base64: string; ok: boolean; time?: number }[] }
  response_parse: { vkey: string; text: string; body: string }
}
const vectors = readVectors<CosignatureVectors>('cosignature')
const logKey = parseSignerKey('PRIVATE+KEY+EnochRoot+af0cfe78+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA')

/** When the witness cosigned the text by each line that has its name and id. */
function timesOf(text: string, witness: VerifierKey, lines: string): (number | undefined)[] {
  return openNote(signNote(text, [logKey]) + lines, [logKey])
    .unverified.filter(({ name, keyId }) => name === witness.name && keyId === witness.keyId)
    .map(({ signature }) => cosignedAtSeconds(text, witness, signature))
}

t.test('cosignatures come out as those of Go, octet by octet', async t => {
  for (const { text, name, seed_hex, time, line } of vectors.sign_and_verify)
    t.equal(cosignatureLine(text, witnessKeyFromSeed(name, fromHex(seed_hex)), time), line)
})

t.test('published cosignatures verify, with their times; on another text they do not', async t => {
  for (const { text, vkey, time, line } of [...vectors.sign_and_verify, ...vectors.verify_only]) {
    const witness = parseWitnessKey(vkey)
    t.same(timesOf(text, witness, line), [time])
    t.same(timesOf(`${text}more\n`, witness, line), [undefined])
  }
})

t.test('with any bit changed, in time or signature, a cosignature does not verify', async t => {
  const { text, vkey, line } = vectors.verify_only[0]!
  const bytes = Buffer.from(line.split(' ')[2]!, 'base64').subarray(4)
  const witness = parseWitnessKey(vkey)
  for (let bit = 0; bit < 8 * bytes.length; bit++) {
    const changed = Uint8Array.from(bytes)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    if (cosignedAtSeconds(text, witness, changed) !== undefined) t.fail(`bit ${bit} does not count`)
  }
})

t.test('of the lines of an answer only those of the witness with the right length count', async t => {
  const { vkey, text, body } = vectors.response_parse
  t.same(timesOf(text, parseWitnessKey(vkey), body), [1234, undefined])
})

t.test('a signature over the text alone is no cosignature', async t => {
  for (const { signature_base64, ok } of vectors.timestamp_parse.cases.slice(0, 2)) {
    const bytes = Buffer.from(signature_base64, 'base64').subarray(4)
    t.equal(bytes.length === 72, ok)
    t.equal(cosignedAtSeconds('any\n', parseWitnessKey(vectors.response_parse.vkey), bytes), undefined)
  }
})

t.test('both forms of a witness key are one key', async t => {
  for (const { skey, ed25519_vkey, cosignature_vkey } of vectors.key_forms) {
    const { name, seed } = parseSignerKey(skey)
    const { seed: _, ...witness } = witnessKeyFromSeed(name, seed)
    t.same(parseWitnessKey(cosignature_vkey), witness)
    if (ed25519_vkey !== undefined) t.same(parseWitnessKey(ed25519_vkey), witness)
  }
  t.equal(
    codeOf(() => parseWitnessKey('wit+8a02ff48+BAfe++5m5B3xn/Y6v0aIaD81QA6knU+YssC0ku5oFQ4H')),
    'KEY_INVALID',
  )
  t.equal(
    codeOf(() => witnessKeyFromSeed('a b', new Uint8Array(32))),
    'KEY_INVALID',
  )
})

import fc from 'fast-check'
import t from 'tap'
import { assertPublicKey, formatEntry, PUBLIC_KEY_CHARS_MAX, parseEntry } from '../../src/log/entry.ts'
import { hashLeaf } from '../../src/log/hash.ts'
import { fromBase64, fromUtf8, toBase64, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { checkProperty } from '../support/property.ts'
import { readVectors } from '../support/vectors.ts'

interface DerivedLog {
  entry_bytes_length: number
  entries: { publicKey: string; vrfHash: string; leaf_hash_base64: string }[]
}

const vrfHash = new Uint8Array(64).fill(0xa5)
const hashLine = toBase64(vrfHash)
const keyLine = toBase64(new Uint8Array(32).fill(0x5a))

t.test('the entries of the derived log come out and come back', async t => {
  const derived = readVectors<DerivedLog>('derived-kt-e2e')
  const wrong = derived.entries.filter(({ publicKey, vrfHash, leaf_hash_base64 }) => {
    const bytes = formatEntry(fromBase64(vrfHash), publicKey)
    const entry = parseEntry(bytes)
    return (
      bytes.length !== derived.entry_bytes_length ||
      toBase64(hashLeaf(bytes)) !== leaf_hash_base64 ||
      toBase64(entry.vrfHash) !== vrfHash ||
      entry.publicKey !== publicKey
    )
  })
  t.equal(derived.entries.length, 260)
  t.same(wrong, [])
})

t.test('entries of many lengths made one after the other do not touch each other', async t => {
  const key = fc.uint8Array({ minLength: 1, maxLength: 6000 }).map(toBase64)
  checkProperty(t, [fc.array(key, { minLength: 1, maxLength: 60 })], keys => {
    const entries = keys.map(key => formatEntry(vrfHash, key))
    return entries.every((bytes, at) => {
      const text = Buffer.from(bytes).toString('latin1')
      return text === `${hashLine}\n${keys[at]}\n` && parseEntry(bytes).publicKey === keys[at]
    })
  })
})

t.test('whatever is not two lines of canonical base64 is refused', async t => {
  const texts = [
    '',
    '\n',
    '\n\n',
    `${hashLine}`,
    `${hashLine}\n`,
    `${hashLine}\n\n`,
    `\n${keyLine}\n`,
    `${hashLine}\n${keyLine}`,
    `${hashLine}\n${keyLine}\n\n`,
    `${hashLine}\n${keyLine}\n${keyLine}\n`,
    `\n${hashLine}\n${keyLine}\n`,
    `${hashLine}\r\n${keyLine}\r\n`,
    `${hashLine}\n${keyLine}\r\n`,
    ` ${hashLine}\n${keyLine}\n`,
    `${hashLine} \n${keyLine}\n`,
    `${hashLine}\n ${keyLine}\n`,
    `\u{feff}${hashLine}\n${keyLine}\n`,
    `${hashLine}\n\u{feff}${keyLine}\n`,
    `${hashLine}\n${keyLine}\0\n`,
    `${keyLine}\n${hashLine}\n`,
    `${hashLine.slice(4)}\n${keyLine}\n`,
    `AAAA${hashLine}\n${keyLine}\n`,
    `${hashLine}\n${keyLine.slice(0, -1)}\n`,
    `${hashLine}\n${keyLine.slice(1)}\n`,
    `${hashLine}\nZh==\n`,
    `${hashLine}\nZm_v\n`,
    `${hashLine}\nZg\u{f7}=\n`,
    `${hashLine}\n=\n`,
    // The last character of the hash line with unused bits set.
    `${hashLine.slice(0, -3)}R==\n${keyLine}\n`,
  ]
  const read = texts.filter(text => codeOf(() => parseEntry(fromUtf8(text))) !== 'MALFORMED')
  t.same(read, [])
  const invalidUtf8 = Buffer.concat([
    Buffer.from(`${hashLine}\n`),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('\n'),
  ])
  t.throws(() => parseEntry(invalidUtf8), { code: 'MALFORMED' })
  t.doesNotThrow(() => parseEntry(fromUtf8(`${hashLine}\n${keyLine}\n`)))
})

t.test('an entry with any byte changed is refused or another entry', async t => {
  const good = formatEntry(vrfHash, keyLine)
  let wrong = 0
  for (let at = 0; at < good.length; at++) {
    for (let value = 0; value < 256; value++) {
      if (value === good[at]) continue
      const bytes = good.with(at, value)
      if (codeOf(() => parseEntry(bytes)) === 'MALFORMED') continue
      const entry = parseEntry(bytes)
      if (toHex(formatEntry(entry.vrfHash, entry.publicKey)) !== toHex(bytes)) wrong++
    }
  }
  t.equal(wrong, 0)
})

t.test('the parsed parts share no memory with the entry', async t => {
  const bytes = formatEntry(vrfHash, keyLine)
  const entry = parseEntry(bytes)
  bytes.fill(0)
  t.equal(toHex(entry.vrfHash), toHex(vrfHash))
  t.equal(entry.publicKey, keyLine)
})

t.test('a hash that is not 64 bytes and a key that is not base64 are not written', async t => {
  for (const bytes of [0, 32, 63, 65]) {
    t.throws(() => formatEntry(new Uint8Array(bytes), keyLine), { code: 'MALFORMED' })
  }
  for (const key of [
    '',
    'A',
    'Zg',
    'Zh==',
    `${keyLine}\n`,
    `${keyLine}\n${keyLine}`,
    'Zm9v Zm9v',
    'Zm9\u{176}',
  ]) {
    t.throws(() => formatEntry(vrfHash, key), { code: 'MALFORMED' })
  }
})

t.test('Register takes keys of 1 to 1,024 characters of canonical base64', async t => {
  for (const key of ['Zg==', keyLine, 'A'.repeat(PUBLIC_KEY_CHARS_MAX)]) {
    t.doesNotThrow(() => assertPublicKey(key))
  }
  for (const key of ['', 'Zg', 'Zh==', ' Zg==', 'Zg==\n', 'A'.repeat(1025), 'A'.repeat(1028)]) {
    t.throws(() => assertPublicKey(key), { code: 'MALFORMED' })
  }
})

t.test('a key longer than Register takes is still an entry', async t => {
  const key = 'A'.repeat(60_000)
  t.equal(parseEntry(formatEntry(vrfHash, key)).publicKey, key)
})

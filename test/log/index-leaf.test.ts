/** Leaves of an index's output log, and the keys and values of its map. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import {
  formatIndexLeaf,
  indexKeyOf,
  indexKeyOfEntry,
  indexOriginOf,
  indexValueOf,
  parseIndexLeaf,
} from '../../src/log/index-leaf.ts'
import { fromUtf8, toBase64, toHex } from '../support/bytes.ts'
import { checkProperty } from '../support/property.ts'
import { bySize } from '../support/size.ts'

const inputCheckpoint = 'log.example/a\n3\nAAAA\n\n— log.example/a c2lnbmF0dXJl\n'
const root = new Uint8Array(32).map((_, at) => 255 - 8 * at)
const text = `{"input_log_cp":"${toBase64(fromUtf8(inputCheckpoint))}","index_root":[${[...root]}]}`

t.test('a leaf is the JSON that the prototype reads, and is read again', async t => {
  const leaf = formatIndexLeaf({ inputCheckpoint, root })
  t.equal(Buffer.from(leaf).toString(), text)
  t.same(parseIndexLeaf(leaf), { inputCheckpoint, root })
  t.same(Object.keys(JSON.parse(text)), ['input_log_cp', 'index_root'])
})

t.test('a leaf of another form is refused', async t => {
  const forms: Record<string, string> = {
    nothing: '',
    'no object': '[]',
    'another order': `{"index_root":[${[...root]}],"input_log_cp":""}`,
    'a member more': text.replace('}', ',"more":1}'),
    'a space': text.replace(':', ': '),
    'a line after it': `${text}\n`,
    'a root of 31 numbers': text.replace('255,', ''),
    'a root of 33 numbers': text.replace('255,', '255,255,'),
    'no numbers': text.replace(/\[.*\]/, '[]'),
    'a number above 255': text.replace('255,', '256,'),
    'a number with a zero before it': text.replace('255,', '0255,'),
    'an empty number': text.replace('255,', ',255,').replace(',7]', ']'),
    'base64 with bits behind the end': `{"input_log_cp":"YR==","index_root":[${[...root]}]}`,
    'base64 without its end': `{"input_log_cp":"YQ","index_root":[${[...root]}]}`,
    'a checkpoint that is not UTF-8': `{"input_log_cp":"/w==","index_root":[${[...root]}]}`,
    'a surrogate in UTF-8': `{"input_log_cp":"7aCA","index_root":[${[...root]}]}`,
    'too many octets': text.replace('bG9n', 'bG9n'.repeat(20_000)),
  }
  for (const [name, form] of Object.entries(forms))
    t.throws(() => parseIndexLeaf(fromUtf8(form)), { code: 'MALFORMED' }, name)
})

t.test('any octets are a leaf that is written the same, or are refused', async t => {
  const octets = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.tuple(fc.nat(text.length - 1), fc.nat(255)).map(([at, octet]) => fromUtf8(text).with(at, octet)),
  )
  checkProperty(
    t,
    [octets],
    bytes => {
      try {
        return Buffer.compare(formatIndexLeaf(parseIndexLeaf(bytes)), bytes) === 0
      } catch (error) {
        return (error as { code?: unknown }).code === 'MALFORMED'
      }
    },
    bySize({ short: 2_000, long: 50_000 }),
  )
})

t.test('the key of an entry is the hash of the text before its first line feed', async t => {
  const vrfHash = toBase64(new Uint8Array(64).fill(7))
  const key = createHash('sha256').update(vrfHash).digest('hex')
  t.equal(toHex(indexKeyOf(vrfHash)), key)
  t.equal(toHex(indexKeyOfEntry(fromUtf8(`${vrfHash}\npublic key\n`))), key)
  t.throws(() => indexKeyOfEntry(fromUtf8(vrfHash.slice(1))), { code: 'MALFORMED' })
  t.equal(indexOriginOf('log.example/a'), 'log.example/a/index')
})

t.test('the value of a key is the hash of its indexes, each in eight octets', async t => {
  for (const indexes of [[], [0], [1, 255, 256], [2 ** 32 - 1, 2 ** 32, 2 ** 48, 2 ** 53 - 1]]) {
    const octets = Buffer.alloc(8 * indexes.length)
    for (const [at, index] of indexes.entries()) octets.writeBigUInt64BE(BigInt(index), 8 * at)
    t.equal(toHex(indexValueOf(indexes)), createHash('sha256').update(octets).digest('hex'), `${indexes}`)
  }
})

/** New keys: their printed form for operators reads back as the same keys. */
import { randomBytes } from 'node:crypto'
import { parseEnv } from 'node:util'
import t from 'tap'
import { formatIndexKey, formatKeys, generateIndexKey, generateKeys } from '../../src/log/keys.ts'
import { formatSignerKey, formatVerifierKey, parseSignerKey, parseVerifierKey } from '../../src/log/note.ts'
import { parseVrfSecret, vrfPublicKey } from '../../src/log/vrf.ts'
import { fromBase64, toBase64 } from '../support/bytes.ts'

const ORIGIN = 'kt.example.org/log'

t.test('generated keys are read by the parsers that the server uses, and belong together', async t => {
  const keys = generateKeys(ORIGIN, randomBytes)
  const signer = parseSignerKey(keys.ktPrivateKey)
  t.equal(signer.name, ORIGIN)
  t.equal(formatSignerKey(signer), keys.ktPrivateKey)
  t.equal(formatVerifierKey(signer), keys.ktPublicKey)
  t.same(parseVerifierKey(keys.ktPublicKey).publicKey, signer.publicKey)
  const vrfSecret = parseVrfSecret(keys.vrfPrivateKey)
  t.equal(toBase64(vrfSecret), keys.vrfPrivateKey)
  t.equal(toBase64(vrfPublicKey(vrfSecret)), keys.vrfPublicKey)
  t.equal(fromBase64(keys.secret).length, 32)
  const index = parseSignerKey(keys.ktIndexPrivateKey)
  t.equal(index.name, `${ORIGIN}/index`)
  t.equal(formatVerifierKey(index), keys.ktIndexPublicKey)
})

t.test('the key of an index can be made alone, and its lines give it back', async t => {
  const key = generateIndexKey(ORIGIN, randomBytes)
  t.equal(formatVerifierKey(parseSignerKey(key.ktIndexPrivateKey)), key.ktIndexPublicKey)
  t.same(
    { ...parseEnv(formatIndexKey(key)) },
    { KT_INDEX_PRIVATE_KEY: key.ktIndexPrivateKey, KT_INDEX_PUBLIC_KEY: key.ktIndexPublicKey },
  )
})

t.test('the lines of an environment file give the same keys back', async t => {
  for (const origin of [
    ORIGIN,
    'localhost/callsign-dev',
    'x',
    'kt.example.org:8443/~log/a=b_c%20',
    'κ.example/λ',
  ]) {
    const keys = generateKeys(origin, randomBytes)
    t.same(
      { ...parseEnv(formatKeys(keys)) },
      {
        CALLSIGN_ORIGIN: keys.origin,
        KT_PRIVATE_KEY: keys.ktPrivateKey,
        KT_PUBLIC_KEY: keys.ktPublicKey,
        VRF_PRIVATE_KEY: keys.vrfPrivateKey,
        VRF_PUBLIC_KEY: keys.vrfPublicKey,
        CALLSIGN_SECRET: keys.secret,
        KT_INDEX_PRIVATE_KEY: keys.ktIndexPrivateKey,
        KT_INDEX_PUBLIC_KEY: keys.ktIndexPublicKey,
      },
      origin,
    )
  }
})

t.test('each key comes from random bytes of its own, and from them alone', async t => {
  const lengths: number[] = []
  const counted = (first: number) => (length: number) => {
    lengths.push(length)
    return new Uint8Array(length).fill(first + lengths.length)
  }
  const once = generateKeys(ORIGIN, counted(0))
  t.same(lengths, [32, 64, 32, 32])
  lengths.length = 0
  t.same(generateKeys(ORIGIN, counted(0)), once)
  lengths.length = 0
  const other = generateKeys(ORIGIN, counted(1))
  const same = Object.entries(other).filter(([name, value]) => once[name as keyof typeof once] === value)
  t.same(same, [['origin', ORIGIN]])
})

t.test('random keys differ', async t => {
  const made = Array.from({ length: 20 }, () => generateKeys(ORIGIN, randomBytes))
  for (const name of [
    'ktPrivateKey',
    'ktPublicKey',
    'vrfPrivateKey',
    'vrfPublicKey',
    'secret',
    'ktIndexPrivateKey',
    'ktIndexPublicKey',
  ] as const) {
    t.equal(new Set(made.map(keys => keys[name])).size, 20, name)
  }
})

t.test('an origin that cannot stand in a checkpoint, or whose index’s cannot, is refused', async t => {
  for (const origin of [
    '',
    'with space',
    'with+plus',
    'two\nlines',
    'tab\t',
    'x'.repeat(250),
    '\u2003',
    'é'.repeat(125),
  ]) {
    t.throws(
      () => generateKeys(origin, randomBytes),
      { code: 'MALFORMED' },
      JSON.stringify(origin.slice(0, 12)),
    )
  }
  t.equal(generateKeys('x'.repeat(249), randomBytes).origin.length, 249)
})

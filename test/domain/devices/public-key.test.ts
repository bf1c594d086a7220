/** Device keys: keys that OpenSSL made are taken in each encoding, and damaged ones are refused. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import t from 'tap'
import { otherEncodingOf, readPublicKey } from '../../../src/domain/devices/public-key.ts'
import { fromHex } from '../../support/bytes.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

function der(key: KeyObject, type: 'spki' | 'pkcs1'): Buffer {
  return key.export({ type, format: 'der' })
}

function newRsaKey(modulusLength: number, publicExponent = 65537): KeyObject {
  return generateKeyPairSync('rsa', { modulusLength, publicExponent }).publicKey
}

function newCurveKey(namedCurve: string): KeyObject {
  return generateKeyPairSync('ec', { namedCurve }).publicKey
}

function isTaken(key: Uint8Array | string): boolean {
  return readPublicKey(typeof key === 'string' ? key : base64(key)).kind === 'accepted'
}

/** A copy in which `bytes` stand at `at`, which may be counted from the end. */
function patched(original: Uint8Array, at: number, bytes: readonly number[]): Buffer {
  const copy = Buffer.from(original)
  copy.set(bytes, at < 0 ? copy.length + at : at)
  return copy
}

const P256 = der(newCurveKey('P-256'), 'spki')
const P256_POINT = P256.subarray(26)
const RSA = newRsaKey(2048)
const RSA_SPKI = der(RSA, 'spki')
const RSA_PKCS1 = der(RSA, 'pkcs1')
/** The public key of RFC 6979, A.2.5. */
const RFC_POINT = fromHex(
  '0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6' +
    '7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299',
)

t.test('keys are taken in their four encodings', async t => {
  const taken = (algorithm: string, encoding: string) => ({ kind: 'accepted', algorithm, encoding })
  for (let run = 0; run < 20; run++) {
    const spki = der(newCurveKey('P-256'), 'spki')
    t.same(readPublicKey(base64(spki)), taken('P-256', 'spki'))
    t.same(readPublicKey(base64(spki.subarray(26))), taken('P-256', 'x963'))
  }
  t.same(readPublicKey(base64(RFC_POINT)), taken('P-256', 'x963'))
  t.same(readPublicKey(base64(RSA_SPKI)), taken('RSA-2048', 'spki'))
  t.same(readPublicKey(base64(RSA_PKCS1)), taken('RSA-2048', 'pkcs1'))
})

t.test('each encoding of a key has the other one as its other', t => {
  for (const [one, other] of [
    [P256, P256_POINT],
    [RSA_SPKI, RSA_PKCS1],
  ] as const) {
    t.equal(otherEncodingOf(base64(one)), base64(other))
    t.equal(otherEncodingOf(base64(other)), base64(one))
  }
  t.end()
})

t.test('an algorithm that is sent must be the one of the key', async t => {
  t.ok(readPublicKey(base64(P256), 'P-256').kind === 'accepted')
  t.ok(readPublicKey(base64(RSA_PKCS1), 'RSA-2048').kind === 'accepted')
  for (const [key, algorithm] of [
    [P256, 'RSA-2048'],
    [RSA_SPKI, 'P-256'],
    [P256, 'p-256'],
    [P256, ''],
  ] as const) {
    t.match(readPublicKey(base64(key), algorithm), { kind: 'refused', field: 'keyAlgorithm' })
  }
  t.match(readPublicKey('AAAA', 'nonsense'), { field: 'publicKey' }, 'a bad key is named first')
})

t.test('a point off the curve is refused', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  let taken = 0
  for (let run = 0; run < 300; run++) {
    const at = 1 + Math.floor(random() * 64)
    const damaged = patched(P256_POINT, at, [P256_POINT[at]! ^ (1 << Math.floor(random() * 8))])
    if (isTaken(damaged) || isTaken(Buffer.concat([P256.subarray(0, 26), damaged]))) taken++
  }
  t.equal(taken, 0, `seed ${seed}`)
  t.notOk(
    isTaken(Buffer.concat([P256_POINT.subarray(0, 1), P256_POINT.subarray(33), P256_POINT.subarray(1, 33)])),
  )
})

t.test('coordinates at and above the prime are refused', async t => {
  const prime = [...fromHex('ffffffff00000001000000000000000000000000ffffffffffffffffffffffff')]
  t.notOk(isTaken(patched(P256_POINT, 1, prime)))
  t.notOk(isTaken(patched(P256_POINT, 33, prime)))
  t.notOk(isTaken(patched(P256_POINT, 1, Array<number>(64).fill(255))))
  t.notOk(isTaken(patched(P256_POINT, 1, Array<number>(64).fill(0))))
})

t.test('a coordinate above the prime is refused, though it equals a valid one', async t => {
  const prime = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n
  const b = BigInt('0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b')
  const point = (x: bigint, y: bigint) =>
    fromHex(`04${[x, y].map(each => each.toString(16).padStart(64, '0')).join('')}`)
  let small = 0
  for (let x = 0n; x < 40n; x++) {
    const y = power(((x * x - 3n) * x + b) % prime, (prime + 1n) / 4n, prime)
    const isPoint = (y * y - (x * x - 3n) * x - b) % prime === 0n
    if (isTaken(point(x, y)) !== isPoint) t.fail(`x = ${x}`)
    if (isTaken(point(x + prime, y))) t.fail(`x = ${x} plus the prime`)
    if (isPoint) small++
  }
  t.ok(small > 10, `${small} points have a small x`)
})

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let [result, square] = [1n, base]
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * square) % modulus
    square = (square * square) % modulus
  }
  return result
}

t.test('what OpenSSL takes for a point is taken, and nothing else', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const differ: string[] = []
  for (let run = 0; run < 400; run++) {
    const bytes = der(newCurveKey('P-256'), 'spki')
    if (run % 2 === 1) bytes[27 + Math.floor(random() * 64)]! ^= 1 + Math.floor(random() * 255)
    if (isTaken(bytes) !== opensslTakes(bytes)) differ.push(base64(bytes))
  }
  t.same(differ, [], `seed ${seed}`)
})

function opensslTakes(key: Buffer): boolean {
  try {
    createPublicKey({ key, format: 'der', type: 'spki' })
    return true
  } catch {
    return false
  }
}

t.test('the point at infinity, compressed and hybrid points are refused, and the process lives', async t => {
  const parity = P256_POINT[64]! % 2
  const compressed = Buffer.from([2 + parity, ...P256_POINT.subarray(1, 33)])
  const algorithm = '301306072a8648ce3d020106082a8648ce3d030107'
  const bad = {
    'infinity alone': fromHex('00'),
    'infinity in SPKI': fromHex(`3019${algorithm}03020000`),
    'infinity with the length of a key': Buffer.alloc(65),
    'infinity in SPKI with the length of a key': Buffer.concat([P256.subarray(0, 26), Buffer.alloc(65)]),
    compressed,
    'compressed in SPKI': Buffer.concat([fromHex(`3039${algorithm}032200`), compressed]),
    hybrid: patched(P256_POINT, 0, [6 + parity]),
    'hybrid in SPKI': patched(P256, 26, [6 + parity]),
  }
  for (const [what, bytes] of Object.entries(bad)) t.notOk(isTaken(bytes), what)
})

t.test('keys of other kinds and sizes are refused', async t => {
  const bad = {
    'P-384': der(newCurveKey('P-384'), 'spki'),
    secp256k1: der(newCurveKey('secp256k1'), 'spki'),
    ed25519: der(generateKeyPairSync('ed25519').publicKey, 'spki'),
    x25519: der(generateKeyPairSync('x25519').publicKey, 'spki'),
    'RSA-1024': der(newRsaKey(1024), 'spki'),
    'RSA-2040': der(newRsaKey(2040), 'spki'),
    'RSA-3072': der(newRsaKey(3072), 'spki'),
    'RSA-2048 with exponent 3': der(newRsaKey(2048, 3), 'pkcs1'),
    'RSA-2048 with exponent 65539': patched(RSA_PKCS1, -1, [3]),
    'RSA-PSS': generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).publicKey.export({
      type: 'spki',
      format: 'der',
    }),
  }
  for (const [what, bytes] of Object.entries(bad)) t.notOk(isTaken(bytes), what)
})

t.test('a modulus of another size in the right number of bytes is refused', async t => {
  t.notOk(isTaken(patched(RSA_PKCS1, 9, [RSA_PKCS1[9]! & 0x7f])), 'one bit short')
  t.notOk(isTaken(patched(RSA_PKCS1, 9, [0, 0])), 'with zeros before it')
  t.notOk(isTaken(patched(RSA_PKCS1, 8, [1])), '2049 bits')
  t.notOk(isTaken(patched(RSA_PKCS1, 264, [RSA_PKCS1[264]! - 1])), 'even')
})

t.test('DER that is not canonical is refused, though OpenSSL reads it', async t => {
  // The length of the outer sequence with one byte more than it needs, and a byte after the end.
  const longLength = Buffer.concat([fromHex('308159'), P256.subarray(2)])
  const trailing = Buffer.concat([P256, Buffer.from([0])])
  for (const bytes of [longLength, trailing]) {
    t.doesNotThrow(() => createPublicKey({ key: bytes, format: 'der', type: 'spki' }))
    t.notOk(isTaken(bytes))
  }
  t.notOk(isTaken(Buffer.concat([RSA_PKCS1, Buffer.from([0])])))
  t.notOk(isTaken(P256.subarray(0, -1)))
})

t.test('a change to any byte before the modulus or the point is refused', async t => {
  let taken = 0
  for (const [key, until] of [
    [P256, 27],
    [P256_POINT, 1],
    [RSA_SPKI, 33],
    [RSA_PKCS1, 9],
  ] as const) {
    for (let at = 0; at < until; at++) {
      for (let bit = 0; bit < 8; bit++) if (isTaken(patched(key, at, [key[at]! ^ (1 << bit)]))) taken++
    }
  }
  t.equal(taken, 0)
})

t.test('text is canonical base64 and not too long', async t => {
  const text = base64(P256)
  const bad = [
    '',
    '=',
    '!',
    ` ${text}`,
    `${text}\n`,
    `${text.slice(0, 60)}\n${text.slice(60)}`,
    `${text}=`,
    text.slice(0, -1),
    base64(P256_POINT).replace(/=+$/, ''),
    `-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----`,
    'A'.repeat(1_028),
    'A'.repeat(10_000_000),
  ]
  t.same(bad.filter(isTaken), [])
  t.match(readPublicKey('A'.repeat(1_028)), { reason: /1024 characters/ }, 'before it is decoded')
  const [x963, last] = [base64(P256_POINT), base64(P256_POINT).at(-2)!]
  const loose = String.fromCharCode(last.charCodeAt(0) + 1)
  t.notOk(isTaken(`${x963.slice(0, -2)}${loose}=`), 'unused bits that are not zero')
  const url = base64(RSA_SPKI).replaceAll('+', '-').replaceAll('/', '_')
  t.notOk(isTaken(url), 'the alphabet of URLs')
})

/** The VRF: published vectors, the reference and the fast implementation against each other, and refusals. */
import { ristretto255, ristretto255_hasher } from '@noble/curves/ed25519.js'
import fc from 'fast-check'
import sodium from 'libsodium-wrappers-sumo'
import t from 'tap'

import {
  encodeToGroup,
  generateChallenge,
  generateNonce,
  generateVrfSecret,
  hashVrf,
  parseVrfSecret,
  proveVrf,
  vrfInput,
  vrfPublicKey,
} from '../../src/log/vrf.ts'
import { createFastVrf, type FastVrf } from '../../src/log/vrf-fast.ts'
import { parseVrfPublicKey, verifyVrf, vrfHashFromProof } from '../../src/log/vrf-verify.ts'
import { seedOf } from '../support/seed.ts'
import { readVectors } from '../support/vectors.ts'

interface ValidCase {
  readonly id: string
  readonly sk: string
  readonly pk: string
  readonly alpha: string
  readonly h: string
  readonly k: string
  readonly gamma: string
  readonly u: string
  readonly v: string
  readonly c: string
  readonly pi: string
  readonly beta: string
}

interface VerifyCase {
  readonly id: string
  readonly pk: string
  readonly alpha: string
  readonly pi: string
  readonly beta: string
}

interface RistrettoVectors {
  readonly generator_multiples_hex: readonly string[]
  readonly invalid_encodings_hex: Readonly<Record<string, readonly string[]>>
  readonly derive_from_sha512: readonly MapCase[]
  readonly derive_from_bytes: readonly MapCase[]
}

interface MapCase {
  readonly uniform_bytes_hex: string
  readonly element_hex: string
}

const published = readVectors<{
  published: ValidCase[]
  go_generated_verify_only: { cases: VerifyCase[] }
}>('vrf-r255')
const derived = readVectors<{ valid: ValidCase[]; invalid: VerifyCase[] }>('derived-vrf-r255')
const ristretto = readVectors<RistrettoVectors>('ristretto255')
const validCases = [...published.published, ...derived.valid]
const invalidEncodings = Object.values(ristretto.invalid_encodings_hex).flat()
const mapCases = [...ristretto.derive_from_sha512, ...ristretto.derive_from_bytes]

const { Point } = ristretto255
const Q = Point.Fn.ORDER
const UINT64_MAX = 2n ** 64n - 1n
const seed = seedOf()
const secret = fromHex(published.published[0]!.sk)
const publicKey = fromHex(published.published[0]!.pk)

t.test('every step of the reference gives the intermediate value of the vectors', async t => {
  for (const vector of validCases) {
    const x = fromHex(vector.sk)
    const Y = vrfPublicKey(x)
    const H = encodeToGroup(Y, fromHex(vector.alpha))
    const k = generateNonce(x, H)
    const elements = [H, Point.fromHex(vector.gamma), Point.BASE.multiply(k), H.multiply(k)]
    const steps = {
      pk: toHex(Y),
      h: H.toHex(),
      k: toHex(Point.Fn.toBytes(k)),
      u: elements[2]!.toHex(),
      v: elements[3]!.toHex(),
      c: toHex(generateChallenge(Y, elements)),
    }
    const { pk, h, u, v, c } = vector
    t.same(steps, { pk, h, k: vector.k, u, v, c }, vector.id)
  }
})

t.test('the reference gives the proof and hash of the vectors, and verifies them', async t => {
  for (const vector of validCases) {
    const input = fromHex(vector.alpha)
    const proof = proveVrf(fromHex(vector.sk), input)
    t.equal(toHex(proof), vector.pi, `${vector.id}: proof`)
    t.equal(toHex(hashVrf(fromHex(vector.sk), input)), vector.beta, `${vector.id}: hash`)
    t.equal(toHex(vrfHashFromProof(proof)), vector.beta, `${vector.id}: hash from proof`)
    t.equal(toHex(verifyVrf(fromHex(vector.pk), input, proof)), vector.beta, `${vector.id}: verified hash`)
  }
})

t.test('the fast implementation gives the proof, hash and public key of the vectors', async t => {
  for (const vector of validCases) {
    const vrf = await fastVrfOf(fromHex(vector.sk))
    const input = fromHex(vector.alpha)
    const proven = vrf.prove(input)
    t.equal(toHex(vrf.publicKey), vector.pk, `${vector.id}: public key`)
    t.equal(toHex(proven.vrfProof), vector.pi, `${vector.id}: proof`)
    t.equal(toHex(proven.vrfHash), vector.beta, `${vector.id}: hash with the proof`)
    t.equal(toHex(vrf.hash(input)), vector.beta, `${vector.id}: hash alone`)
  }
})

t.test('proofs made in Go verify', async t => {
  for (const { pk, alpha, pi, beta } of published.go_generated_verify_only.cases) {
    t.equal(toHex(verifyVrf(fromHex(pk), fromHex(alpha), fromHex(pi))), beta)
  }
})

t.test('each invalid proof or key of the vectors is refused', async t => {
  for (const { id, pk, alpha, pi } of derived.invalid) {
    const code = id === 'pk-noncanonical' || id === 'identity-pk' ? 'KEY_INVALID' : 'PROOF_INVALID'
    t.throws(() => verifyVrf(fromHex(pk), fromHex(alpha), fromHex(pi)), { code }, id)
  }
})

t.test('a proof with any one byte changed is refused', async t => {
  const input = vrfInput(1n, 1n)
  const proof = proveVrf(secret, input)
  let refused = 0
  for (const index of proof.keys()) {
    const changed = Uint8Array.from(proof)
    changed[index]! ^= 1 << (index % 8)
    if (codeOf(() => verifyVrf(publicKey, input, changed)) === 'PROOF_INVALID') refused++
  }
  t.equal(refused, proof.length)
})

t.test('the hash of a proof that does not decode is refused', async t => {
  const proof = proveVrf(secret, vrfInput(1n, 1n))
  t.throws(() => vrfHashFromProof(proof.subarray(1)), { code: 'PROOF_INVALID' })
  t.throws(() => vrfHashFromProof(proof.with(0, proof[0]! ^ 1)), { code: 'PROOF_INVALID' })
  t.throws(() => vrfHashFromProof(proof.with(79, 0xff)), { code: 'PROOF_INVALID' })
})

t.test('a public key or Gamma that is no canonical ristretto255 encoding is refused', async t => {
  const input = vrfInput(1n, 1n)
  const proof = proveVrf(secret, input)
  t.equal(invalidEncodings.length, 29)
  for (const encoding of invalidEncodings.map(fromHex)) {
    const forged = Uint8Array.from(proof)
    forged.set(encoding)
    t.throws(() => verifyVrf(encoding, input, proof), { code: 'KEY_INVALID' })
    t.throws(() => verifyVrf(publicKey, input, forged), { code: 'PROOF_INVALID' })
  }
  t.throws(() => verifyVrf(publicKey.subarray(1), input, proof), { code: 'KEY_INVALID' })
})

t.test('libsodium refuses the same encodings', async t => {
  await sodium.ready
  for (const encoding of invalidEncodings.map(fromHex)) {
    t.notOk(sodium.crypto_core_ristretto255_is_valid_point(encoding))
    t.throws(() => sodium.crypto_scalarmult_ristretto255(secret, encoding))
  }
})

t.test('public keys are the generator multiples of RFC 9496', async t => {
  for (const [multiple, expected] of ristretto.generator_multiples_hex.entries()) {
    if (multiple === 0) continue
    const small = Point.Fn.toBytes(BigInt(multiple))
    t.equal(toHex(vrfPublicKey(small)), expected)
    t.equal(toHex((await fastVrfOf(small)).publicKey), expected)
  }
})

t.test('both libraries map uniform bytes to the elements of RFC 9496', async t => {
  await sodium.ready
  t.equal(mapCases.length, 11)
  for (const { uniform_bytes_hex, element_hex } of mapCases) {
    const uniform = fromHex(uniform_bytes_hex)
    t.equal(ristretto255_hasher.deriveToCurve!(uniform).toHex(), element_hex)
    t.equal(toHex(sodium.crypto_core_ristretto255_from_hash(uniform)), element_hex)
  }
})

t.test('the fast implementation agrees with the reference on random keys and ids', async t => {
  const uint64 = fc.bigInt({ min: 0n, max: UINT64_MAX })
  const random64 = fc.uint8Array({ minLength: 64, maxLength: 64 })
  const key = new Uint8Array(64).fill(7)
  const examples: [Uint8Array, bigint, bigint][] = [
    [key, 0n, 0n],
    [key, UINT64_MAX, UINT64_MAX],
    [key, 0n, UINT64_MAX],
  ]
  let agreed = 0
  const property = fc.asyncProperty(random64, uint64, uint64, async (random, userId, deviceId) => {
    fc.pre(random.some(byte => byte !== 0))
    const x = generateVrfSecret(random)
    const input = vrfInput(userId, deviceId)
    const vrf = await fastVrfOf(x)
    const { vrfHash, vrfProof } = vrf.prove(input)
    const isSame = toHex(vrfProof) === toHex(proveVrf(x, input)) && toHex(vrfHash) === toHex(vrf.hash(input))
    const isVerified = toHex(verifyVrf(vrf.publicKey, input, vrfProof)) === toHex(vrfHash)
    if (isSame && isVerified) agreed++
    return isSame && isVerified
  })
  await fc.assert(property, { seed, examples, numRuns: 40 })
  t.equal(agreed, 40)
})

t.test('the caller of the fast implementation may wipe its secret', async t => {
  const own = Uint8Array.from(secret)
  const vrf = await fastVrfOf(own)
  own.fill(0)
  t.equal(toHex(vrf.prove(vrfInput(1n, 1n)).vrfProof), toHex(proveVrf(secret, vrfInput(1n, 1n))))
})

t.test('the input is the decimal user and device id joined by an underscore', async t => {
  t.equal(Buffer.from(vrfInput(0n, 0n)).toString(), '0_0')
  t.equal(Buffer.from(vrfInput(1n, 11n)).toString(), '1_11')
  t.equal(Buffer.from(vrfInput(11n, 1n)).toString(), '11_1')
  t.equal(
    Buffer.from(vrfInput(UINT64_MAX, UINT64_MAX)).toString(),
    '18446744073709551615_18446744073709551615',
  )
})

t.test('an id that is not a uint64 has no input', async t => {
  for (const id of [-1n, UINT64_MAX + 1n]) {
    t.throws(() => vrfInput(id, 1n), RangeError)
    t.throws(() => vrfInput(1n, id), RangeError)
  }
})

t.test('a secret is made of 64 random bytes reduced mod q', async t => {
  const random = Uint8Array.from({ length: 64 }, (_, index) => index * 37)
  const number = BigInt(`0x${toHex(random.toReversed())}`)
  t.equal(toHex(generateVrfSecret(random)), littleEndianHex(number % Q))
  t.throws(() => generateVrfSecret(new Uint8Array(64)), { code: 'KEY_INVALID' })
  t.throws(() => generateVrfSecret(fromHex(littleEndianHex(Q * 3n, 64))), { code: 'KEY_INVALID' })
  t.throws(() => generateVrfSecret(new Uint8Array(32).fill(1)), RangeError)
})

t.test('a secret is parsed from the base64 of a canonical scalar in [1, q-1] only', async t => {
  for (const scalar of [1n, 2n ** 128n, Q - 1n]) {
    t.equal(toHex(parseVrfSecret(base64Of(littleEndianHex(scalar)))), littleEndianHex(scalar))
  }
  const refused = [0n, Q, Q + 1n, 2n ** 255n, 2n ** 256n - 1n].map(scalar =>
    base64Of(littleEndianHex(scalar)),
  )
  const short = base64Of(littleEndianHex(1n, 31))
  const long = base64Of(littleEndianHex(1n, 33))
  const good = base64Of(littleEndianHex(2n ** 128n))
  for (const text of [...refused, short, long, '', `${good}\n`, good.slice(0, -1), ` ${good}`, 'AQ-_']) {
    t.throws(() => parseVrfSecret(text), { code: 'KEY_INVALID' }, JSON.stringify(text))
  }
})

t.test('a public key is parsed from the base64 of an element other than the identity only', async t => {
  const keys = validCases.map(({ pk }) => pk)
  t.same(
    keys.map(pk => toHex(parseVrfPublicKey(base64Of(pk)))),
    keys,
  )
  const identity = '00'.repeat(32)
  const texts = ['', 'AAAA', '!', base64Of(keys[0]!).slice(0, -1), base64Of(`${keys[0]}00`)]
  const refused = [...texts, ...[identity, ...invalidEncodings].map(base64Of)]
  for (const text of refused) {
    t.throws(() => parseVrfPublicKey(text), { code: 'KEY_INVALID' }, JSON.stringify(text))
  }
})

t.test('a refused secret is not in the error', async t => {
  const text = `${base64Of(toHex(secret))}!`
  const value = littleEndianHex(Q + 12345n)
  for (const refuse of [() => parseVrfSecret(text), () => parseVrfSecret(base64Of(value))]) {
    const error = errorOf(refuse)
    const words = `${error.message} ${error.cause} ${error.stack}`
    t.notOk(
      words.includes(text.slice(0, 12)) || words.includes(base64Of(value)) || words.includes(`${Q + 12345n}`),
    )
  }
})

t.test('no function takes a secret that is not a canonical scalar', async t => {
  for (const bad of [new Uint8Array(32), fromHex(littleEndianHex(Q)), new Uint8Array(31).fill(1)]) {
    t.throws(() => vrfPublicKey(bad), { code: 'KEY_INVALID' })
    t.throws(() => proveVrf(bad, vrfInput(1n, 1n)), { code: 'KEY_INVALID' })
    t.throws(() => hashVrf(bad, vrfInput(1n, 1n)), { code: 'KEY_INVALID' })
  }
})

t.test(
  'the fast implementation refuses a public key that the reference did not make of the secret',
  async t => {
    const publicKey = Uint8Array.from(vrfPublicKey(secret))
    publicKey[0]! ^= 2
    await t.rejects(createFastVrf({ secret, publicKey }), /disagree/)
  },
)

function fastVrfOf(secret: Uint8Array): Promise<FastVrf> {
  return createFastVrf({ secret, publicKey: vrfPublicKey(secret) })
}

function littleEndianHex(number: bigint, bytes = 32): string {
  const bigEndian = Buffer.from(number.toString(16).padStart(bytes * 2, '0'), 'hex')
  return bigEndian.reverse().toString('hex')
}

function base64Of(hex: string): string {
  return Buffer.from(hex, 'hex').toString('base64')
}

function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, 'hex'))
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function errorOf(act: () => unknown): Error & { code?: string } {
  try {
    act()
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('nothing was thrown')
}

function codeOf(act: () => unknown): string | undefined {
  return errorOf(act).code
}

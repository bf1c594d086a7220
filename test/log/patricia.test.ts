/** The Merkle Patricia tree of an index against torchwood's vectors and a verifier that is made of its description. */
import fc from 'fast-check'
import t from 'tap'
import { SignalError } from '../../src/errors.ts'
import {
  EMPTY_TREE,
  firstDifference,
  keyBit,
  type PatriciaClaim,
  type PatriciaPair,
  PatriciaProof,
  patriciaLeafHash,
  patriciaNodeHash,
  verifyPatricia,
} from '../../src/log/patricia.ts'
import { fromHex, toHex } from '../support/bytes.ts'
import { naivePatriciaHash, naiveVerify } from '../support/naive-patricia.ts'
import { checkProperty } from '../support/property.ts'
import { bySize } from '../support/size.ts'
import { readVectors } from '../support/vectors.ts'

interface HashVectors {
  readonly cases: readonly { readonly pairs: readonly (readonly [string, string])[]; readonly hash: string }[]
}

interface VerifyVectors {
  readonly cases: readonly {
    readonly snap: string
    readonly key: string
    readonly val: string | null
    readonly proof: string
    readonly ok: boolean
  }[]
}

const verifyCases = readVectors<VerifyVectors>('mpt-verify').cases.map(({ snap, key, val, proof, ok }) => ({
  claim: {
    root: fromHex(snap),
    key: fromHex(key),
    value: val === null ? undefined : fromHex(val),
    proof: fromHex(proof),
  },
  ok,
}))

/** Whether the claim is taken. A refusal by any other code than `PROOF_INVALID` fails the test. */
function isTaken(claim: PatriciaClaim): boolean {
  try {
    verifyPatricia(claim)
    return true
  } catch (error) {
    if (error instanceof SignalError && error.code === 'PROOF_INVALID') return false
    throw error
  }
}

function isTakenNaively({ root, key, value, proof }: PatriciaClaim): boolean {
  return naiveVerify(root, key, value, proof)
}

/** The hash of a tree, by the two ends of a sorted list, as pages of an index make it. */
function hashOf(sorted: readonly PatriciaPair[]): Uint8Array {
  const [first, last] = [sorted[0], sorted.at(-1)]
  if (first === undefined || last === undefined) return EMPTY_TREE
  if (sorted.length === 1) return patriciaLeafHash(first.key, first.value)
  const bit = firstDifference(first.key, last.key)
  const right = sorted.findIndex(({ key }) => keyBit(key, bit) === 1)
  return patriciaNodeHash(bit, hashOf(sorted.slice(0, right)), hashOf(sorted.slice(right)))
}

t.test('trees have the hashes of torchwood’s vectors', async t => {
  const { cases } = readVectors<HashVectors>('mpt-treehash')
  t.equal(cases.length, 32)
  for (const { pairs, hash } of cases) {
    const octets = pairs.map(([key, value]) => [fromHex(key), fromHex(value)] as const)
    t.equal(toHex(naivePatriciaHash(octets)), hash, 'the oracle')
    const sorted = octets
      .map(([key, value]) => ({ key, value }))
      .sort((one, other) => (keyBit(one.key, firstDifference(one.key, other.key)) === 0 ? -1 : 1))
    t.equal(toHex(hashOf(sorted)), hash)
  }
})

t.test('claims are taken and refused as torchwood’s vectors say', async t => {
  t.equal(verifyCases.length, 103)
  for (const [at, { claim, ok }] of verifyCases.entries()) {
    t.equal(isTakenNaively(claim), ok, `the oracle, case ${at}`)
    t.equal(isTaken(claim), ok, `case ${at}`)
  }
})

t.test('a number is read as Go reads it, up to where a proof has none', async t => {
  const [key, value, sibling] = [1, 2, 3].map(octet => new Uint8Array(32).fill(octet)) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ]
  const claimOf = (bit: number): PatriciaClaim => {
    const proof = new PatriciaProof()
    proof.addStep(bit, sibling, 0)
    const leaf = patriciaLeafHash(key, value)
    const [left, right] = keyBit(key, bit) === 0 ? [leaf, sibling] : [sibling, leaf]
    return { root: patriciaNodeHash(bit, left, right), key, value, proof: proof.bytes }
  }
  for (const bit of [0, 127, 128, 255, 263, 2 ** 30 - 1]) {
    t.ok(isTaken(claimOf(bit)), `${bit}`)
    t.ok(isTakenNaively(claimOf(bit)))
  }
  for (const bit of [2 ** 30, 2 ** 32, 2 ** 48]) {
    t.notOk(isTaken(claimOf(bit)), `${bit}`)
    t.notOk(isTakenNaively(claimOf(bit)))
  }
  const { proof, ...claim } = claimOf(1)
  for (const zeros of [7, 9, 100]) {
    const long = Uint8Array.of(0x81, ...new Uint8Array(zeros).fill(0x80), 0, ...proof.subarray(1))
    t.notOk(isTaken({ ...claim, proof: long }), `a number of ${zeros + 2} octets`)
  }
})

t.test('steps have to go up the tree, and end with a whole hash', async t => {
  const proof = new PatriciaProof()
  const pair = { key: Uint8Array.of(0), value: Uint8Array.of(1) }
  const sibling = new Uint8Array(32).fill(9)
  proof.addStep(3, sibling, 0)
  proof.addStep(3, sibling, 0)
  const leaf = patriciaLeafHash(pair.key, pair.value)
  const root = patriciaNodeHash(3, patriciaNodeHash(3, leaf, sibling), sibling)
  t.throws(() => verifyPatricia({ root, ...pair, proof: proof.bytes }), {
    code: 'PROOF_INVALID',
    message: /out of order/,
  })
  t.throws(() => verifyPatricia({ root, ...pair, proof: proof.bytes.subarray(0, 32) }), {
    code: 'PROOF_INVALID',
    message: /cut off/,
  })
})

t.test('a leaf on the side of another key proves nothing', async t => {
  // With such a tree an operator could show one client that a key is absent, and another that it is there.
  const [key, other, value] = [Uint8Array.of(0), Uint8Array.of(0xff), Uint8Array.of(1)]
  const sibling = patriciaLeafHash(key, value)
  const root = patriciaNodeHash(0, patriciaLeafHash(other, value), sibling)
  const proof = new PatriciaProof()
  proof.addStep(0, sibling, 0)
  proof.addOther({ key: other, value })
  t.throws(() => verifyPatricia({ root, key, value: undefined, proof: proof.bytes }), {
    code: 'PROOF_INVALID',
    message: /beside the way/,
  })
})

t.test('a proof grows beyond the room that it begins with', async t => {
  const proof = new PatriciaProof()
  const sibling = new Uint8Array(40).map((_, at) => at)
  for (let bit = 0; bit < 300; bit++) proof.addStep(bit, sibling, 5)
  proof.addOther({ key: new Uint8Array(5_000).fill(1), value: new Uint8Array(3) })
  const steps = Array.from({ length: 300 }, (_, at) => 299 - at).map(bit =>
    Buffer.from([...(bit < 128 ? [bit] : [(bit % 128) + 128, bit >> 7]), ...sibling.subarray(5, 37)]),
  )
  const other = Buffer.concat([Buffer.of(0x88, 0x27), Buffer.alloc(5_000, 1), Buffer.of(3, 0, 0, 0)])
  t.equal(Buffer.compare(proof.bytes, Buffer.concat([other, ...steps])), 0)
})

t.test('a child’s hash that is not 32 bytes makes no node', async t => {
  for (const length of [0, 31, 33]) {
    t.throws(() => patriciaNodeHash(0, new Uint8Array(length), EMPTY_TREE), { code: 'MALFORMED' })
    t.throws(() => patriciaNodeHash(0, EMPTY_TREE, new Uint8Array(length)), { code: 'MALFORMED' })
  }
})

t.test('any octets are refused in order, and none are taken that torchwood refuses', async t => {
  const octets = fc.uint8Array({ maxLength: 200 })
  const runs = bySize({ short: 2_000, long: 100_000 })
  const claim = fc.record({
    root: fc.constantFrom(EMPTY_TREE, ...verifyCases.map(({ claim }) => claim.root)),
    key: octets,
    value: fc.option(octets, { nil: undefined }),
    proof: octets,
  })
  checkProperty(t, [claim], each => isTaken(each) === isTakenNaively(each), runs)
})

t.test('a proof that was changed in some places is taken by both or by neither', async t => {
  // Where a number starts, an octet of 0x80 and more makes it longer: random octets alone seldom get as far.
  const change = fc.record({
    at: fc.nat(300),
    drop: fc.nat(3),
    put: fc.array(fc.constantFrom(0, 1, 0x20, 0x7f, 0x80, 0x81, 0xff), { maxLength: 12 }),
  })
  const changed = fc
    .tuple(fc.constantFrom(...verifyCases), fc.array(change, { maxLength: 3 }))
    .map(([{ claim }, changes]) => {
      const proof = [...claim.proof]
      for (const { at, drop, put } of changes) proof.splice(at % (proof.length + 1), drop, ...put)
      return { ...claim, proof: Uint8Array.from(proof) }
    })
  const runs = bySize({ short: 2_000, long: 100_000 })
  // Ours reads shorter numbers only, so it may refuse more.
  checkProperty(t, [changed], each => !isTaken(each) || isTakenNaively(each), runs)
})

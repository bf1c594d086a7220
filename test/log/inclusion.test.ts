import t from 'tap'
import {
  type InclusionClaim,
  inclusionNodes,
  proveInclusion,
  rootFromPath,
  verifyInclusion,
} from '../../src/log/inclusion.ts'
import { flipBit, fromBase64, fromHex, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { NaiveTree, naiveLeafHash, numberedLeafHashes } from '../support/naive-tree.ts'
import { MUTATED_SIZES, mutations, sameHashes } from '../support/proofs.ts'
import { VastTree } from '../support/vast-tree.ts'
import { readVectors } from '../support/vectors.ts'

interface InclusionProbe {
  leafIdx: number
  treeSize: number
  root: string
  leafHash: string
  proof: string[] | null
  desc: string
  file: string
  wantErr: boolean
}
interface CtProof {
  index: number
  size: number
  leaf_data?: string
  leaf_hash: string
  root: string
  proof: string[]
}
interface CtVectors {
  leaves: string[]
  inclusion_real_ct_leaf: CtProof
  computed_here: { inclusion: CtProof[] }
}

const SIZE_MAX = 300
const leafHashes = numberedLeafHashes(SIZE_MAX)
const tree = new NaiveTree(leafHashes)

t.test('the 98 inclusion probes of transparency-dev are judged as they are there', async t => {
  // The subtree probes of the same collection are for mirrors, which we are not.
  const probes = readVectors<{ inclusion: InclusionProbe[] }>('merkle-transparency-dev').inclusion
  const wrong = probes.filter(probe => {
    const claim = {
      leafHash: fromBase64(probe.leafHash),
      index: probe.leafIdx,
      treeSize: probe.treeSize,
      path: (probe.proof ?? []).map(fromBase64),
      rootHash: fromBase64(probe.root),
    }
    return codeOf(() => verifyInclusion(claim)) !== (probe.wantErr ? 'PROOF_INVALID' : 'none')
  })
  t.equal(probes.length, 98)
  t.same(
    wrong.map(probe => probe.file),
    [],
  )
})

t.test('a proof of 22 hashes for a real certificate verifies', async t => {
  const vector = readVectors<CtVectors>('merkle-ct').inclusion_real_ct_leaf
  t.equal(toHex(naiveLeafHash(fromHex(vector.leaf_data!))), vector.leaf_hash)
  const root = rootFromPath(fromHex(vector.leaf_hash), vector.index, vector.size, vector.proof.map(fromHex))
  t.equal(toHex(root), vector.root)
})

t.test('the proofs of the eight leaves of certificate transparency come out', async t => {
  const vectors = readVectors<CtVectors>('merkle-ct')
  const eight = new NaiveTree(vectors.leaves.map(leaf => naiveLeafHash(fromHex(leaf))))
  for (const { index, size, leaf_hash, root, proof } of vectors.computed_here.inclusion) {
    t.same(proveInclusion(index, size, eight.readHashes).map(toHex), proof)
    t.equal(toHex(rootFromPath(fromHex(leaf_hash), index, size, proof.map(fromHex))), root)
  }
})

t.test('every index of every size up to 300 has the recursive proof, and it verifies', async t => {
  let wrong = 0
  let checked = 0
  for (let treeSize = 1; treeSize <= SIZE_MAX; treeSize++) {
    const rootHash = tree.root(0, treeSize)
    for (let index = 0; index < treeSize; index++) {
      const path = proveInclusion(index, treeSize, tree.readHashes)
      const isSame = sameHashes(path, tree.inclusion(index, treeSize))
      const code = codeOf(() =>
        verifyInclusion({ leafHash: leafHashes[index]!, index, treeSize, path, rootHash }),
      )
      if (!isSame || code !== 'none') wrong++
      checked++
    }
  }
  t.equal(wrong, 0)
  t.equal(checked, (SIZE_MAX * (SIZE_MAX + 1)) / 2)
})

t.test('only nodes that are complete in the tree are read', async t => {
  let incomplete = 0
  for (let treeSize = 1; treeSize <= SIZE_MAX; treeSize++) {
    for (let index = 0; index < treeSize; index++) {
      for (const node of inclusionNodes(index, treeSize)) {
        if ((node.index + 1) * 2 ** node.level > treeSize) incomplete++
      }
    }
  }
  t.equal(incomplete, 0)
})

t.test('a proof with any hash flipped, dropped, added or swapped is refused', async t => {
  const accepted: string[] = []
  let refused = 0
  for (const treeSize of MUTATED_SIZES) {
    for (let index = 0; index < treeSize; index++) {
      const claim = goodClaim(index, treeSize)
      for (const [how, path] of mutations(claim.path)) {
        if (codeOf(() => verifyInclusion({ ...claim, path })) === 'PROOF_INVALID') refused++
        else accepted.push(`${how} in proof of ${index} in ${treeSize}`)
      }
    }
  }
  t.same(accepted, [])
  t.ok(refused > 50_000, `${refused} mutations`)
})

t.test('a proof for one leaf, index, size or root holds for no other', async t => {
  const accepted: string[] = []
  for (const treeSize of MUTATED_SIZES) {
    for (let index = 0; index < treeSize; index++) {
      const claim = goodClaim(index, treeSize)
      const others: Partial<InclusionClaim>[] = [
        { leafHash: flipBit(claim.leafHash, index % 256) },
        { rootHash: flipBit(claim.rootHash, treeSize % 256) },
        { index: index + 1 },
        { index: index - 1 },
        { index: index ^ 2 },
        { index: treeSize },
        { rootHash: tree.root(0, treeSize + 1) },
        { treeSize: treeSize + 1, rootHash: tree.root(0, treeSize + 1) },
      ]
      for (const other of others) {
        if (codeOf(() => verifyInclusion({ ...claim, ...other })) !== 'PROOF_INVALID') {
          accepted.push(`${Object.keys(other)} of ${index} in ${treeSize}`)
        }
      }
    }
  }
  // A size is tried with its root only: proofs of two sizes may have one form, and it is the root, signed together
  // with the size, that tells them apart.
  t.same(accepted, [])
})

t.test('an index outside the tree, odd sizes and hashes of other lengths are refused', async t => {
  const claim = goodClaim(5, 9)
  const broken: Partial<InclusionClaim>[] = [
    { index: -1 },
    { index: 9 },
    { index: 0.5 },
    { index: Number.NaN },
    { treeSize: 0 },
    { treeSize: -9 },
    { treeSize: 2 ** 53 },
    { leafHash: claim.leafHash.subarray(1) },
    { rootHash: claim.rootHash.subarray(1) },
    { path: [claim.path[0]!.subarray(1), ...claim.path.slice(1)] },
  ]
  for (const part of broken) t.throws(() => verifyInclusion({ ...claim, ...part }), { code: 'PROOF_INVALID' })
  t.throws(() => rootFromPath(claim.leafHash, 9, 9, claim.path), { code: 'MALFORMED' })
  t.throws(() => rootFromPath(claim.leafHash, 5, 9, claim.path.slice(1)), { code: 'MALFORMED' })
  t.throws(() => rootFromPath(claim.leafHash, 5, 9, [...claim.path, claim.leafHash]), { code: 'MALFORMED' })
  t.throws(() => rootFromPath(new Uint8Array(31), 0, 1, []), { code: 'MALFORMED' })
  t.throws(() => proveInclusion(9, 9, tree.readHashes), { code: 'MALFORMED' })
  for (const index of [-1, 0.5, 9, Number.NaN]) {
    t.throws(() => inclusionNodes(index, 9), { code: 'MALFORMED' })
  }
  t.throws(() => inclusionNodes(0, 0), { code: 'MALFORMED' })
})

t.test('proofs hold around 2^31, 2^32 and 2^52 and up to 2^53 - 1', async t => {
  for (const base of [2 ** 31, 2 ** 32, 2 ** 52, 2 ** 53 - 4]) {
    const special = [0, 2 ** 30, base - 2, base - 1, base, base + 1]
    const vast = new VastTree(special)
    for (const treeSize of [base - 1, base, base + 1, base + 3]) {
      const rootHash = vast.root(0, treeSize)
      for (const index of special.filter(index => index < treeSize)) {
        const path = proveInclusion(index, treeSize, vast.readHashes)
        const claim = { leafHash: vast.leafHash(index), index, treeSize, path, rootHash }
        t.doesNotThrow(() => verifyInclusion(claim), `${index} in ${treeSize}`)
        const code = { code: 'PROOF_INVALID' }
        t.throws(() => verifyInclusion({ ...claim, index: index === 0 ? 1 : index - 1 }), code)
        t.throws(() => verifyInclusion({ ...claim, path: path.slice(0, -1) }), code)
      }
    }
  }
})

function goodClaim(index: number, treeSize: number): InclusionClaim {
  return {
    leafHash: leafHashes[index]!,
    index,
    treeSize,
    path: tree.inclusion(index, treeSize),
    rootHash: tree.root(0, treeSize),
  }
}

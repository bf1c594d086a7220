import t from 'tap'
import {
  type ConsistencyClaim,
  consistencyNodes,
  proveConsistency,
  verifyConsistency,
} from '../../src/log/consistency.ts'
import { flipBit, fromBase64, fromHex, toBase64, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { NaiveTree, naiveLeafHash, numberedLeafHashes } from '../support/naive-tree.ts'
import { MUTATED_SIZES, mutations, sameHashes } from '../support/proofs.ts'
import { VastTree } from '../support/vast-tree.ts'
import { readVectors } from '../support/vectors.ts'

interface ConsistencyProbe {
  size1: number
  size2: number
  root1: string
  root2: string
  proof: string[] | null
  file: string
  wantErr: boolean
}
interface CtConsistency {
  size1: number
  size2: number
  root1: string
  root2: string
  proof: string[]
}
interface CtVectors {
  leaves: string[]
  consistency: CtConsistency[]
  computed_here: { consistency: CtConsistency[] }
}

const SIZE_MAX = 300
const tree = new NaiveTree(numberedLeafHashes(SIZE_MAX + 1))

t.test('the 98 consistency probes of transparency-dev are judged as they are there', async t => {
  const probes = readVectors<{ consistency: ConsistencyProbe[] }>('merkle-transparency-dev').consistency
  const wrong = probes.filter(probe => {
    const claim = {
      oldSize: probe.size1,
      oldRoot: fromBase64(probe.root1),
      newSize: probe.size2,
      newRoot: fromBase64(probe.root2),
      proof: (probe.proof ?? []).map(fromBase64),
    }
    return codeOf(() => verifyConsistency(claim)) !== (probe.wantErr ? 'PROOF_INVALID' : 'none')
  })
  t.equal(probes.length, 98)
  t.same(
    wrong.map(probe => probe.file),
    [],
  )
})

t.test('the consistency proofs of certificate transparency come out and verify', async t => {
  const vectors = readVectors<CtVectors>('merkle-ct')
  const eight = new NaiveTree(vectors.leaves.map(leaf => naiveLeafHash(fromHex(leaf))))
  const published = [...vectors.consistency, ...vectors.computed_here.consistency]
  for (const { size1, size2, root1, root2, proof } of published) {
    t.same(proveConsistency(size1, size2, eight.readHashes).map(toHex), proof)
    verifyConsistency({
      oldSize: size1,
      oldRoot: fromHex(root1),
      newSize: size2,
      newRoot: fromHex(root2),
      proof: proof.map(fromHex),
    })
  }
})

t.test('the proofs of the derived log come out', async t => {
  interface Derived {
    entries: { leaf_hash_base64: string }[]
    consistency: { first: number; second: number; proof_base64: string[] }[]
  }
  const derived = readVectors<Derived>('derived-kt-e2e')
  const log = new NaiveTree(derived.entries.map(entry => fromBase64(entry.leaf_hash_base64)))
  for (const { first, second, proof_base64 } of derived.consistency) {
    t.same(proveConsistency(first, second, log.readHashes).map(toBase64), proof_base64)
  }
})

t.test('every pair of sizes up to 300 has the recursive proof, and it verifies', async t => {
  let wrong = 0
  let checked = 0
  for (let newSize = 1; newSize <= SIZE_MAX; newSize++) {
    for (let oldSize = 1; oldSize <= newSize; oldSize++) {
      const proof = proveConsistency(oldSize, newSize, tree.readHashes)
      const isSame = sameHashes(proof, tree.consistency(oldSize, newSize))
      const code = codeOf(() => verifyConsistency({ ...goodClaim(oldSize, newSize), proof }))
      if (!isSame || code !== 'none') wrong++
      checked++
    }
  }
  t.equal(wrong, 0)
  t.equal(checked, (SIZE_MAX * (SIZE_MAX + 1)) / 2)
})

t.test('only nodes that are complete in the new tree are read', async t => {
  let incomplete = 0
  for (let newSize = 0; newSize <= SIZE_MAX; newSize++) {
    for (let oldSize = 0; oldSize <= newSize; oldSize++) {
      for (const node of consistencyNodes(oldSize, newSize)) {
        if ((node.index + 1) * 2 ** node.level > newSize) incomplete++
      }
    }
  }
  t.equal(incomplete, 0)
})

t.test('a proof with any hash flipped, dropped, added or swapped is refused', async t => {
  const accepted: string[] = []
  let refused = 0
  for (const newSize of MUTATED_SIZES) {
    for (let oldSize = 1; oldSize <= newSize; oldSize++) {
      const claim = goodClaim(oldSize, newSize)
      for (const [how, proof] of mutations(claim.proof)) {
        if (codeOf(() => verifyConsistency({ ...claim, proof })) === 'PROOF_INVALID') refused++
        else accepted.push(`${how} in proof from ${oldSize} to ${newSize}`)
      }
    }
  }
  t.same(accepted, [])
  t.ok(refused > 40_000, `${refused} mutations`)
})

t.test('a proof between two trees holds for no other', async t => {
  const accepted: string[] = []
  for (const newSize of MUTATED_SIZES) {
    for (let oldSize = 1; oldSize <= newSize; oldSize++) {
      const claim = goodClaim(oldSize, newSize)
      const others: Partial<ConsistencyClaim>[] = [
        { oldRoot: flipBit(claim.oldRoot, oldSize % 256) },
        { newRoot: flipBit(claim.newRoot, newSize % 256) },
        { oldRoot: tree.root(0, oldSize - 1) },
        { oldSize: oldSize - 1, oldRoot: tree.root(0, oldSize - 1) },
        { newSize: newSize + 1, newRoot: tree.root(0, newSize + 1) },
        { oldSize: newSize + 1 },
      ]
      if (oldSize < newSize) {
        others.push({ oldRoot: claim.newRoot, newRoot: claim.oldRoot })
        others.push({ oldRoot: claim.newRoot, oldSize: newSize })
      }
      for (const other of others) {
        const isTrue = oldSize === 1 && other.oldSize === 0 && oldSize === newSize
        const code = codeOf(() => verifyConsistency({ ...claim, ...other }))
        if (code !== (isTrue ? 'none' : 'PROOF_INVALID')) {
          accepted.push(`${Object.keys(other)} of ${oldSize} to ${newSize}`)
        }
      }
    }
  }
  t.same(accepted, [])
})

t.test('every tree extends the empty one and itself, with no hashes', async t => {
  for (const size of [0, 1, 7, 256]) {
    t.same(proveConsistency(0, size, tree.readHashes), [])
    t.same(proveConsistency(size, size, tree.readHashes), [])
    const claim = {
      oldSize: 0,
      oldRoot: tree.root(0, 0),
      newSize: size,
      newRoot: tree.root(0, size),
      proof: [],
    }
    const code = { code: 'PROOF_INVALID' }
    t.doesNotThrow(() => verifyConsistency(claim))
    t.throws(() => verifyConsistency({ ...claim, oldRoot: tree.root(0, 1) }), code)
    t.throws(() => verifyConsistency({ ...claim, proof: [tree.root(0, 1)] }), code)
    t.doesNotThrow(() => verifyConsistency({ ...claim, oldSize: size, oldRoot: claim.newRoot }))
    t.throws(() => verifyConsistency({ ...claim, oldSize: size, oldRoot: tree.root(0, 9) }), code)
    t.throws(
      () => verifyConsistency({ ...claim, oldSize: size, oldRoot: claim.newRoot, proof: [claim.newRoot] }),
      code,
    )
  }
})

t.test('odd sizes, shrinking trees and hashes of other lengths are refused', async t => {
  const claim = goodClaim(4, 9)
  const broken: Partial<ConsistencyClaim>[] = [
    { oldSize: -4 },
    { oldSize: 4.5 },
    { oldSize: Number.NaN },
    { newSize: 2 ** 53 },
    { newSize: 3 },
    { oldRoot: claim.oldRoot.subarray(1) },
    { newRoot: claim.newRoot.subarray(1) },
    { proof: [claim.proof[0]!.subarray(1), ...claim.proof.slice(1)] },
    { oldSize: 3, proof: [new Uint8Array(0), ...claim.proof] },
  ]
  for (const part of broken)
    t.throws(() => verifyConsistency({ ...claim, ...part }), { code: 'PROOF_INVALID' })
  t.throws(() => proveConsistency(9, 8, tree.readHashes), { code: 'MALFORMED' })
  t.throws(() => consistencyNodes(-1, 8), { code: 'MALFORMED' })
})

t.test('an old root handed in as the first hash of the proof is not taken for one', async t => {
  // Size 6 is no power of two, so its proof starts with a node; the same object in both places must not matter.
  const claim = goodClaim(6, 9)
  t.throws(() => verifyConsistency({ ...claim, proof: [claim.oldRoot, ...claim.proof.slice(1)] }), {
    code: 'PROOF_INVALID',
  })
  t.throws(() => verifyConsistency({ ...claim, proof: [claim.oldRoot, ...claim.proof] }), {
    code: 'PROOF_INVALID',
  })
})

t.test('proofs hold around 2^31, 2^32 and 2^52 and up to 2^53 - 1', async t => {
  for (const base of [2 ** 31, 2 ** 32, 2 ** 52, 2 ** 53 - 4]) {
    const vast = new VastTree([0, 2 ** 30, base - 2, base - 1, base, base + 1])
    const sizes = [1, 3, 2 ** 30 + 1, base - 1, base, base + 1, base + 3]
    for (const newSize of sizes) {
      for (const oldSize of sizes.filter(size => size < newSize)) {
        const proof = proveConsistency(oldSize, newSize, vast.readHashes)
        const claim = {
          oldSize,
          oldRoot: vast.root(0, oldSize),
          newSize,
          newRoot: vast.root(0, newSize),
          proof,
        }
        t.doesNotThrow(() => verifyConsistency(claim), `${oldSize} to ${newSize}`)
        t.throws(() => verifyConsistency({ ...claim, proof: proof.slice(1) }), { code: 'PROOF_INVALID' })
        t.throws(() => verifyConsistency({ ...claim, newRoot: vast.root(0, newSize - 1) }), {
          code: 'PROOF_INVALID',
        })
      }
    }
  }
})

function goodClaim(oldSize: number, newSize: number): ConsistencyClaim {
  return {
    oldSize,
    oldRoot: tree.root(0, oldSize),
    newSize,
    newRoot: tree.root(0, newSize),
    proof: tree.consistency(oldSize, newSize),
  }
}

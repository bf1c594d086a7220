/** Checkpoints and consistency proofs of another key transparency log, on honest and forked branches (made by Go). */

import t from 'tap'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { verifyConsistency } from '../../src/log/consistency.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { codeOf } from '../support/codes.ts'
import { readVectors } from '../support/vectors.ts'

interface ForkVectors {
  readonly log_vkey: string
  readonly roots_base64: Readonly<Record<string, string>>
  readonly checkpoints: Readonly<Record<string, string>>
  readonly consistency: readonly {
    readonly first: string
    readonly second: string
    readonly proof: readonly string[]
    readonly ok: boolean
  }[]
}

const vectors = readVectors<ForkVectors>('consistency-forks')
const hashOf = (base64: string) => new Uint8Array(Buffer.from(base64, 'base64'))
const treeOf = (branch: string) => ({
  size: Number.parseInt(branch, 10),
  root: hashOf(vectors.roots_base64[branch]!),
})

t.test('every checkpoint opens and has the root of its branch', async t => {
  const verifier = parseVerifierKey(vectors.log_vkey)
  for (const [branch, note] of Object.entries(vectors.checkpoints)) {
    const { size, root } = treeOf(branch)
    t.match(openCheckpoint(note, verifier), { treeSize: size, rootHash: root }, branch)
  }
})

t.test('a proof within a branch holds, one across branches does not', async t => {
  for (const { first, second, proof, ok } of vectors.consistency) {
    const [older, newer] = [treeOf(first), treeOf(second)]
    const claim = {
      oldSize: older.size,
      oldRoot: older.root,
      newSize: newer.size,
      newRoot: newer.root,
      proof: proof.map(hashOf),
    }
    t.equal(codeOf(() => verifyConsistency(claim)) === 'none', ok, `${first} to ${second}`)
  }
  t.ok(vectors.consistency.some(({ ok }) => !ok))
})

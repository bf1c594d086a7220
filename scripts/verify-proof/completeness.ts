/** Whether a lookup result proves that its key is the newest, as far as that can be said without the log. */

import { judgeCompleteness, verifyIndex } from '../../src/client/index-proof.ts'
import type { LogKeys } from '../../src/client/log-keys.ts'
import type { VerifiedKey } from '../../src/client/lookup.ts'
import type { SignedCheckpoint } from '../../src/client/signed-checkpoint.ts'

/** What came of the proof. `ok` is null where nobody can say it from the result alone. */
export interface CompletenessStep {
  readonly ok: boolean | null
  readonly detail: string
  /** Signed notes that contradict each other. */
  readonly notes?: readonly string[]
}

export function completenessOf(
  { index: indexKeys, ...keys }: LogKeys,
  { vrfHash, index, checkpoint }: Pick<VerifiedKey, 'vrfHash' | 'index' | 'checkpoint'>,
  indexProof: unknown,
): CompletenessStep {
  if (indexKeys === undefined)
    return { ok: null, detail: 'the result has a proof from the index: --index-vkey has it checked' }
  if (indexProof === undefined)
    return { ok: null, detail: 'the result has no proof from the index: ask the server with "index": true' }
  // Without a policy there is no quorum, and so no age.
  const found = verifyIndex({ ...keys, index: indexKeys }, vrfHash, indexProof, { nowMs: 0 })
  if (found.kind === 'refused') return { ok: false, detail: found.detail }
  const { input, indexes } = found
  const twin = twinOf(input, checkpoint)
  if (twin !== undefined) return twin
  const { treeSize } = checkpoint
  const isBehind = input.treeSize < treeSize
  const judged = judgeCompleteness(
    { isProved: indexKeys.isRebuilt, index: found },
    isBehind ? 'unread' : [],
    { index, treeSize },
  )
  if (judged.kind === 'refused') return { ok: false, detail: judged.detail }
  if (judged.kind === 'unanswered') return { ok: null, detail: judged.detail }
  if (isBehind) {
    const behind = `entries ${input.treeSize} to ${treeSize - 1}`
    return {
      ok: null,
      detail: `none is newer up to the index’s leaf; ${behind} came after it, and are in the log`,
    }
  }
  return {
    ok: true,
    detail: `the index has entries ${indexes.join(', ')} under the hash, up to tree size ${input.treeSize}, and no others`,
  }
}

/** Two trees of one size under one key. */
function twinOf(input: SignedCheckpoint, checkpoint: SignedCheckpoint): CompletenessStep | undefined {
  if (input.treeSize !== checkpoint.treeSize || input.rootHash === checkpoint.rootHash) return undefined
  const detail = `the log signed tree size ${input.treeSize} with two roots: its index is of another tree`
  return { ok: false, detail, notes: [input.note, checkpoint.note] }
}

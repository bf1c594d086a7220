/**
 * A witness (c2sp.org/tlog-witness): cosigns a checkpoint that extends the one it cosigned last for the log, and no other.
 * The newest cosigned checkpoint is durable before the cosignature is handed out, and compared and replaced in one change, so that
 * neither a kill nor two requests at once make it cosign a fork.
 */

import { SignalError } from '../../src/errors.ts'
import { parseAddCheckpoint } from '../../src/log/add-checkpoint.ts'
import { type Checkpoint, parseCheckpoint } from '../../src/log/checkpoint.ts'
import { verifyConsistency } from '../../src/log/consistency.ts'
import { cosignatureLine } from '../../src/log/cosignature.ts'
import { EMPTY_ROOT, HASH_BYTES, type Hash } from '../../src/log/hash.ts'
import { formatSignature, type OpenedNote, openNote, type SignerKey } from '../../src/log/note.ts'
import { bytes, count, object, type RowOf, text } from '../../src/store/engine/row-form.ts'
import type { Store } from '../../src/store/engine/store.ts'
import { textKeyTable } from '../../src/store/engine/table.ts'
import type { IndexRebuild } from './index-rebuild.ts'
import type { WitnessedLogs } from './log-list.ts'

export const COSIGNED = textKeyTable(
  'cosigned',
  'origin',
  object({
    treeSize: count,
    rootHash: bytes(HASH_BYTES),
    /** The checkpoint with the signatures of the log and of the witness. */
    note: text,
  }),
  {
    holds: 'the newest cosigned checkpoint',
  },
)
type Cosigned = RowOf<typeof COSIGNED.row>

export type WitnessAnswer =
  /** Signature lines of the witness. */
  | { readonly kind: 'cosigned'; readonly lines: string }
  /** Another size than the request's was cosigned last. */
  | { readonly kind: 'conflict'; readonly treeSize: number }
  | { readonly kind: 'refused'; readonly status: 400 | 403 | 404 | 422 | 503; readonly reason: string }

export interface WitnessDeps {
  readonly store: Store
  readonly key: SignerKey
  readonly logs: WitnessedLogs
  /** Indexes that are rebuilt before they are cosigned, by the origin of the output log. */
  readonly indexes?: ReadonlyMap<string, Pick<IndexRebuild, 'refusalOf'>>
  readonly nowMs: () => number
}

export class Witness {
  readonly #deps: WitnessDeps

  constructor(deps: WitnessDeps) {
    this.#deps = deps
  }

  /** Judges the body of an `add-checkpoint`. Resolves when the answer's effects are durable. */
  async addCheckpoint(body: string): Promise<WitnessAnswer> {
    const submitted = this.#open(body)
    if (submitted.kind === 'refused') return submitted
    return (await this.#refusalByIndex(submitted)) ?? (await this.#cosign(submitted))
  }

  /** For an index that is rebuilt; undefined where nothing is wrong, and for every other log. */
  async #refusalByIndex(submitted: Submitted): Promise<WitnessAnswer | undefined> {
    const { store, indexes } = this.#deps
    const { checkpoint } = submitted
    const index = indexes?.get(checkpoint.origin)
    if (index === undefined) return undefined
    // No leaf is read for a checkpoint that would not be cosigned anyway.
    const last = store.view(view => view.get(COSIGNED, checkpoint.origin))
    return judge(submitted, last) ?? (await index.refusalOf(checkpoint))
  }

  async #cosign(submitted: Submitted): Promise<WitnessAnswer> {
    return await this.#deps.store.change(change => {
      const { checkpoint, note } = submitted
      const last = change.get(COSIGNED, checkpoint.origin)
      const answer = judge(submitted, last)
      if (answer !== undefined) return answer
      // The time is taken here, so that no larger tree was cosigned before it.
      const seconds = Math.floor(this.#deps.nowMs() / 1_000)
      const lines = cosignatureLine(note.text, this.#deps.key, seconds)
      const { treeSize, rootHash } = checkpoint
      const signatures = note.signatures.map(formatSignature).join('')
      change.put(COSIGNED, checkpoint.origin, {
        treeSize,
        rootHash,
        note: `${note.text}\n${signatures}${lines}`,
      })
      return { kind: 'cosigned', lines }
    })
  }

  /** The note that was cosigned last for the log with that origin. */
  newest(origin: string): string | undefined {
    return this.#deps.store.view(view => view.get(COSIGNED, origin))?.note
  }

  #open(body: string): Submitted | Refused {
    let status: Refused['status'] = 400
    try {
      const { oldSize, proof, note: text } = parseAddCheckpoint(body)
      const checkpoint = parseCheckpoint(text.slice(0, text.lastIndexOf('\n\n') + 1))
      const keys = this.#deps.logs.get(checkpoint.origin)
      if (keys === undefined) return refused(404, 'the log is not known here')
      // A signature that can't be read is none.
      status = 403
      const note = openNote(text, keys)
      if (oldSize <= checkpoint.treeSize) return { kind: 'submitted', oldSize, proof, checkpoint, note }
      return refused(400, 'the old size is above that of the checkpoint')
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      return refused(status, error.message)
    }
  }
}

/** A checkpoint that its log has signed, and the claimed proof that leads to it. */
interface Submitted {
  readonly kind: 'submitted'
  readonly oldSize: number
  readonly proof: readonly Hash[]
  readonly checkpoint: Checkpoint
  readonly note: OpenedNote
}

export type Refused = Extract<WitnessAnswer, { kind: 'refused' }>

/** Why it can't be cosigned after `last`; undefined where it can. */
function judge(
  { oldSize, proof, checkpoint }: Submitted,
  last: Cosigned | undefined,
): WitnessAnswer | undefined {
  const { treeSize, rootHash } = last ?? { treeSize: 0, rootHash: EMPTY_ROOT }
  if (oldSize !== treeSize) return { kind: 'conflict', treeSize }
  try {
    verifyConsistency({
      oldSize,
      oldRoot: rootHash,
      newSize: checkpoint.treeSize,
      newRoot: checkpoint.rootHash,
      proof,
    })
    return undefined
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    return refused(422, error.message)
  }
}

function refused(status: Refused['status'], reason: string): Refused {
  return { kind: 'refused', status, reason }
}

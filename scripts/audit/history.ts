/** Signed trees of one log held against each other: one of two must be the beginning of the other. */

import { consistencyFromTiles, type TreeHead } from '../../src/client/tile-consistency.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import type { VerifierKey } from '../../src/log/note.ts'
import { broken, type CheckName } from './finding.ts'
import type { LogReader } from './log-reader.ts'

/** A tree that the log signed; `note` is the signed note, as it came. */
export interface SignedHead extends TreeHead {
  readonly note: string
}

/** A signed tree, and where its tiles are. */
export interface View {
  readonly log: LogReader
  readonly head: SignedHead
}

/** Throws as `openCheckpoint` does. */
export function openHead(note: Uint8Array, verifier: VerifierKey): SignedHead {
  const { treeSize, rootHash } = openCheckpoint(note, verifier)
  return { treeSize, rootHash, note: Buffer.from(note).toString() }
}

/**
 * Passes when one of two signed trees is the beginning of the other, as shown by tiles of the larger one. Throws
 * `AuditFailure`: of `check` with both notes as evidence when the log contradicts itself; of `tiles` when tiles do not
 * lead to the signed root and so prove nothing; of `fetch`.
 */
export async function assertSameHistory(check: CheckName, first: View, second: View): Promise<void> {
  const [older, newer] = first.head.treeSize <= second.head.treeSize ? [first, second] : [second, first]
  const found = await consistencyFromTiles(tile => newer.log.tile(tile), older.head, newer.head)
  if (found.kind === 'consistent') return
  if (found.check === 'tiles') throw broken('tiles', `${newer.log.url}: ${found.detail}`)
  const facts = { treeSize: String(second.head.treeSize), notes: [first.head.note, second.head.note] }
  throw broken(check, `the log signed both of two histories: ${found.detail}`, facts)
}

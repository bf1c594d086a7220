/** The check of a stored index before it goes on: by the records outside, by its signatures, and by the log. */

import { SignalError } from '../../errors.ts'
import { type Checkpoint, type LogHead, openCheckpoint, parseCheckpoint } from '../../log/checkpoint.ts'
import { equalHashes, type Hash } from '../../log/hash.ts'
import type { IndexLeaf } from '../../log/index-leaf.ts'
import { TreeTail } from '../../log/integrate.ts'
import { formatVerifierKey, readNote, type SignerKey, type VerifierKey } from '../../log/note.ts'
import { type ReadHashes, RightEdge, rootHash } from '../../log/tree.ts'
import { damagedIndex, type IndexStore } from './index-store.ts'

/** The keys that the index signs with. */
export interface IndexSigners {
  readonly index: SignerKey
  /** Signs, too, while the index changes its key. */
  readonly secondIndex?: SignerKey
  /** Those of the log, for checkpoints between two that were shown. */
  readonly log: SignerKey
  readonly secondLog?: SignerKey
}

/** The log as far as it is shown. */
export interface InputLog {
  readonly head: LogHead
  readonly readHashes: ReadHashes
}

/** The records of the output log outside the store. */
export interface IndexGuard {
  /** Throws `CHECKPOINT_INVALID` unless the stored output log extends it. */
  assertExtends(store: Pick<IndexStore, 'head' | 'readHashes'>): void
  /** Records a durable head before it is shown. */
  readonly record?: (head: LogHead) => Promise<void>
  /** The stored output log may go on. */
  confirm(): Promise<void>
}

/** The tail of the output log. Throws `CHECKPOINT_INVALID` where its checkpoint covers another one. */
export function openOutputLog(store: IndexStore, verifier: VerifierKey): TreeTail {
  const [head, shown] = [store.head(), store.shownHead()]
  const size = head?.treeSize ?? 0
  const waiting = size - (shown?.treeSize ?? 0)
  if (waiting !== 0 && waiting !== 1) throw damagedIndex(`it shows ${shown?.treeSize} of ${size} leaves`)
  // Tiles of an earlier index are emptied before the first leaf.
  if (size === 0) return new TreeTail({ edge: new RightEdge(0, []), tiles: [], bundle: undefined })
  const tail = new TreeTail(store.openTail(size))
  const signed = opened(head!, verifier)
  if (signed.treeSize !== size || !equalHashes(signed.rootHash, tail.rootHash()))
    throw damagedIndex('its leaves are not those of its checkpoint')
  if (shown === undefined) return tail
  const { treeSize, rootHash: shownRoot } = opened(shown, verifier)
  if (treeSize !== shown.treeSize || !equalHashes(shownRoot, rootHash(treeSize, store.readHashes)))
    throw damagedIndex('the checkpoint that it shows is not of its leaves')
  return tail
}

/** The checkpoint of the log in a leaf. Throws `CHECKPOINT_INVALID` unless its tree is a part of this log as it is shown. */
export function inputOf(leaf: IndexLeaf, { head, readHashes }: InputLog, origin: string): Checkpoint {
  const input = parseCheckpoint(readNote(leaf.inputCheckpoint).text)
  // By whom it is signed says less than the tree: the log may have changed its key since.
  const isOurs =
    input.origin === origin &&
    input.treeSize <= head.treeSize &&
    equalHashes(rootHash(input.treeSize, readHashes), input.rootHash)
  if (!isOurs)
    throw damagedIndex(`its last leaf is of a log of ${input.treeSize} entries that is not this one`)
  return input
}

/** Whether the rows of the map have this root, as far as the topmost row says. */
export function hasMapRoot(store: IndexStore, root: Hash): boolean {
  try {
    return equalHashes(store.mapRoot(), root)
  } catch (error) {
    if (error instanceof SignalError) return false
    throw error
  }
}

/**
 * Begins the index, or finds that it goes on, and takes over where its key changes. Returns the key of an earlier index that
 * made way, or undefined. Throws `CHECKPOINT_INVALID` where something else is known of the output log.
 */
export async function claimIndex(
  store: IndexStore,
  { index, secondIndex }: Pick<IndexSigners, 'index' | 'secondIndex'>,
  openGuard: (isAnotherKey: boolean) => IndexGuard,
): Promise<{ readonly guard: IndexGuard; readonly begun?: { readonly earlier?: string } }> {
  const { state } = store
  const vkey = formatVerifierKey(index)
  const isOurs =
    state !== undefined &&
    (state.vkey === vkey || (secondIndex !== undefined && state.vkey === formatVerifierKey(secondIndex)))
  const guard = openGuard(state !== undefined && !isOurs)
  if (isOurs) {
    guard.assertExtends(store)
    if (state.vkey !== vkey) await store.changeKey(vkey)
    return { guard }
  }
  if (state?.earlierVkeys?.includes(vkey)) {
    throw new SignalError(
      'CHECKPOINT_INVALID',
      'KT_INDEX_PRIVATE_KEY is the key of an earlier index of this log, whose checkpoints people have: make a new key with keygen, so that it does not sign a second history',
    )
  }
  guard.assertExtends({ head: () => undefined, readHashes: store.readHashes })
  await store.begin(vkey)
  return { guard, begun: state === undefined ? {} : { earlier: state.vkey } }
}

function opened(head: LogHead, verifier: VerifierKey): Checkpoint {
  try {
    return openCheckpoint(head.checkpoint, verifier)
  } catch (cause) {
    throw damagedIndex(
      `its checkpoint of ${head.treeSize} leaves is not signed with KT_INDEX_PRIVATE_KEY; while the key changes, both keys have to sign for a while`,
      cause,
    )
  }
}

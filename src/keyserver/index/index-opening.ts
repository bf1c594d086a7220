/** The check of a stored index before it goes on: by the records outside, by its signatures, and by the log. */

import { SignalError } from '../../errors.ts'
import { type Checkpoint, type LogHead, openCheckpoint, parseCheckpoint } from '../../log/checkpoint.ts'
import { equalHashes, type Hash } from '../../log/hash.ts'
import type { IndexLeaf } from '../../log/index-leaf.ts'
import { type TailBytes, TreeTail } from '../../log/integrate.ts'
import { formatVerifierKey, readNote, type SignerKey, statedKeys, type VerifierKey } from '../../log/note.ts'
import { type ReadHashes, RightEdge, rootHash } from '../../log/tree.ts'
import { damagedIndex, type IndexStore } from './index-store.ts'
import type { IndexState } from './index-tables.ts'

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

/** The tail of the output log. Throws `CHECKPOINT_INVALID` where its checkpoint covers another tail. */
export function openOutputLog(store: IndexStore, verifier: VerifierKey): TreeTail {
  const [head, shown] = [store.head(), store.shownHead()]
  const size = head?.treeSize ?? 0
  const waiting = size - (shown?.treeSize ?? 0)
  if (waiting !== 0 && waiting !== 1) throw damagedIndex(`it shows ${shown?.treeSize} of ${size} leaves`)
  // Tiles of an earlier index are emptied before the first leaf.
  if (size === 0) return new TreeTail({ edge: new RightEdge(0, []), tiles: [], bundle: undefined })
  const tail = new TreeTail(tailOf(store, size))
  const signed = opened(head!, verifier)
  if (signed.treeSize !== size || !equalHashes(signed.rootHash, tail.rootHash()))
    throw damagedIndex('its leaves are not those of its checkpoint')
  if (shown === undefined) return tail
  const { treeSize, rootHash: shownRoot } = opened(shown, verifier)
  if (treeSize !== shown.treeSize || !equalHashes(shownRoot, rootHash(treeSize, store.readHashes)))
    throw damagedIndex('the checkpoint that it shows is not of its leaves')
  return tail
}

/** As `IndexStore.openTail`, with a refusal that says which of the two logs it is about. */
function tailOf(store: IndexStore, size: number): TailBytes {
  try {
    return store.openTail(size)
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    throw new SignalError(error.code, `the output log of the index: ${error.message}`, { cause: error })
  }
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
 * made way, or undefined. Throws `CHECKPOINT_INVALID` where something else is known of the output log, and where one of the keys
 * would sign a second one.
 */
export async function claimIndex(
  store: IndexStore,
  { index, secondIndex }: Pick<IndexSigners, 'index' | 'secondIndex'>,
  openGuard: (takesOver: boolean) => IndexGuard,
): Promise<{ readonly guard: IndexGuard; readonly begun?: { readonly earlier?: string } }> {
  const { state } = store
  const vkey = formatVerifierKey(index)
  const keys = [index, ...(secondIndex ? [secondIndex] : [])]
  const signers = keys.map(keyName)
  const known = state ?? { signers: signersOfLost(store), earlierSigners: [] }
  const { signers: present, earlierSigners: earlier } = known
  const prospect = prospectOf(known, keys)
  if (prospect === 'is held') throw new SignalError('CHECKPOINT_INVALID', USED_BEFORE)
  const isOurs = prospect === 'goes on'
  if (isOurs && state === undefined)
    throw damagedIndex(`it has leaves, and no state; ${NEWER_COPY}, or begin the index anew, with a new key`)
  // An index that was begun anew has the earlier one's head file until its first leaf is recorded.
  const guard = openGuard(earlier.length > 0 || (present.length > 0 && !isOurs))
  if (isOurs) {
    guard.assertExtends(store)
    // Before any of them signs.
    if (state!.vkey !== vkey || !signers.every(signer => present.includes(signer)))
      await store.changeKey(vkey, signers)
    return { guard }
  }
  guard.assertExtends({ head: () => undefined, readHashes: store.readHashes })
  await store.begin(vkey, signers, [...earlier, ...present])
  return { guard, begun: state === undefined ? {} : { earlier: state.vkey } }
}

/** For an operator who has taken the key of an index away, whose apps demand it. */
export function keyMissing(vkey: string): string {
  return `KT_INDEX_PRIVATE_KEY is not set, but this log has an index, of the key ${vkey}: put that key back, because apps that have verified the index refuse answers without it. A new key would begin another index, which they refuse, too`
}

type SignersKnown = Pick<IndexState, 'signers' | 'earlierSigners'>

/** What a start with these keys does with an index, as far as its signers say: a key of an earlier one signs no second. */
export function prospectOf(
  { signers, earlierSigners }: SignersKnown,
  keys: readonly VerifierKey[],
): 'goes on' | 'begins anew' | 'is held' {
  const names = keys.map(keyName)
  if (names.some(name => earlierSigners.includes(name))) return 'is held'
  return names.some(name => signers.includes(name)) ? 'goes on' : 'begins anew'
}

/** A store that never had an index has none. Throws `CHECKPOINT_INVALID` for leaves without a checkpoint. */
function signersOfLost(store: IndexStore): readonly string[] {
  const heads = [store.head(), store.shownHead()].filter(head => head !== undefined)
  if (heads.length === 0 && store.hasLeaves)
    throw damagedIndex(`it has leaves, and neither state nor checkpoint; ${NEWER_COPY}`)
  return [...new Set(heads.flatMap(({ checkpoint }) => statedKeys(checkpoint)))]
}

/** As a signature line names it. */
function keyName(key: VerifierKey): string {
  return formatVerifierKey(key).split('+', 2).join('+')
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

const USED_BEFORE =
  'KT_INDEX_PRIVATE_KEY or KT_INDEX_SECOND_PRIVATE_KEY is a key of an earlier index of this log, whose checkpoints people have: make a new key with keygen, so that it does not sign a second history'
const NEWER_COPY = 'put a newer copy of the data directory in its place'

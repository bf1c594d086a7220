/**
 * The log as the outside may see it: the last published checkpoint, and reads that never go beyond its size. The log
 * appender publishes here after a batch is durable; lookups and the static surface read here.
 */

import { assert, SignalError } from '../errors.ts'
import { LOOKUPS_KEPT_MAX } from '../limits.ts'
import { type LogHead, openCheckpoint } from '../log/checkpoint.ts'
import { parseEntry } from '../log/entry.ts'
import { equalHashes, type Hash, hashLeaf } from '../log/hash.ts'
import { proveInclusion, rootFromPath } from '../log/inclusion.ts'
import type { VerifierKey } from '../log/note.ts'
import { type Tile, tileWidth } from '../log/tile.ts'
import { BoundedCache } from '../store/engine/bounded-cache.ts'
import type { LoggedIdentity } from './identity-table.ts'
import type { LogReader } from './log-store.ts'

/** A leaf that a lookup found, and who the lookup database says is behind it. */
export interface LoggedKey {
  readonly index: number
  readonly leafHash: Hash
  readonly vrfHash: Uint8Array
  readonly publicKey: string
  readonly identity: LoggedIdentity
}

/** The published head with its signature verified. */
export interface VerifiedHead extends LogHead {
  readonly rootHash: Hash
}

export class PublishedLog {
  readonly #store: LogReader
  readonly #verifier: VerifierKey
  readonly #keys = new BoundedCache<number, LoggedKey>(LOOKUPS_KEPT_MAX)
  readonly #subscribers: (() => void)[] = []
  #head: LogHead | undefined
  #verified: { readonly from: LogHead; readonly head: VerifiedHead } | undefined

  constructor(store: LogReader, verifier: VerifierKey) {
    this.#store = store
    this.#verifier = verifier
  }

  /** Shows a durable checkpoint. Sizes never decrease. */
  publish(head: LogHead): void {
    assert(head.treeSize >= (this.#head?.treeSize ?? 0), 'a published tree never shrinks')
    this.#head = head
    for (const onPublished of this.#subscribers) onPublished()
  }

  /** Calls `onPublished` behind each checkpoint that is published. */
  subscribe(onPublished: () => void): void {
    this.#subscribers.push(onPublished)
  }

  /** Size of the last published tree, undefined before the first. */
  get size(): number | undefined {
    return this.#head?.treeSize
  }

  get head(): LogHead {
    if (this.#head === undefined) throw new SignalError('LOG_UNAVAILABLE', 'no checkpoint is published yet')
    return this.#head
  }

  /**
   * The current checkpoint with its signature verified, once per distinct checkpoint (LOG 4.2 step 1).
   * Throws `CHECKPOINT_INVALID`.
   */
  verifiedHead(): VerifiedHead {
    const from = this.head
    if (this.#verified?.from === from) return this.#verified.head
    try {
      const { rootHash } = openCheckpoint(from.checkpoint, this.#verifier)
      this.#verified = { from, head: { ...from, rootHash } }
    } catch (cause) {
      throw new SignalError('CHECKPOINT_INVALID', 'the current checkpoint does not verify', { cause })
    }
    return this.#verified.head
  }

  /**
   * The bytes of a hash tile or entry bundle until the next read, or undefined when the published tree implies no
   * such tile.
   */
  tileVolatile(tile: Tile): Uint8Array | undefined {
    if (tile.width > tileWidth(tile.level, tile.index, this.head.treeSize)) return undefined
    return tile.level === 'entries'
      ? this.#store.bundleVolatile(tile.index, tile.width)
      : this.#store.tileVolatile(tile.level, tile.index, tile.width)
  }

  /**
   * The newest key logged under a VRF hash within `treeSize`, or undefined when there is none. The caller compares
   * what it finds: the lookup tables are not to be trusted.
   */
  newestKey(vrfHash: Uint8Array, treeSize: number): LoggedKey | undefined {
    let index = this.#store.newestIndex(vrfHash)
    while (index !== undefined && index >= treeSize) index = this.#identity(index).previousIndex
    return index === undefined ? undefined : this.#key(index)
  }

  /**
   * Every key logged under the same VRF hash as `newest`, oldest first. Throws `IDENTITY_MISMATCH` when the records
   * behind the entries do not make one unbroken chain of one device.
   */
  history(newest: LoggedKey): readonly LoggedKey[] {
    const keys = [newest]
    for (let key = newest; key.identity.previousIndex !== undefined; ) {
      const { previousIndex, earlierKeys, userId, deviceId } = key.identity
      const earlier = previousIndex < key.index ? this.#key(previousIndex) : undefined
      const isLinked =
        earlier?.identity.earlierKeys === earlierKeys - 1 &&
        earlier.identity.userId === userId &&
        earlier.identity.deviceId === deviceId
      if (!isLinked) throw brokenHistory()
      keys.push(earlier)
      key = earlier
    }
    if (keys.length !== newest.identity.earlierKeys + 1) throw brokenHistory()
    return keys.reverse()
  }

  /**
   * Sibling hashes from the leaf up to the root of the tree. Throws `CHECKPOINT_INVALID` when they do not lead from
   * the key's entry to the signed root: a proof that fails is never handed out.
   */
  inclusionPath({ index, leafHash }: LoggedKey, { treeSize, rootHash }: VerifiedHead): readonly Hash[] {
    const path = proveInclusion(index, treeSize, this.#store.readHashes)
    if (equalHashes(rootFromPath(leafHash, index, treeSize, path), rootHash)) return path
    throw new SignalError('CHECKPOINT_INVALID', `entry ${index} is not what the checkpoint covers`)
  }

  /** An entry and who is behind it never change, so they are read once and kept. */
  #key(index: number): LoggedKey {
    const kept = this.#keys.get(index)
    if (kept !== undefined) return kept
    const identity = this.#identity(index)
    const entry = this.#store.entryVolatile(index)
    const leafHash = hashLeaf(entry)
    const key = { index, leafHash, ...parseEntry(entry), identity }
    this.#keys.set(index, key)
    return key
  }

  #identity(index: number): LoggedIdentity {
    const identity = this.#store.identity(index)
    if (identity === undefined) throw new SignalError('INTERNAL', `leaf ${index} has no identity record`)
    return identity
  }
}

function brokenHistory(): SignalError {
  return new SignalError(
    'IDENTITY_MISMATCH',
    'the records behind the entries are not a history of one device',
  )
}

/**
 * The log as the outside may see it: the last published checkpoint, and reads that never go beyond its size. The log
 * appender publishes here after a batch is durable; lookups and the static surface read here.
 */

import { assert, SignalError } from '../errors.ts'
import { LOOKUPS_KEPT_MAX } from '../limits.ts'
import { type Checkpoint, openCheckpoint } from '../log/checkpoint.ts'
import { parseEntry } from '../log/entry.ts'
import type { Hash } from '../log/hash.ts'
import { proveInclusion } from '../log/inclusion.ts'
import type { VerifierKey } from '../log/note.ts'
import { type Tile, tileWidth } from '../log/tile.ts'
import { BoundedCache } from './bounded-cache.ts'
import type { LoggedIdentity } from './identity-table.ts'
import type { LogHead, LogStore } from './log-store.ts'

/** A leaf that a lookup found, and who the lookup database says is behind it. */
export interface LoggedKey {
  readonly index: number
  readonly vrfHash: Uint8Array
  readonly publicKey: string
  readonly identity: LoggedIdentity
}

export class PublishedLog {
  readonly #store: LogStore
  readonly #verifier: VerifierKey
  readonly #keys = new BoundedCache<number, LoggedKey>(LOOKUPS_KEPT_MAX)
  #head: LogHead | undefined
  #verified: { head: LogHead; checkpoint: Checkpoint } | undefined

  constructor(store: LogStore, verifier: VerifierKey) {
    this.#store = store
    this.#verifier = verifier
  }

  /** Shows a durable checkpoint. Sizes never decrease. */
  publish(head: LogHead): void {
    assert(head.treeSize >= (this.#head?.treeSize ?? 0), 'a published tree never shrinks')
    this.#head = head
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
  verifiedHead(): LogHead {
    const head = this.head
    if (this.#verified?.head === head) return head
    try {
      this.#verified = { head, checkpoint: openCheckpoint(head.checkpoint, this.#verifier) }
    } catch (cause) {
      throw new SignalError('CHECKPOINT_INVALID', 'the current checkpoint does not verify', { cause })
    }
    return head
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

  /** Every key logged under the same VRF hash as `newest`, oldest first. */
  history(newest: LoggedKey): readonly LoggedKey[] {
    const keys = [newest]
    for (let previous = newest.identity.previousIndex; previous !== undefined; ) {
      const index = previous
      assert(index < keys.at(-1)!.index, 'a replaced key is older than its successor')
      const key = this.#key(index)
      keys.push(key)
      previous = key.identity.previousIndex
    }
    return keys.reverse()
  }

  /** Sibling hashes from the leaf up to the root of the tree of `treeSize`. */
  inclusionPath(index: number, treeSize: number): readonly Hash[] {
    return proveInclusion(index, treeSize, this.#store.readHashes)
  }

  /** An entry and who is behind it never change, so they are read once and kept. */
  #key(index: number): LoggedKey {
    const kept = this.#keys.get(index)
    if (kept !== undefined) return kept
    const identity = this.#identity(index)
    const { vrfHash, publicKey } = parseEntry(this.#store.entryVolatile(index))
    const key = { index, vrfHash, publicKey, identity }
    this.#keys.set(index, key)
    return key
  }

  #identity(index: number): LoggedIdentity {
    const identity = this.#store.identity(index)
    if (identity === undefined) throw new SignalError('INTERNAL', `leaf ${index} has no identity record`)
    return identity
  }
}

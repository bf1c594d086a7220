/**
 * The proofs of lookups as text (c2sp.org/tlog-proof), put together from parts that many answers share: the start of a
 * proof, up to the root of the leaf's tile, never changes once the tile is full; the lines from there to the root are
 * the same for all 256 leaves of the tile while the tree has one size; the checkpoint is the same for all.
 *
 * Departure from `formatProof` of `log/proof.ts` and `JSON.stringify`: proving and writing each anew takes 20 us of a
 * lookup, joining kept parts 1 (`bench/lookup.ts`).
 */

import { LOOKUPS_KEPT_MAX } from '../limits.ts'
import type { Hash } from '../log/hash.ts'
import { formatPath, PROOF_HEADER } from '../log/proof.ts'
import { TILE_HEIGHT, TILE_WIDTH } from '../log/tile.ts'
import { BoundedCache } from '../store/engine/bounded-cache.ts'
import { escapeForJson } from './bodies.ts'
import type { LoggedKey, VerifiedHead } from './published-log.ts'

/** Sibling hashes that were checked to lead from the key's entry to the root of the head. */
export type ProvePath = (key: LoggedKey, head: VerifiedHead) => readonly Hash[]

export class ProofTexts {
  readonly #provePath: ProvePath
  readonly #starts = new BoundedCache<number, string>(LOOKUPS_KEPT_MAX)
  readonly #linesAboveTile = new BoundedCache<number, string>(LOOKUPS_KEPT_MAX)
  #head: VerifiedHead | undefined
  #end = ''

  constructor(provePath: ProvePath) {
    this.#provePath = provePath
  }

  /** The kept start of a leaf's proof, which has its VRF proof in it. */
  startOf(index: number): string | undefined {
    return this.#starts.get(index)
  }

  /** The proof as the inside of a JSON string, from its kept start or from the VRF proof (80 bytes). */
  inJson(key: LoggedKey, startOrVrfProof: string | Uint8Array, head: VerifiedHead): string {
    if (head !== this.#head) this.#useHead(head)
    const tileIndex = Math.floor(key.index / TILE_WIDTH)
    const keptLines = this.#linesAboveTile.get(tileIndex)
    if (typeof startOrVrfProof === 'string' && keptLines !== undefined) {
      return startOrVrfProof + keptLines + this.#end
    }
    const path = this.#provePath(key, head)
    const start =
      typeof startOrVrfProof === 'string'
        ? startOrVrfProof
        : formatStart(key.index, startOrVrfProof, path.slice(0, TILE_HEIGHT))
    const lines = keptLines ?? escapeForJson(formatPath(path.slice(TILE_HEIGHT)))
    if ((tileIndex + 1) * TILE_WIDTH <= head.treeSize) {
      this.#starts.set(key.index, start)
      this.#linesAboveTile.set(tileIndex, lines)
    }
    return start + lines + this.#end
  }

  #useHead(head: VerifiedHead): void {
    this.#head = head
    this.#end = escapeForJson(`\n${head.checkpoint}`)
    this.#linesAboveTile.clear()
  }
}

function formatStart(index: number, vrfProof: Uint8Array, path: readonly Hash[]): string {
  const extra = Buffer.from(vrfProof.buffer, vrfProof.byteOffset, vrfProof.length).toString('base64')
  return escapeForJson(`${PROOF_HEADER}\nextra ${extra}\nindex ${index}\n${formatPath(path)}`)
}

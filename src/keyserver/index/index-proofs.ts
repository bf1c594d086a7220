/**
 * Lookups in the map of one leaf as JSON: the part that all of them share is written once, and each key's part is kept. The
 * members are those of transparency.dev's verifiable index, as Go writes them; `index_proof` has the octets of mpt v0.10.
 */

import { encodeBase64 } from '#primitives'
import { INDEX_LOOKUPS_KEPT_MAX } from '../../limits.ts'
import type { Hash } from '../../log/hash.ts'
import { indexValueOf, parseIndexLeaf } from '../../log/index-leaf.ts'
import { verifyPatricia } from '../../log/patricia.ts'
import { lookUpIn, type ReadRow } from '../../log/patricia-rows.ts'
import { BoundedCache } from '../../store/engine/bounded-cache.ts'

/** The last leaf of the output log, and that it is. */
export interface ProvenLeaf {
  /** The output log's, with its cosignatures. */
  readonly checkpoint: string
  readonly leaf: Uint8Array
  readonly path: readonly Hash[]
}

export class IndexProofs {
  readonly #root: Hash
  readonly #start: string
  /** The rest of the JSON, by the octets of the key as characters. */
  readonly #ends = new BoundedCache<string, string>(INDEX_LOOKUPS_KEPT_MAX)

  constructor({ checkpoint, leaf, path }: ProvenLeaf) {
    this.#root = parseIndexLeaf(leaf).root
    const note = encodeBase64(Buffer.from(checkpoint))
    const hashes = path.map(hash => `[${hash.join()}]`).join()
    this.#start = `{"output_log_cp":"${note}","output_log_leaf":"${encodeBase64(leaf)}","output_log_proof":[${hashes}],`
  }

  /** Throws `PROOF_INVALID`, or what a damaged row makes of it, rather than hand out what the leaf does not say. */
  inJson(key: Uint8Array, readRow: ReadRow): string {
    const name = Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')
    const kept = this.#ends.get(name)
    if (kept !== undefined) return this.#start + kept
    const end = this.#find(key, readRow)
    this.#ends.set(name, end)
    return this.#start + end
  }

  #find(key: Uint8Array, readRow: ReadRow): string {
    const { indexes, proof } = lookUpIn(readRow, key)
    const value = indexes.length === 0 ? undefined : indexValueOf(indexes)
    verifyPatricia({ root: this.#root, key, value, proof })
    return `"index_value":[${indexes.join()}],"index_proof":"${encodeBase64(proof)}"}`
  }
}

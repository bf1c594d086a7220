/**
 * A log with its index, made by a test, as the files that both serve; every leaf may lie. Roots come from `growTree` over all
 * entries anew.
 */

import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatEntry } from '../../src/log/entry.ts'
import { formatIndexLeaf, indexKeyOfEntry, indexOriginOf } from '../../src/log/index-leaf.ts'
import { type SignerKey, signerKeyFromSeed } from '../../src/log/note.ts'
import { growTree, lookUpIn } from '../../src/log/patricia-rows.ts'
import { type FileServer, integrate, type LogFiles, logFilesOf, SIGNER } from './served-log.ts'

/** The key of every index here. */
export const INDEX_SIGNER = signerKeyFromSeed(indexOriginOf(SIGNER.name), new Uint8Array(32).fill(2))
export const INDEX_KEYS = { verifier: INDEX_SIGNER, verifiers: [INDEX_SIGNER] }

/** Key `key` under hash `hash`: each hash may have several. */
export function entryUnder(hash: number, key: number, keyBytes = 32): Uint8Array {
  const vrfHash = new Uint8Array(64)
  new DataView(vrfHash.buffer).setUint32(0, hash)
  const publicKey = Buffer.alloc(keyBytes, `key ${key} `).toString('base64')
  // A copy: `formatEntry` hands out parts of shared memory.
  return Uint8Array.from(formatEntry(vrfHash, publicKey))
}

/** Entries; each third one is a further key of an earlier device. */
export function keysOf(size: number, start = 0): Uint8Array[] {
  return Array.from({ length: size }, (_, at) => start + at).map(index =>
    entryUnder(index % 3 === 2 ? index >> 1 : index, index),
  )
}

export interface Leaf {
  /** How many entries it is of. */
  readonly size?: number
  /** The entries of the map, in place of its tree's. */
  readonly mapOf?: readonly Uint8Array[]
  /** In place of the log's own checkpoint of that size. */
  readonly checkpoint?: string
}

export class IndexedLog {
  readonly entries: Uint8Array[]
  readonly leaves: Uint8Array[] = []
  readonly signer: SignerKey
  readonly indexSigner: SignerKey
  /** The entries of the last leaf's map. */
  #mapOf: readonly Uint8Array[] = []

  constructor(entries: readonly Uint8Array[], { signer = SIGNER, indexSigner = INDEX_SIGNER } = {}) {
    this.entries = [...entries]
    this.signer = signer
    this.indexSigner = indexSigner
  }

  /** Another log that goes its own way from here. */
  fork(): IndexedLog {
    const twin = new IndexedLog(this.entries, this)
    twin.leaves.push(...this.leaves)
    return twin
  }

  checkpoint(size = this.entries.length): string {
    return signCheckpoint(integrate(this.entries.slice(0, size)), this.signer)
  }

  /** Adds a leaf, and new entries before it. */
  addLeaf({
    size = this.entries.length,
    mapOf = this.entries.slice(0, size),
    checkpoint = this.checkpoint(size),
  }: Leaf = {}): this {
    this.#mapOf = mapOf
    const keyed = mapOf.map((entry, index) => ({ key: indexKeyOfEntry(entry), index }))
    const { root } = growTree(() => undefined, keyed)
    this.leaves.push(formatIndexLeaf({ inputCheckpoint: checkpoint, root }))
    return this
  }

  /** The checkpoint of the output log. */
  indexCheckpoint(size = this.leaves.length): string {
    return signCheckpoint(integrate(this.leaves.slice(0, size)), this.indexSigner)
  }

  /** Everything that both serve. */
  get files(): LogFiles {
    const files = logFilesOf(this.entries, this.signer)
    for (const [path, bytes] of logFilesOf(this.leaves, this.indexSigner)) files.set(`index/${path}`, bytes)
    return files
  }

  /** Answers lookups in the map of the last leaf. */
  answerLookups(server: FileServer): void {
    const rows = new Map<number, Uint8Array>()
    const keyed = this.#mapOf.map((entry, index) => ({ key: indexKeyOfEntry(entry), index }))
    for (const [id, bytes] of growTree(id => rows.get(id), keyed).rows) rows.set(id, bytes)
    server.misbehave = (path, response) => {
      const hex = /^index\/lookup\/([0-9a-f]{64})$/.exec(path)?.[1]
      if (hex === undefined) return false
      const { indexes, proof } = lookUpIn(id => rows.get(id), Buffer.from(hex, 'hex'))
      const answer = {
        output_log_leaf: Buffer.from(this.leaves.at(-1)!).toString('base64'),
        index_value: indexes,
        index_proof: Buffer.from(proof).toString('base64'),
      }
      return Boolean(response.writeHead(200).end(JSON.stringify(answer)))
    }
  }
}

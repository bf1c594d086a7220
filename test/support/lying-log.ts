/**
 * A log whose operator does as he likes: it holds both secrets, so it can sign any tree, prove any hash and answer
 * anything. Roots and paths come from the naive tree.
 */

import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatEntry } from '../../src/log/entry.ts'
import { formatVerifierKey, type SignerKey, signerKeyFromSeed } from '../../src/log/note.ts'
import { formatProof } from '../../src/log/proof.ts'
import { parseTilePath, type Tile } from '../../src/log/tile.ts'
import { generateVrfSecret, proveVrf, vrfInput, vrfPublicKey } from '../../src/log/vrf.ts'
import { vrfHashFromProof } from '../../src/log/vrf-verify.ts'
import { toBase64 } from './bytes.ts'
import { LyingIndex } from './lying-index.ts'
import { TileLog } from './tile-log.ts'
import { formatBundle } from './tiles.ts'

/** Key, hash and VRF proof of one leaf. */
export interface LyingLeaf {
  readonly publicKey: string
  readonly vrfHash: string
  readonly vrfProof: Uint8Array
}

export interface LyingLogOptions {
  readonly origin?: string
  /** Logs of one number have the same keys. */
  readonly number?: number
}

export class LyingLog {
  readonly signer: SignerKey
  /** Offered with lookups that ask for it, once it has a leaf. */
  index: LyingIndex
  readonly #vrfSecret: Uint8Array
  readonly #leaves: LyingLeaf[] = []
  readonly #proofs = new Map<string, Uint8Array>()
  #served: TileLog | undefined

  constructor({ origin = 'log.example/kt', number = 1 }: LyingLogOptions = {}) {
    this.signer = signerKeyFromSeed(origin, new Uint8Array(32).fill(number))
    this.index = new LyingIndex(origin, number + 4)
    this.#vrfSecret = generateVrfSecret(new Uint8Array(64).fill(number))
  }

  get published() {
    return {
      vkey: formatVerifierKey(this.signer),
      vrfPublicKey: toBase64(vrfPublicKey(this.#vrfSecret)),
    }
  }

  get size(): number {
    return this.#leaves.length
  }

  /** Another log with the same secrets, leaves and index, which goes its own way from here. */
  fork(leaves = this.size): LyingLog {
    const twin = new LyingLog({ origin: this.signer.name, number: this.signer.seed[0]! })
    twin.index = this.index.fork()
    twin.#leaves.push(...this.#leaves.slice(0, leaves))
    return twin
  }

  /** Logs a key as Register would; returns its leaf. */
  register(userId: bigint, deviceId: bigint, publicKey = numberedKey(this.size)): LyingLeaf {
    return this.append({ ...this.identity(userId, deviceId), publicKey })
  }

  append(leaf: LyingLeaf): LyingLeaf {
    this.#leaves.push(leaf)
    this.#served = undefined
    return leaf
  }

  /** Keys of made-up users, quickly: their hashes are no VRF's. */
  grow(size: number): void {
    while (this.size < size) {
      const vrfHash = toBase64(Uint8Array.from({ length: 64 }, (_, at) => this.size >> (8 * (at % 3))))
      this.append({ vrfHash, vrfProof: new Uint8Array(80), publicKey: numberedKey(this.size) })
    }
  }

  leaf(index: number): LyingLeaf {
    return this.#leaves[index]!
  }

  identity(userId: bigint, deviceId: bigint): { vrfHash: string; vrfProof: Uint8Array } {
    const name = `${userId}_${deviceId}`
    const vrfProof = this.#proofs.get(name) ?? proveVrf(this.#vrfSecret, vrfInput(userId, deviceId))
    this.#proofs.set(name, vrfProof)
    return { vrfHash: toBase64(vrfHashFromProof(vrfProof)), vrfProof }
  }

  root(treeSize = this.size): Uint8Array {
    return this.tiles.tree.root(0, treeSize)
  }

  note(treeSize = this.size, rootHash = this.root(treeSize)): string {
    return signCheckpoint({ treeSize, rootHash }, this.signer)
  }

  path(index: number, treeSize = this.size): Uint8Array[] {
    return this.tiles.tree.inclusion(index, treeSize)
  }

  /** The honest answer for a leaf, but for the lies given. */
  result(index: number, forged: Lies = {}) {
    const { treeSize = this.size } = forged
    const leaf = this.leaf(index)
    const { publicKey, vrfHash, vrfProof } = { ...leaf, ...forged }
    const proof = formatProof({
      extra: vrfProof,
      index: forged.index ?? index,
      path: forged.path ?? this.path(index, treeSize),
      checkpoint: forged.note ?? this.note(treeSize),
    })
    return { publicKey, vrfHash, proof }
  }

  /** The answer of `get-key-history` with these leaves. */
  history(indexes: readonly number[], treeSize = this.size) {
    const entries = indexes.map(index => {
      const { publicKey, proof } = this.result(index, { treeSize })
      return { index: `${index}`, publicKey, proof }
    })
    return { entries, treeSize: `${treeSize}` }
  }

  /** The leaves under a hash, oldest first. */
  indexesOf(vrfHash: string, treeSize = this.size): number[] {
    return this.#leaves.slice(0, treeSize).flatMap((leaf, index) => (leaf.vrfHash === vrfHash ? [index] : []))
  }

  tile({ level, index, width }: Tile): Uint8Array {
    if (level === 'entries') return formatBundle(this.tiles.bundleEntries(index, width))
    return this.tiles.hashTile(level, index, width)
  }

  /** A user without a list, as the server names them. */
  absent(userId: bigint, indexProof = this.index.proof(this.identity(userId, 0n).vrfHash)) {
    const { vrfHash, vrfProof } = this.identity(userId, 0n)
    return { deviceId: '0', vrfHash, vrfProof: toBase64(vrfProof), indexProof }
  }

  /** A `fetch` of this log's server; `lie` may answer in its place. It distinguishes requests by path and body. */
  fetch(lie: (path: string, body: unknown) => unknown = () => undefined): LyingFetch {
    const requests: string[] = []
    const fetch = async (url: string, { body }: { readonly body?: string } = {}) => {
      const path = url.replace(/^https?:\/\/[^/]+\//, '')
      requests.push(path)
      const asked = body === undefined ? undefined : JSON.parse(body)
      const answer = (await lie(path, asked)) ?? this.#answer(path, asked)
      if (answer instanceof Response) return answer
      if (answer instanceof Uint8Array || typeof answer === 'string') return new Response(answer)
      return new Response(JSON.stringify(answer))
    }
    return Object.assign(fetch, { requests })
  }

  #answer(path: string, asked: Question): unknown {
    if (path === 'checkpoint') return this.note()
    if (path === 'api/get-public-keys') {
      const isIndexed = asked.index === true && this.index.size > 0
      return {
        results: asked.targets.map(({ publicKeyHash }) => ({
          ...this.result(this.indexesOf(publicKeyHash).at(-1)!),
          ...(isIndexed && { indexProof: this.index.proof(publicKeyHash) }),
        })),
      }
    }
    if (path === 'api/get-key-history') return this.history(this.indexesOf(asked.publicKeyHash))
    if (path === 'index/checkpoint') return this.index.note()
    const from = path.startsWith('index/') ? this.index : this
    const tile = parseTilePath(path.replace(/^index\//, ''))
    const level = tile.level === 'entries' ? 0 : tile.level
    const isThere = tile.index * 256 + tile.width <= Math.floor(from.size / 256 ** level)
    return isThere ? from.tile(tile) : new Response('not in the log', { status: 404 })
  }

  /** Its entries as trees and tiles. */
  get tiles(): TileLog {
    this.#served ??= new TileLog(
      this.#leaves.map(({ vrfHash, publicKey }) => formatEntry(Buffer.from(vrfHash, 'base64'), publicKey)),
    )
    return this.#served
  }
}

export type LyingFetch = ((url: string, init?: { readonly body?: string }) => Promise<Response>) & {
  /** The paths asked for, without a leading slash. */
  readonly requests: string[]
}

interface Question {
  readonly index?: boolean
  readonly targets: readonly { readonly publicKeyHash: string }[]
  readonly publicKeyHash: string
}

/** The falsified parts of an answer. */
export interface Lies extends Partial<LyingLeaf> {
  readonly treeSize?: number
  readonly index?: number
  readonly path?: readonly Uint8Array[]
  readonly note?: string
}

/** A key of 32 bytes that tells its number. */
export function numberedKey(number: number): string {
  const bytes = new Uint8Array(32)
  new DataView(bytes.buffer).setUint32(0, number)
  return toBase64(bytes)
}

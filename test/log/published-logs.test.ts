/** Whole logs, rebuilt from their entries: everything they serve comes out byte for byte. */
import t from 'tap'
import { openCheckpoint, signCheckpoint } from '../../src/log/checkpoint.ts'
import { proveConsistency } from '../../src/log/consistency.ts'
import { formatEntry, parseEntry } from '../../src/log/entry.ts'
import { hashLeaf } from '../../src/log/hash.ts'
import { proveInclusion, rootFromPath } from '../../src/log/inclusion.ts'
import { formatVerifierKey, openNote, parseSignerKey, parseVerifierKey } from '../../src/log/note.ts'
import { formatProof, parseProof } from '../../src/log/proof.ts'
import {
  entryInBundle,
  formatTilePath,
  hashInTile,
  parseTilePath,
  tileOfNode,
  tileWidth,
} from '../../src/log/tile.ts'
import { type Node, RightEdge } from '../../src/log/tree.ts'
import { fromBase64, fromUtf8, toBase64, toHex } from '../support/bytes.ts'
import { sha256 } from '../support/naive-tree.ts'
import { TileLog } from '../support/tile-log.ts'
import { formatBundle, tilesBetween } from '../support/tiles.ts'
import { readVectors } from '../support/vectors.ts'

interface GoldenLog {
  vkey: string
  skey: string
  entries_utf8: string[]
  leaf_hashes_base64: string[]
  checkpoints: string[]
  resources: Record<string, string>
}
interface DerivedLog {
  log_skey: string
  log_vkey: string
  entries: { publicKey: string; vrfHash: string; leaf_hash_base64: string }[]
  checkpoints: Record<string, string>
  resources: Record<string, { bytes: number; sha256: string }>
  tlog_proofs: { index: number; size: number; proof: string }[]
  consistency: { first: number; second: number; proof_base64: string[] }[]
  cosigned_checkpoint: string
}

t.test('the golden log of Tessera is rebuilt byte for byte', async t => {
  const golden = readVectors<GoldenLog>('tessera-golden-log')
  const entries = golden.entries_utf8.map(fromUtf8)
  const signer = parseSignerKey(golden.skey)
  t.equal(formatVerifierKey(signer), golden.vkey)
  t.same(entries.map(hashLeaf).map(toBase64), golden.leaf_hashes_base64)
  t.same(checkpointsOf(entries, golden.skey), golden.checkpoints)
  const served = [...resourcesOf(entries, range(0, entries.length))]
  t.same(Object.fromEntries(served.map(([path, bytes]) => [path, toHex(bytes)])), golden.resources)
})

t.test('the derived log in our own entry form is rebuilt byte for byte', async t => {
  const derived = readVectors<DerivedLog>('derived-kt-e2e')
  const entries = derived.entries.map(entry => formatEntry(fromBase64(entry.vrfHash), entry.publicKey))
  const checkpoints = checkpointsOf(entries, derived.log_skey)
  const sizes = Object.keys(derived.checkpoints).map(Number)
  for (const size of sizes) t.equal(checkpoints[size], derived.checkpoints[size])
  const served = [...resourcesOf(entries, sizes)]
  const digests = served.map(([path, bytes]) => {
    return [path, { bytes: bytes.length, sha256: toHex(sha256(bytes)) }] as const
  })
  const expected = Object.entries(derived.resources).map(
    ([path, { bytes, sha256 }]) => [path, { bytes, sha256 }] as const,
  )
  t.same(new Map(digests), new Map(expected))
})

t.test('the proofs of the derived log come out of its tiles and hold', async t => {
  const derived = readVectors<DerivedLog>('derived-kt-e2e')
  const verifier = parseVerifierKey(derived.log_vkey)
  const entries = derived.entries.map(entry => formatEntry(fromBase64(entry.vrfHash), entry.publicKey))
  const log = new TileLog(entries)
  for (const { index, size, proof } of derived.tlog_proofs) {
    const read = parseProof(proof)
    const path = proveInclusion(index, size, nodes => readTiles(log, size, nodes))
    t.equal(formatProof({ ...read, index, path, checkpoint: derived.checkpoints[size]! }), proof)

    const bundleIndex = Math.floor(index / 256)
    const width = tileWidth('entries', bundleIndex, size)
    const bundle = formatBundle(log.bundleEntries(bundleIndex, width))
    const entry = entryInBundle(bundle, index % 256)
    const { treeSize, rootHash } = openCheckpoint(read.checkpoint, verifier)
    t.equal(toHex(rootFromPath(hashLeaf(entry), read.index, treeSize, read.path)), toHex(rootHash))
    t.equal(toBase64(parseEntry(entry).vrfHash), derived.entries[index]!.vrfHash)
  }
  for (const { first, second, proof_base64 } of derived.consistency) {
    const proof = proveConsistency(first, second, nodes => readTiles(log, second, nodes))
    t.same(proof.map(toBase64), proof_base64)
  }
  const opened = openNote(derived.cosigned_checkpoint, [verifier])
  t.equal(opened.signatures.length, 1)
  t.ok(opened.unverified.length > 0)
})

/** The signed checkpoint of every size, by appending one entry after the other. */
function checkpointsOf(entries: readonly Uint8Array[], skey: string): string[] {
  const signer = parseSignerKey(skey)
  const edge = new RightEdge(0, [])
  const checkpoints = [signCheckpoint({ treeSize: 0, rootHash: edge.rootHash() }, signer)]
  for (const entry of entries) {
    edge.append(hashLeaf(entry))
    checkpoints.push(signCheckpoint({ treeSize: edge.treeSize, rootHash: edge.rootHash() }, signer))
  }
  return checkpoints
}

/** Every path that has to be there once checkpoints of those sizes were produced, with its bytes. */
function resourcesOf(entries: readonly Uint8Array[], sizes: readonly number[]): Map<string, Uint8Array> {
  const log = new TileLog(entries)
  const resources = new Map<string, Uint8Array>()
  let before = 0
  for (const size of sizes) {
    for (const tile of tilesBetween(before, size)) {
      const path = formatTilePath(tile)
      const { level, index, width } = parseTilePath(path)
      const bytes =
        level === 'entries'
          ? formatBundle(log.bundleEntries(index, width))
          : log.hashTile(level, index, width)
      resources.set(`/${path}`, bytes)
    }
    before = size
  }
  return resources
}

/** Nodes as a client reads them: out of the widest tiles that a tree of that size has. */
function readTiles(log: TileLog, treeSize: number, nodes: readonly Node[]): Uint8Array[] {
  return nodes.map(node => {
    const { level, index } = tileOfNode(node)
    return hashInTile(log.hashTile(level, index, tileWidth(level, index, treeSize)), node)
  })
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at)
}

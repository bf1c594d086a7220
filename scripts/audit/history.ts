/** Signed trees of one log held against each other: one of two must be the beginning of the other. */

import { consistencyFromTiles, type TreeHead } from '../../src/client/tile-consistency.ts'
import { SignalError } from '../../src/errors.ts'
import { encodeBase64 } from '../../src/log/base64.ts'
import { consistencyNodes, proveConsistency } from '../../src/log/consistency.ts'
import { equalHashes } from '../../src/log/hash.ts'
import type { VerifierKey } from '../../src/log/note.ts'
import { formatTilePath } from '../../src/log/tile.ts'
import { rootHash, rootNodes } from '../../src/log/tree.ts'
import { openLogCheckpoint } from '../support/checkpoint-state.ts'
import type { ConsistencyEvidence } from './evidence.ts'
import { AuditFailure, pending, unchecked } from './finding.ts'
import { firstOf, type LogReader, readNodes, type TileReader } from './log-reader.ts'

/** A tree that the log signed; `note` is the signed note, as it came. */
export interface SignedHead extends TreeHead {
  readonly note: string
}

/** Throws as `openCheckpoint` does. */
export function openHead(note: Uint8Array, verifiers: readonly VerifierKey[]): SignedHead {
  const { treeSize, rootHash } = openLogCheckpoint(note, verifiers)
  return { treeSize, rootHash, note: Buffer.from(note).toString() }
}

/** The same of a note at that prefix. Throws `AuditFailure`. */
export function openServedHead(url: string, note: Uint8Array, verifiers: readonly VerifierKey[]): SignedHead {
  try {
    return openHead(note, verifiers)
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    throw pending('checkpoint', `${url}/checkpoint: ${error.message}`)
  }
}

export function isSameTree(one: TreeHead, other: TreeHead): boolean {
  return one.treeSize === other.treeSize && equalHashes(one.rootHash, other.rootHash)
}

/**
 * - `consistent`: one of the two trees is the beginning of the other
 * - `contradiction`: the log signed both, and neither begins with the other; `proof` shows it, where the sizes differ
 * - `undecided`: no source has the tiles; `failure` is the first source's
 */
export type Comparison =
  | { readonly kind: 'consistent' }
  | { readonly kind: 'contradiction'; readonly detail: string; readonly proof: ConsistencyEvidence | null }
  | { readonly kind: 'undecided'; readonly failure: AuditFailure }

/**
 * Compares two trees that the log signed, by tiles of the larger one. Begins with each source in turn, and fills its gaps
 * from the rest, until the tiles decide: they are believed only as far as they lead to the signed root, so any will do.
 */
export async function compareHistories(
  first: SignedHead,
  second: SignedHead,
  sources: readonly LogReader[],
): Promise<Comparison> {
  const [older, newer] = first.treeSize <= second.treeSize ? [first, second] : [second, first]
  let failure: AuditFailure | undefined
  const readers = sources.map(readingOnce)
  for (const [at, { url }] of sources.entries()) {
    const first = readers[at]!
    const tiles = readingOnce(firstOf([first, ...readers.filter(reader => reader !== first)]))
    const outcome = await compareIn(tiles, url, older, newer)
    if (outcome.kind !== 'undecided') return outcome
    failure ??= outcome.failure
  }
  return { kind: 'undecided', failure: failure ?? unchecked('fetch', 'there is no source to ask for tiles') }
}

async function compareIn(
  tiles: TileReader,
  url: string,
  older: SignedHead,
  newer: SignedHead,
): Promise<Comparison> {
  try {
    const found = await consistencyFromTiles(tile => tiles.tile(tile), older, newer)
    if (found.kind === 'consistent') return found
    if (found.check === 'consistency') {
      const proof = await proveContradiction(tiles, older.treeSize, newer.treeSize)
      return { kind: 'contradiction', detail: found.detail, proof }
    }
    return { kind: 'undecided', failure: pending('tiles', `${url}: ${found.detail}`) }
  } catch (error) {
    if (!(error instanceof AuditFailure)) throw error
    return { kind: 'undecided', failure: error }
  }
}

/** Asks for each tile once; and those that decided are those that prove. */
function readingOnce(source: TileReader): TileReader {
  const tiles = new Map<string, Promise<Uint8Array>>()
  return {
    tile(tile) {
      const path = formatTilePath(tile)
      const bytes = tiles.get(path) ?? source.tile(tile)
      tiles.set(path, bytes)
      return bytes
    },
  }
}

/** Null where the two notes need no proof besides. */
async function proveContradiction(
  tiles: TileReader,
  oldSize: number,
  newSize: number,
): Promise<ConsistencyEvidence | null> {
  if (oldSize === 0 || oldSize === newSize) return null
  const rootHashes = await readNodes(tiles, rootNodes(oldSize), newSize)
  const proofHashes = await readNodes(tiles, consistencyNodes(oldSize, newSize), newSize)
  const proof = proveConsistency(oldSize, newSize, () => proofHashes)
  return { oldRoot: encodeBase64(rootHash(oldSize, () => rootHashes)), hashes: proof.map(encodeBase64) }
}

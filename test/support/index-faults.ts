/** Looks at a stored index with distrust: by the log's entries, and by earlier checkpoints of its output log. */

import { openOutputLog } from '../../src/keyserver/index/index-opening.ts'
import { IndexStore } from '../../src/keyserver/index/index-store.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { equalHashes, type Hash } from '../../src/log/hash.ts'
import { indexKeyOfEntry } from '../../src/log/index-leaf.ts'
import type { VerifierKey } from '../../src/log/note.ts'
import { growTree } from '../../src/log/patricia-rows.ts'
import { rootHash } from '../../src/log/tree.ts'
import type { Store } from '../../src/store/engine/store.ts'

/** Checkpoints of an output log that left the server. */
export class SeenCheckpoints {
  readonly #verifier: VerifierKey
  readonly #roots = new Map<number, Hash>()

  constructor(verifier: VerifierKey) {
    this.#verifier = verifier
  }

  get count(): number {
    return this.#roots.size
  }

  /** Throws for one that contradicts another of its size. */
  see(note: string): void {
    const { treeSize, rootHash: root } = openCheckpoint(note, this.#verifier)
    const earlier = this.#roots.get(treeSize)
    if (earlier !== undefined && !equalHashes(earlier, root))
      throw new Error(`two output checkpoints of size ${treeSize}`)
    this.#roots.set(treeSize, root)
  }

  faultsOf(index: Pick<IndexStore, 'readHashes' | 'head'>): string[] {
    const size = index.head()?.treeSize ?? 0
    return [...this.#roots].flatMap(([seen, root]) => {
      if (seen > size) return [`${seen} leaves were seen, and there are ${size}`]
      return equalHashes(rootHash(seen, index.readHashes), root) ? [] : [`another root of ${seen} leaves`]
    })
  }
}

/** The map over the first entries of a log, made anew, and grown where more of them are asked for. */
export class RebuiltMap {
  readonly #rows = new Map<number, Uint8Array>()
  #entries = 0
  #root = growTree(() => undefined, []).root

  rootAt(entries: number, entryAt: (index: number) => Uint8Array): Hash {
    if (entries < this.#entries) {
      this.#rows.clear()
      this.#entries = 0
    }
    const added = Array.from({ length: entries - this.#entries }, (_, at) => {
      const index = this.#entries + at
      return { key: indexKeyOfEntry(entryAt(index)), index }
    })
    if (added.length > 0) {
      const { root, rows } = growTree(id => this.#rows.get(id), added)
      this.#root = root
      for (const [id, bytes] of rows) this.#rows.set(id, bytes)
    }
    this.#entries = entries
    return entries === 0 ? growTree(() => undefined, []).root : this.#root
  }
}

/** The faults of a durable state. */
export function faultsOfIndex(
  store: Store,
  {
    verifier,
    seen,
    rebuilt,
  }: {
    readonly verifier: VerifierKey
    readonly seen: SeenCheckpoints
    readonly rebuilt: RebuiltMap
  },
): string[] {
  const index = new IndexStore(store)
  const log = new LogStore(store)
  const { state } = index
  if (state === undefined) return []
  openOutputLog(index, verifier)
  const shown = index.shownHead()
  if (shown !== undefined) seen.see(shown.checkpoint)
  const faults = seen.faultsOf(index)
  if (state.leaves === 0) return faults
  if (shown?.treeSize !== state.leaves) faults.push(`map of leaf ${state.leaves}, shown ${shown?.treeSize}`)
  const { root } = index.leaf(state.leaves - 1)
  if (!equalHashes(index.mapRoot(), root)) faults.push('the map has another root than its leaf')
  const entryAt = (at: number) => log.entryVolatile(at)
  if (!equalHashes(rebuilt.rootAt(state.entries, entryAt), root))
    faults.push('the leaf has another root than the entries')
  for (let at = 0; at < state.entries; at += Math.ceil(state.entries / 50)) {
    if (!index.lookUp(indexKeyOfEntry(entryAt(at))).indexes.includes(at))
      faults.push(`entry ${at} is not in the map`)
  }
  return faults
}

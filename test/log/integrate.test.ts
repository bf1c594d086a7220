/** Growing a log batch by batch against a naive tree and the definition of tiles, with restarts in between. */
import t from 'tap'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { type Integration, type TailBytes, TreeTail } from '../../src/log/integrate.ts'
import { parseSignerKey } from '../../src/log/note.ts'
import { formatTilePath, parseBundle, type Tile } from '../../src/log/tile.ts'
import { RightEdge, rootNodes } from '../../src/log/tree.ts'
import { fromUtf8, toHex } from '../support/bytes.ts'
import { NaiveTree } from '../support/naive-tree.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { TileLog } from '../support/tile-log.ts'
import { formatBundle, tilesBetween } from '../support/tiles.ts'
import { VastTree } from '../support/vast-tree.ts'
import { readVectors } from '../support/vectors.ts'

/** The longest entry that a Register makes, and one byte. */
const ENTRY_BYTES_MAX = 1_115

/** A store's content: the widest of each hash tile and bundle, by `level/index`. */
class Stored {
  readonly #bytes = new Map<string, Uint8Array>()
  /** Partial tiles that are no prefix of what replaced them. */
  readonly notPrefixes: string[] = []

  put({ tiles, bundles }: Integration): void {
    for (const { level, index, bytes } of tiles) this.#put(`${level}/${index}`, bytes)
    for (const { index, bytes } of bundles) this.#put(`entries/${index}`, bytes)
  }

  get(level: number | 'entries', index: number): Uint8Array | undefined {
    return this.#bytes.get(`${level}/${index}`)
  }

  /** Whether it holds exactly the tiles of the tree, each as wide as the tree makes it. */
  isWhole(log: TileLog, treeSize: number): boolean {
    const tiles = tilesBetween(0, treeSize)
    return tiles.length === this.#bytes.size && tiles.every(tile => this.#holds(log, tile))
  }

  /** The bytes that a restart reads. */
  tail(treeSize: number): TailBytes {
    const tiles: (Uint8Array | undefined)[] = []
    for (let hashes = treeSize; hashes > 0; hashes = Math.floor(hashes / 256)) {
      tiles.push(hashes % 256 === 0 ? undefined : this.get(tiles.length, Math.floor(hashes / 256)))
    }
    const bundle = treeSize % 256 === 0 ? undefined : this.get('entries', Math.floor(treeSize / 256))
    const leafHashes = Array.from({ length: treeSize }, (_, index) => {
      const start = (index % 256) * 32
      return this.get(0, Math.floor(index / 256))!.slice(start, start + 32)
    })
    const roots = new NaiveTree(leafHashes).readHashes(rootNodes(treeSize))
    return { edge: new RightEdge(treeSize, roots), tiles, bundle }
  }

  #holds(log: TileLog, { level, index, width }: Tile): boolean {
    const bytes = this.get(level, index)
    const wanted =
      level === 'entries' ? formatBundle(log.bundleEntries(index, width)) : log.hashTile(level, index, width)
    return bytes !== undefined && Buffer.compare(bytes, wanted) === 0
  }

  #put(key: string, bytes: Uint8Array): void {
    const before = this.#bytes.get(key)
    const isPrefix = before === undefined || Buffer.compare(before, bytes.subarray(0, before.length)) === 0
    if (!isPrefix || (before !== undefined && before.length >= bytes.length)) this.notPrefixes.push(key)
    this.#bytes.set(key, bytes)
  }
}

/** Notes bytes handed out, to see later whether they were overwritten. */
class HandedOut {
  readonly #copies: [Uint8Array, string][] = []

  add({ rootHash, roots, tiles, bundles }: Integration): void {
    for (const bytes of [rootHash, ...roots]) this.#copies.push([bytes, toHex(bytes)])
    for (const { bytes } of [...tiles, ...bundles]) this.#copies.push([bytes, toHex(bytes)])
  }

  countChanged(): number {
    return this.#copies.filter(([bytes, copy]) => toHex(bytes) !== copy).length
  }
}

function newTail(): TreeTail {
  return new TreeTail({ edge: new RightEdge(0, []), tiles: [], bundle: undefined })
}

/** Paths in the order of `tilesBetween`, which an integration need not keep. */
function pathsOf({ tiles, bundles }: Integration): string[] {
  const paths = [
    ...bundles.map(({ index, bytes }) => ({ level: 'entries' as const, index, width: countEntries(bytes) })),
    ...tiles.map(({ level, index, bytes }) => ({ level, index, width: bytes.length / 32 })),
  ]
  return paths.map(formatTilePath).sort()
}

function countEntries(bundle: Uint8Array): number {
  return parseBundle(bundle).length
}

function randomEntry(random: () => number): Uint8Array {
  const isUsual = random() < 0.7
  const entry = new Uint8Array(isUsual ? 134 : 1 + Math.floor(random() * ENTRY_BYTES_MAX))
  for (let at = 0; at < Math.min(entry.length, 16); at++) entry[at] = Math.floor(random() * 256)
  entry[entry.length - 1] = Math.floor(random() * 256)
  return entry
}

/** 1 to 700, small ones as likely as large ones. */
function randomBatchSize(random: () => number): number {
  return Math.max(1, Math.floor(701 ** random()))
}

/** An integration as text, to compare two of them. */
function textOf({ treeSize, rootHash, roots, tiles, bundles }: Integration): string {
  const named = [...tiles, ...bundles.map(bundle => ({ level: 'entries', ...bundle }))]
  const lines = named.map(({ level, index, bytes }) => `${level}/${index} ${toHex(bytes)}`)
  return [treeSize, toHex(rootHash), ...roots.map(toHex), ...lines].join('\n')
}

t.test('random batches make the tiles, bundles and roots that the whole log has', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const faults: string[] = []
  for (let run = 0; run < 8; run++) {
    const entries = Array.from({ length: 1_600 }, () => randomEntry(random))
    const log = new TileLog(entries)
    const stored = new Stored()
    const handedOut = new HandedOut()
    const tail = newTail()
    for (let size = 0; size < entries.length; ) {
      const batch = entries.slice(size, size + randomBatchSize(random))
      const integration = tail.integrate(batch)
      stored.put(integration)
      handedOut.add(integration)
      const before = size
      size += batch.length
      const fault = (what: string) => faults.push(`seed ${seed}, run ${run}, ${before} to ${size}: ${what}`)
      if (integration.treeSize !== size || tail.treeSize !== size) fault('size')
      if (toHex(integration.rootHash) !== toHex(log.tree.root(0, size))) fault('root')
      if (toHex(tail.rootHash()) !== toHex(integration.rootHash)) fault('root of the tail')
      const roots = log.tree.readHashes(rootNodes(size))
      if (integration.roots.map(toHex).join() !== roots.map(toHex).join()) fault('roots')
      if (pathsOf(integration).join() !== tilesBetween(before, size).map(formatTilePath).sort().join()) {
        fault('which tiles')
      }
      if (!stored.isWhole(log, size)) fault('bytes of tiles')
    }
    if (handedOut.countChanged() > 0) faults.push(`seed ${seed}, run ${run}: bytes were written again`)
    for (const key of stored.notPrefixes) faults.push(`seed ${seed}, run ${run}: ${key} is no prefix`)
  }
  t.same(faults, [])
})

t.test('a restart after any batch goes on as if there had been none', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const entries = Array.from({ length: 2_500 }, () => randomEntry(random))
  const stored = new Stored()
  const tail = newTail()
  const different: number[] = []
  for (let size = 0; size < entries.length; ) {
    const restarted = new TreeTail(stored.tail(size))
    const batch = entries.slice(size, size + randomBatchSize(random))
    const integration = tail.integrate(batch)
    if (textOf(restarted.integrate(batch)) !== textOf(integration)) different.push(size)
    stored.put(integration)
    size += batch.length
  }
  t.same(different, [], `seed ${seed}`)
})

t.test('a restart at any size of two bundles goes on as if there had been none', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const entries = Array.from({ length: 600 }, () => randomEntry(random))
  const { tree } = new TileLog(entries)
  const stored = new Stored()
  const tail = newTail()
  const different: number[] = []
  for (let size = 0; size < 513; size++) {
    const restarted = new TreeTail(stored.tail(size))
    const next = new TreeTail(stored.tail(size)).integrate(entries.slice(size, size + 1))
    const integration = tail.integrate(entries.slice(size, size + 1))
    stored.put(integration)
    if (textOf(next) !== textOf(integration)) different.push(size)
    const { rootHash } = restarted.integrate(entries.slice(size, size + 80))
    if (toHex(rootHash) !== toHex(tree.root(0, size + 80))) different.push(size)
  }
  t.same(different, [], `seed ${seed}`)
})

t.test('tiles and bundles that their receiver overwrites do not change later ones', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const entries = Array.from({ length: 1_000 }, () => randomEntry(random))
  const untouched = newTail()
  const wrecked = newTail()
  const different: number[] = []
  for (let size = 0; size < entries.length; ) {
    const batch = entries.slice(size, size + 1 + Math.floor(random() * 40))
    const integration = wrecked.integrate(batch)
    if (textOf(integration) !== textOf(untouched.integrate(batch))) different.push(size)
    for (const { bytes } of [...integration.tiles, ...integration.bundles]) bytes.fill(0xee)
    size += batch.length
  }
  t.same(different, [], `seed ${seed}`)
})

t.test('an empty batch changes nothing', async t => {
  const tail = newTail()
  tail.integrate([fromUtf8('one'), fromUtf8('two')])
  const root = toHex(tail.rootHash())
  const { treeSize, rootHash, tiles, bundles } = tail.integrate([])
  t.same(
    { treeSize, rootHash: toHex(rootHash), tiles, bundles },
    { treeSize: 2, rootHash: root, tiles: [], bundles: [] },
  )
})

t.test('an entry too long for a bundle is refused, the longest is not', async t => {
  const { bundles } = newTail().integrate([new Uint8Array(65_535)])
  t.equal(bundles[0]?.bytes.length, 65_537)
  t.throws(() => newTail().integrate([new Uint8Array(65_536)]), RangeError)
})

t.test('tiles of the upper levels fill where 256^2 and 256^3 entries are passed', async t => {
  const alike = fromUtf8('alike')
  for (const boundary of [256 ** 2, 256 ** 3]) {
    const start = boundary - 300
    const tree = new VastTree([])
    const tail = new TreeTail(vastTail(tree, start))
    const stored = new Stored()
    for (const count of [7, 200, 92, 2, 300]) stored.put(tail.integrate(Array(count).fill(alike)))
    const end = start + 601
    t.equal(toHex(tail.rootHash()), toHex(tree.root(0, end)), `root of ${end}`)
    const wrong = tilesBetween(start, end).filter(({ level, index, width }) => {
      if (level === 'entries') return countEntries(stored.get(level, index)!) !== width
      return Buffer.compare(stored.get(level, index)!, vastTile(tree, level, index, width)) !== 0
    })
    t.same(wrong, [])
  }
})

function vastTile(tree: VastTree, level: number, index: number, width: number): Uint8Array {
  const leaves = 256 ** level
  const hashes = Array.from({ length: width }, (_, at) => {
    const start = (index * 256 + at) * leaves
    return tree.root(start, start + leaves)
  })
  return new Uint8Array(Buffer.concat(hashes))
}

/** The right edge of a tree with entries all alike. */
function vastTail(tree: VastTree, treeSize: number): TailBytes {
  const tiles: (Uint8Array | undefined)[] = []
  for (let hashes = treeSize; hashes > 0; hashes = Math.floor(hashes / 256)) {
    const width = hashes % 256
    tiles.push(width === 0 ? undefined : vastTile(tree, tiles.length, Math.floor(hashes / 256), width))
  }
  return {
    edge: new RightEdge(treeSize, tree.readHashes(rootNodes(treeSize))),
    tiles,
    bundle: formatBundle(Array(treeSize % 256).fill(fromUtf8('alike'))),
  }
}

interface GoldenLog {
  readonly skey: string
  readonly entries_utf8: readonly string[]
  readonly checkpoints: readonly string[]
  readonly resources: Readonly<Record<string, string>>
}

t.test('the golden log of Tessera comes out byte for byte in batches of every size', async t => {
  const golden = readVectors<GoldenLog>('tessera-golden-log')
  const signer = parseSignerKey(golden.skey)
  const entries = golden.entries_utf8.map(fromUtf8)
  for (let batchSize = 1; batchSize <= entries.length; batchSize++) {
    const tail = newTail()
    const checkpoints = [signCheckpoint({ treeSize: 0, rootHash: tail.rootHash() }, signer)]
    const resources: Record<string, string> = {}
    const sizes = [0]
    for (let at = 0; at < entries.length; at += batchSize) {
      const integration = tail.integrate(entries.slice(at, at + batchSize))
      sizes.push(integration.treeSize)
      checkpoints.push(signCheckpoint(integration, signer))
      for (const { level, index, bytes } of integration.tiles) {
        resources[`/${formatTilePath({ level, index, width: bytes.length / 32 })}`] = toHex(bytes)
      }
      for (const { index, bytes } of integration.bundles) {
        resources[`/${formatTilePath({ level: 'entries', index, width: countEntries(bytes) })}`] =
          toHex(bytes)
      }
    }
    const expected = sizes.map(size => golden.checkpoints[size])
    t.same(checkpoints, expected, `checkpoints in batches of ${batchSize}`)
    const different = Object.entries(resources).filter(([path, hex]) => golden.resources[path] !== hex)
    t.same(different, [], `tiles and bundles in batches of ${batchSize}`)
    if (batchSize === 1) t.same(resources, golden.resources, 'all of them')
  }
})

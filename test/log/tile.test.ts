import fc from 'fast-check'
import t from 'tap'
import {
  entryInBundle,
  formatTilePath,
  hashInTile,
  interiorHashes,
  parseBundle,
  parseTilePath,
  type Tile,
  tileOfNode,
  tileWidth,
} from '../../src/log/tile.ts'
import { fromHex, fromUtf8, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { NaiveTree, numberedLeafHashes } from '../support/naive-tree.ts'
import { checkProperty } from '../support/property.ts'
import { formatBundle, tilesBetween } from '../support/tiles.ts'
import { readVectors } from '../support/vectors.ts'

interface TileVectors {
  paths: { kind: 'entries' | 'hash'; level?: number; index: number; width: number; path: string }[]
  entries_path_for_index: { cases: { index: number; log_size: number; path: string }[] }
  parse_ok: {
    cases: { level_text: string; index_text: string; level: number; index: string; width: number }[]
  }
  parse_error: { cases: { level_text: string; index_text: string }[] }
  node_to_tile: {
    cases: {
      tree_level: number
      tree_index: number
      tile_level: number
      tile_index: number
      node_level: number
      node_index: number
    }[]
  }
  range: { cases: { tree_size: number; result: { index: number; partial: number }[] }[] }
  tiles_for_size: {
    cases: { size: number; levels: { level: number; full: number; partial_width: number }[] }[]
  }
  bundle_parse: { cases: { id: string; hex: string; ok: boolean; entries?: number }[] }
  webtessera: { resources: Record<string, string> }
}
const vectors = readVectors<TileVectors>('tiles')

t.test('published paths are written and read', async t => {
  for (const { kind, level, index, width, path } of vectors.paths) {
    const tile: Tile = { level: kind === 'entries' ? kind : level!, index, width: width || 256 }
    t.equal(formatTilePath(tile), path)
    t.same(parseTilePath(path), tile)
  }
  for (const { index, log_size, path } of vectors.entries_path_for_index.cases) {
    const bundle = Math.floor(index / 256)
    const width = tileWidth('entries', bundle, log_size)
    t.equal(formatTilePath({ level: 'entries', index: bundle, width }), path)
  }
})

t.test('paths that Tessera reads are read, as far as indexes are safe numbers', async t => {
  for (const { level_text, index_text, level, index, width } of vectors.parse_ok.cases) {
    const path = `tile/${level_text}/${index_text}`
    const number = Number(index)
    // Index 10^18 - 1 is legal there; no tree below 2^53 has such a tile.
    if (!Number.isSafeInteger(number)) t.throws(() => parseTilePath(path), { code: 'MALFORMED' })
    else t.same(parseTilePath(path), { level, index: number, width: width || 256 })
  }
})

t.test('published refusals are refused', async t => {
  for (const { level_text, index_text } of vectors.parse_error.cases) {
    t.throws(() => parseTilePath(`tile/${level_text}/${index_text}`), { code: 'MALFORMED' })
  }
})

t.test('every spelling of a path but one is refused', async t => {
  const spellings = [
    '',
    'tile',
    'tile/',
    'tile/0',
    'tile/0/',
    'tile//000',
    'tile/0//000',
    '/tile/0/000',
    'Tile/0/000',
    'tile/0/000/',
    'tile/0/000 ',
    ' tile/0/000',
    'tile/0/000?x=1',
    'tile/0/../0/000',
    'tile/0/000\n',
    'tile/00/000',
    'tile/01/000',
    'tile/+1/000',
    'tile/64/000',
    'tile/100/000',
    'tile/data/000',
    'tile/entries',
    'tile/entries/',
    'tile/entriess/000',
    'tile/Entries/000',
    'tile/ntries/000',
    'tile/0/0',
    'tile/0/00',
    'tile/0/0000',
    'tile/0/x000',
    'tile/0/x000/000',
    'tile/0/x000/x001/000',
    'tile/0/001/000',
    'tile/0/X001/000',
    'tile/0/x01/000',
    'tile/0/x0001/000',
    'tile/0/x001/x000',
    'tile/0/x001/00',
    'tile/0/x001/0000',
    'tile/0/1e2',
    'tile/0/-01',
    'tile/0/0x1',
    'tile/0/٠٠٠',
    'tile/0/000.p',
    'tile/0/000.p/',
    'tile/0/000.p/0',
    'tile/0/000.p/01',
    'tile/0/000.p/256',
    'tile/0/000.p/1/',
    'tile/0/000.p/1000',
    'tile/0/000.P/1',
    'tile/0/000/p/1',
    'tile/0/000.p1',
    'tile/0/000.p/+1',
    'tile/0/000.p/1.',
    'tile/0/.p/1',
    'tile/0/x001.p/1',
    'tile/0/000.p/5.p/5',
    // 2^53, and a path without end.
    'tile/0/x009/x007/x199/x254/x740/992',
    `tile/0/${'x999/'.repeat(1000)}000`,
  ]
  const read = spellings.filter(path => codeOf(() => parseTilePath(path)) !== 'MALFORMED')
  t.same(read, [])
  t.same(parseTilePath('tile/0/x009/x007/x199/x254/x740/991').index, Number.MAX_SAFE_INTEGER)
})

t.test('reading and writing a path are inverse', async t => {
  const level = fc.oneof(fc.constant('entries' as const), fc.integer({ min: 0, max: 63 }))
  const index = fc.oneof(
    fc.maxSafeNat(),
    fc.nat(),
    fc.nat(2000),
    fc.constantFrom(999, 1000, 999_999, 1_000_000),
  )
  checkProperty(t, [level, index, fc.integer({ min: 1, max: 256 })], (level, index, width) => {
    const path = formatTilePath({ level, index, width })
    const tile = parseTilePath(path)
    return tile.level === level && tile.index === index && tile.width === width
  })
})

t.test('a path with any character changed is refused or names another tile', async t => {
  const changed = fc.constantFrom(...'0123456789xp./en +-')
  checkProperty(
    t,
    [fc.nat(3_000_000), fc.integer({ min: 1, max: 256 }), fc.nat(40), changed],
    (index, width, at, character) => {
      const path = formatTilePath({ level: 0, index, width })
      const other = path.slice(0, at) + character + path.slice(at + 1)
      const isRefused = codeOf(() => parseTilePath(other)) === 'MALFORMED'
      return isRefused || formatTilePath(parseTilePath(other)) === other
    },
    2000,
  )
})

t.test('no path is written for a tile that cannot be', async t => {
  const good: Tile = { level: 0, index: 0, width: 1 }
  const broken: Partial<Tile>[] = [
    ...[-1, 64, 0.5].map(level => ({ level })),
    ...[-1, 0.5, 2 ** 53, Number.NaN].map(index => ({ index })),
    ...[0, -1, 257, 1.5].map(width => ({ width })),
  ]
  for (const part of broken) t.throws(() => formatTilePath({ ...good, ...part }), { code: 'MALFORMED' })
})

t.test('a tree has the tiles the specification counts', async t => {
  for (const { size, levels } of vectors.tiles_for_size.cases) {
    for (const { level, full, partial_width } of levels) {
      if (full > 0) t.equal(tileWidth(level, full - 1, size), 256)
      t.equal(tileWidth(level, full, size), partial_width)
      t.equal(tileWidth(level, full + 1, size), 0)
      if (level === 0) t.equal(tileWidth('entries', full, size), partial_width)
    }
    t.equal(tileWidth(levels.length, 0, size), 0)
    t.equal(tileWidth(63, 0, size), 0)
  }
  t.equal(tileWidth(0, 0, 0), 0)
  t.equal(tileWidth(0, 2 ** 44, 2 ** 52 + 3), 3)
  t.equal(tileWidth(6, 0, 2 ** 53 - 1), 31)
})

t.test('the bundles of a range are as wide as Tessera finds them', async t => {
  for (const { tree_size, result } of vectors.range.cases) {
    for (const { index, partial } of result) {
      t.equal(tileWidth('entries', index, tree_size), partial || 256)
    }
  }
})

t.test('growth names every tile that is new or wider, once, bundles first', async t => {
  const wrong: string[] = []
  const sizes = [0, 1, 2, 100, 255, 256, 257, 300, 511, 512, 513, 65_535, 65_536, 65_537, 70_000, 131_072]
  for (const oldSize of sizes) {
    for (const newSize of sizes.filter(size => size >= oldSize)) {
      const named = tilesBetween(oldSize, newSize)
      if (JSON.stringify(named) !== JSON.stringify(naiveTilesBetween(oldSize, newSize))) {
        wrong.push(`${oldSize} to ${newSize}`)
      }
    }
  }
  t.same(wrong, [])
})

t.test('growth is worked out from the sizes, however large', async t => {
  t.same(tilesBetween(2 ** 52 - 1, 2 ** 52), [
    { level: 'entries', index: 2 ** 44 - 1, width: 256 },
    { level: 0, index: 2 ** 44 - 1, width: 256 },
    { level: 1, index: 2 ** 36 - 1, width: 256 },
    { level: 2, index: 2 ** 28 - 1, width: 256 },
    { level: 3, index: 2 ** 20 - 1, width: 256 },
    { level: 4, index: 2 ** 12 - 1, width: 256 },
    { level: 5, index: 15, width: 256 },
    { level: 6, index: 0, width: 16 },
  ])
})

t.test('nodes are found in the tiles Tessera names', async t => {
  for (const vector of vectors.node_to_tile.cases) {
    const { level, index, start, end } = tileOfNode({ level: vector.tree_level, index: vector.tree_index })
    t.equal(level, vector.tile_level)
    t.equal(index, vector.tile_index)
    t.equal(start, vector.node_index * 2 ** vector.node_level)
    t.equal(end, (vector.node_index + 1) * 2 ** vector.node_level)
  }
  t.same(tileOfNode({ level: 15, index: 2 ** 37 - 1 }), {
    level: 1,
    index: 2 ** 36 - 1,
    start: 128,
    end: 256,
  })
})

t.test('every node of a tile is computed from it and found in its interior', async t => {
  // A tile of level 1 of a log: any 256 hashes do, and the nodes above them are their tree.
  const hashes = numberedLeafHashes(256)
  const tree = new NaiveTree(hashes)
  const tileBytes = new Uint8Array(Buffer.concat(hashes))
  const interiors = interiorHashes(tileBytes)
  t.equal(interiors.length, 255 * 32)
  t.equal(toHex(interiors.subarray(254 * 32)), toHex(tree.root(0, 256)))
  let wrong = 0
  for (let height = 0; height < 8; height++) {
    for (let position = 0; position < 256 >> height; position++) {
      const end = (position + 1) << height
      const node = { level: 8 + height, index: 1000 * (256 >> height) + position }
      const expected = toHex(tree.root(position << height, end))
      const narrowest = tileBytes.subarray(0, end * 32)
      if (toHex(hashInTile(tileBytes, node)) !== expected) wrong++
      if (toHex(hashInTile(narrowest, node)) !== expected) wrong++
      if (codeOf(() => hashInTile(narrowest.subarray(1), node)) !== 'MALFORMED') wrong++
    }
  }
  t.equal(wrong, 0)
})

t.test('a hash out of a tile is a copy, also out of a Buffer', async t => {
  const tileBytes = Buffer.concat(numberedLeafHashes(256))
  const taken = [0, 3].map(level => hashInTile(tileBytes, { level, index: 0 }))
  const before = taken.map(toHex)
  tileBytes.fill(0)
  t.same(taken.map(toHex), before)
})

t.test('interiors are those of full tiles only', async t => {
  const tileBytes = new Uint8Array(8192)
  t.throws(() => interiorHashes(tileBytes.subarray(32)), { code: 'MALFORMED' })
})

t.test('published bundles are read or refused', async t => {
  for (const { hex, ok, entries, id } of vectors.bundle_parse.cases) {
    if (ok) t.equal(parseBundle(fromHex(hex)).length, entries, id)
    else t.throws(() => parseBundle(fromHex(hex)), { code: 'MALFORMED' }, id)
  }
  const entries = [0, 1].map(index => fromUtf8(`entry-${index}`))
  t.equal(toHex(formatBundle(entries)), vectors.webtessera.resources['/tile/entries/000.p/2'])
})

t.test('entries come back out of a bundle, all together and one by one', async t => {
  const entry = fc.uint8Array({ minLength: 1, maxLength: 400 })
  checkProperty(t, [fc.array(entry, { maxLength: 256 })], entries => {
    const bundle = formatBundle(entries)
    const parsed = parseBundle(bundle)
    const one = entries.every((entry, at) => toHex(entryInBundle(bundle, at)) === toHex(entry))
    return (
      one && parsed.length === entries.length && parsed.every((p, at) => toHex(p) === toHex(entries[at]!))
    )
  })
  const longest = new Uint8Array(65_535).fill(1)
  t.equal(entryInBundle(formatBundle([longest, longest]), 1).length, 65_535)
})

t.test('a bundle cut anywhere but between entries is refused', async t => {
  const entries = [1, 300, 2].map(bytes => new Uint8Array(bytes))
  const bundle = formatBundle(entries)
  const ends = [0, 3, 305, 309]
  const wrong: number[] = []
  for (let bytes = 0; bytes <= bundle.length; bytes++) {
    const isWhole = ends.includes(bytes)
    if ((codeOf(() => parseBundle(bundle.subarray(0, bytes))) === 'none') !== isWhole) wrong.push(bytes)
  }
  t.same(wrong, [])
})

t.test('a position outside the bundle is refused', async t => {
  const bundle = formatBundle([fromUtf8('a'), fromUtf8('b')])
  for (const position of [-1, 2, 3, 255]) {
    t.throws(() => entryInBundle(bundle, position), { code: 'MALFORMED' })
  }
  t.throws(() => entryInBundle(bundle.subarray(0, 5), 1), { code: 'MALFORMED' })
  t.throws(() => entryInBundle(new Uint8Array(0), 0), { code: 'MALFORMED' })
})

t.test('a bundle of more than 256 entries is refused', async t => {
  t.throws(() => parseBundle(fromHex('000161'.repeat(257))), { code: 'MALFORMED' })
})

/** Every tile whose width differs, by looking at all of them. */
function naiveTilesBetween(oldSize: number, newSize: number): Tile[] {
  const tiles: Tile[] = []
  for (const level of ['entries', 0, 1, 2, 3] as const) {
    for (let index = 0; index < 600; index++) {
      const width = tileWidth(level, index, newSize)
      if (width !== tileWidth(level, index, oldSize)) tiles.push({ level, index, width })
    }
  }
  return tiles
}

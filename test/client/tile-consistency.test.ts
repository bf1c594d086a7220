import t from 'tap'
import { consistencyFromTiles, type TreeHead } from '../../src/client/tile-consistency.ts'
import { formatTilePath, type Tile } from '../../src/log/tile.ts'
import { flipBit } from '../support/bytes.ts'
import { TileLog } from '../support/tile-log.ts'

const ENTRIES = 1_100
const log = new TileLog(Array.from({ length: ENTRIES }, (_, index) => Buffer.from(`entry ${index}`)))

/** The tree of a log that has `fork` in place of the entry at 300. */
const rewritten = new TileLog(
  Array.from({ length: ENTRIES }, (_, index) => Buffer.from(index === 300 ? 'fork' : `entry ${index}`)),
)

function head(treeSize: number, { tree } = log): TreeHead {
  return { treeSize, rootHash: tree.root(0, treeSize) }
}

/** Serves the tiles of a log, keeps the requests, and alters answers by `change`. */
function tileServer(change: (bytes: Uint8Array, path: string) => Uint8Array = bytes => bytes, served = log) {
  const asked: string[] = []
  const fetchTile = async (tile: Tile) => {
    const path = formatTilePath(tile)
    asked.push(path)
    return change(served.hashTile(tile.level as number, tile.index, tile.width), path)
  }
  return { asked, fetchTile }
}

/** The sizes around which tiles and their levels begin and end, and some between. */
const SIZES = [0, 1, 2, 3, 7, 128, 255, 256, 257, 300, 511, 512, 513, 768, 1000, 1023, 1024, 1025, ENTRIES]

t.test('an old tree is found to be the beginning of each newer one', async t => {
  const failed: string[] = []
  for (const oldSize of SIZES) {
    for (const newSize of SIZES.filter(size => size >= oldSize)) {
      const { kind } = await consistencyFromTiles(tileServer().fetchTile, head(oldSize), head(newSize))
      if (kind !== 'consistent') failed.push(`${oldSize} to ${newSize}`)
    }
  }
  t.same(failed, [])
})

t.test('a different old tree is inconsistent, not a bad tile', async t => {
  const failed: string[] = []
  for (const oldSize of SIZES.filter(size => size > 300)) {
    for (const newSize of SIZES.filter(size => size >= oldSize)) {
      const older = head(oldSize, rewritten)
      const answer = await consistencyFromTiles(tileServer().fetchTile, older, head(newSize))
      if (answer.kind === 'consistent' || answer.check !== 'consistency') {
        failed.push(`${oldSize} to ${newSize}`)
      }
    }
  }
  t.same(failed, [])
})

t.test('any tile in which every hash is changed is a bad tile', async t => {
  const { asked, fetchTile } = tileServer()
  await consistencyFromTiles(fetchTile, head(700), head(1000))
  const accepted: string[] = []
  for (const path of asked) {
    const spoilt = tileServer((bytes, at) => (at === path ? bytes.map(byte => byte ^ 1) : bytes))
    const answer = await consistencyFromTiles(spoilt.fetchTile, head(700), head(1000))
    if (answer.kind === 'consistent' || answer.check !== 'tiles') accepted.push(path)
  }
  t.same(accepted, [])
  t.ok(asked.length >= 3)
})

t.test('the tiles of another log are bad tiles, also when they fit the old tree', async t => {
  const older = head(700, rewritten)
  const { fetchTile } = tileServer(undefined, rewritten)
  t.match(await consistencyFromTiles(fetchTile, older, head(1000)), { kind: 'inconsistent', check: 'tiles' })
})

t.test('a tile of another length than its width is a bad tile', async t => {
  const lengths = [0, 32 * 231, 32 * 232 - 1, 32 * 232 + 32, 8192]
  for (const length of lengths) {
    const change = (bytes: Uint8Array, path: string) => {
      if (!path.endsWith('.p/232')) return bytes
      const changed = new Uint8Array(length)
      changed.set(bytes.subarray(0, length))
      return changed
    }
    const answer = await consistencyFromTiles(tileServer(change).fetchTile, head(900), head(1000))
    t.match(answer, { kind: 'inconsistent', check: 'tiles' }, `${length} bytes`)
  }
})

t.test('only the tiles on the way are fetched, each once, as wide as the new tree has them', async t => {
  const { asked, fetchTile } = tileServer()
  await consistencyFromTiles(fetchTile, head(300), head(1000))
  t.same(asked.sort(), ['tile/0/001', 'tile/0/003.p/232', 'tile/1/000.p/3'])
})

t.test('no tile is fetched for trees of one size, nor from the empty tree', async t => {
  const { asked, fetchTile } = tileServer()
  await consistencyFromTiles(fetchTile, head(700), head(700))
  await consistencyFromTiles(fetchTile, head(0), head(700))
  t.same(asked, [])
})

t.test('one size with two roots is inconsistent, and so is an empty tree with a root', async t => {
  const { fetchTile } = tileServer()
  const forked = { treeSize: 700, rootHash: flipBit(head(700).rootHash, 5) }
  const empty = { treeSize: 0, rootHash: new Uint8Array(32) }
  for (const older of [forked, empty]) {
    t.match(await consistencyFromTiles(fetchTile, older, head(700)), { check: 'consistency' })
  }
})

t.test('a tree that shrinks is not asked about, and what the fetch rejects with is passed on', async t => {
  await t.rejects(consistencyFromTiles(tileServer().fetchTile, head(701), head(700)), { code: 'MALFORMED' })
  const lost = new Error('no network')
  const fetchTile = () => Promise.reject(lost)
  await t.rejects(consistencyFromTiles(fetchTile, head(699), head(700)), lost)
})

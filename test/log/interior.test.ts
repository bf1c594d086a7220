/** The kept inner nodes of a tile against the recursive tree, and who owns which bytes. */
import t from 'tap'
import { shuffle } from '../../src/domain/shuffle.ts'
import { TileInterior } from '../../src/log/interior.ts'
import { toHex } from '../support/bytes.ts'
import { NaiveTree, numberedLeafHashes } from '../support/naive-tree.ts'
import { randomFrom, seedOf } from '../support/seed.ts'

const HASHES = numberedLeafHashes(256)
const TREE = new NaiveTree(HASHES)
const TILE = new Uint8Array(Buffer.concat(HASHES))

interface TileNode {
  readonly level: number
  readonly position: number
}

/** All nodes of levels 0 to 7 in a tile of that width. */
function nodesOf(width: number): TileNode[] {
  const nodes: TileNode[] = []
  for (let level = 0; level < 8; level++) {
    for (let position = 0; (position + 1) << level <= width; position++) nodes.push({ level, position })
  }
  return nodes
}

function naiveHash({ level, position }: TileNode): Uint8Array {
  return TREE.root(position << level, (position + 1) << level)
}

function countWrong(interior: TileInterior, tile: Uint8Array, nodes: readonly TileNode[]): number {
  return nodes.filter(node => {
    return Buffer.compare(interior.hash(tile, node.level, node.position), naiveHash(node)) !== 0
  }).length
}

t.test('every node of a tile of every width is the naive one, in any order', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  let wrong = 0
  for (let width = 1; width <= 256; width++) {
    const nodes = shuffle(nodesOf(width), random)
    wrong += countWrong(new TileInterior(), TILE.subarray(0, width * 32), nodes)
  }
  t.equal(wrong, 0, `seed ${seed}`)
})

t.test('a tile that is read at growing and at older widths keeps giving the naive nodes', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  let wrong = 0
  for (let run = 0; run < 60; run++) {
    const interior = new TileInterior()
    for (let read = 0; read < 12; read++) {
      const width = 1 + Math.floor(random() * 256)
      const nodes = shuffle(nodesOf(width), random).slice(0, 1 + Math.floor(random() * 20))
      wrong += countWrong(interior, TILE.subarray(0, width * 32), nodes)
    }
  }
  t.equal(wrong, 0, `seed ${seed}`)
})

t.test('a node beyond the width or above level 7 is refused', async t => {
  const interior = new TileInterior()
  for (const width of [0, 1, 2, 3, 127, 128, 255, 256]) {
    const tile = TILE.subarray(0, width * 32)
    for (let level = 0; level < 8; level++) {
      t.throws(() => interior.hash(tile, level, width >> level), RangeError, `${level} of ${width}`)
    }
    t.throws(() => interior.hash(tile, 8, 0), RangeError, `level 8 of ${width}`)
  }
})

t.test('a result survives a later read into the same buffer', async t => {
  // The store hands out a Node Buffer that its next read overwrites, and `slice` of a Buffer is a view.
  const buffer = Buffer.from(TILE)
  const interior = new TileInterior()
  const nodes = nodesOf(256)
  const results = nodes.map(({ level, position }) => interior.hash(buffer, level, position))
  buffer.fill(0xee)
  const wrong = nodes.filter((node, at) => Buffer.compare(results[at]!, naiveHash(node)) !== 0)
  t.same(wrong, [])
  t.equal(countWrong(interior, TILE, nodes), 0, 'and so do the nodes that are kept')
})

t.test('a result that its owner overwrites does not change the next one', async t => {
  const interior = new TileInterior()
  for (const { level, position } of nodesOf(256)) interior.hash(TILE, level, position).fill(0xee)
  t.equal(countWrong(interior, TILE, nodesOf(256)), 0)
  t.equal(toHex(TILE), toHex(Buffer.concat(HASHES)), 'nor the tile')
})

import t from 'tap'
import type { Hash } from '../../src/log/hash.ts'
import { assertTreeSize, foldRoots, type Node, RightEdge, rootHash, rootNodes } from '../../src/log/tree.ts'
import { fromHex, toHex } from '../support/bytes.ts'
import { NaiveTree, naiveLeafHash, numberedLeafHashes } from '../support/naive-tree.ts'
import { VastTree } from '../support/vast-tree.ts'
import { readVectors } from '../support/vectors.ts'

const SIZE_MAX = 300
const leafHashes = numberedLeafHashes(SIZE_MAX)
const tree = new NaiveTree(leafHashes)

t.test('the roots of certificate transparency come out', async t => {
  const vectors = readVectors<{ empty_root: string; leaves: string[]; roots: string[] }>('merkle-ct')
  const edge = new RightEdge(0, [])
  t.equal(toHex(edge.rootHash()), vectors.empty_root)
  for (const [at, leaf] of vectors.leaves.entries()) {
    edge.append(naiveLeafHash(fromHex(leaf)))
    t.equal(toHex(edge.rootHash()), vectors.roots[at])
  }
})

t.test(
  'the complete subtrees of every size cover its leaves once, each smaller than the one before',
  async t => {
    const wrong: number[] = []
    for (let size = 0; size <= 5000; size++) {
      let covered = 0
      let before = 2 * size + 1
      for (const { level, index } of rootNodes(size)) {
        const leaves = 2 ** level
        if (index * leaves !== covered || leaves >= before) wrong.push(size)
        covered += leaves
        before = leaves
      }
      if (covered !== size) wrong.push(size)
    }
    t.same(wrong, [])
  },
)

t.test('appending leaf by leaf gives the recursive root at every size', async t => {
  const edge = new RightEdge(0, [])
  const wrong: number[] = []
  for (const [at, leafHash] of leafHashes.entries()) {
    edge.append(leafHash)
    const expected = toHex(tree.root(0, at + 1))
    if (edge.treeSize !== at + 1 || toHex(edge.rootHash()) !== expected) wrong.push(at + 1)
    if (toHex(rootHash(at + 1, tree.readHashes)) !== expected) wrong.push(at + 1)
  }
  t.same(wrong, [])
})

t.test('an edge taken up again at any size grows into the same tree', async t => {
  const expected = toHex(tree.root(0, SIZE_MAX))
  const wrong: number[] = []
  for (let size = 0; size <= SIZE_MAX; size++) {
    const edge = new RightEdge(size, tree.readHashes(rootNodes(size)))
    for (const leafHash of leafHashes.slice(size)) edge.append(leafHash)
    if (toHex(edge.rootHash()) !== expected) wrong.push(size)
  }
  t.same(wrong, [])
})

t.test(
  'every subtree above the leaves is heard of once, with its hash, when its last leaf comes',
  async t => {
    const edge = new RightEdge(0, [])
    const heard: string[] = []
    const expected: string[] = []
    for (const [leaf, leafHash] of leafHashes.entries()) {
      edge.append(leafHash, (level, hash) => {
        heard.push(`${level} ${Math.floor(leaf / 2 ** level)} ${toHex(hash)}`)
      })
      for (let level = 1; (leaf + 1) % 2 ** level === 0; level++) {
        const index = (leaf + 1) / 2 ** level - 1
        expected.push(`${level} ${index} ${toHex(tree.root(index * 2 ** level, leaf + 1))}`)
      }
    }
    t.same(heard, expected)
  },
)

t.test('the list of roots stays as it was when the edge grows', async t => {
  const edge = new RightEdge(7, tree.readHashes(rootNodes(7)))
  const roots = edge.roots
  edge.append(leafHashes[7]!)
  t.equal(roots.length, 3)
  t.equal(toHex(foldRoots(roots)), toHex(tree.root(0, 7)))
  t.equal(toHex(edge.rootHash()), toHex(tree.root(0, 8)))
})

t.test('an edge needs exactly the roots of its size', async t => {
  const roots = tree.readHashes(rootNodes(7))
  t.throws(() => new RightEdge(7, roots.slice(1)), { code: 'MALFORMED' })
  t.throws(() => new RightEdge(8, roots), { code: 'MALFORMED' })
  t.throws(() => new RightEdge(-1, []), { code: 'MALFORMED' })
})

t.test('sizes are whole numbers below 2^53', async t => {
  for (const size of [0, 1, 2 ** 32, Number.MAX_SAFE_INTEGER]) t.doesNotThrow(() => assertTreeSize(size))
  for (const size of [-1, 0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.throws(() => assertTreeSize(size), { code: 'MALFORMED' })
  }
})

t.test('an edge grows right across 2^32 and 2^52 and stops at 2^53 - 1', async t => {
  for (const start of [2 ** 31 - 3, 2 ** 32 - 3, 2 ** 52 - 3]) {
    const vast = new VastTree([1, start, start + 1, start + 4])
    const edge = new RightEdge(start, vast.readHashes(rootNodes(start)))
    const wrong: Node[] = []
    for (let leaf = start; leaf < start + 6; leaf++) {
      edge.append(vast.leafHash(leaf), (level: number, hash: Hash) => {
        const index = Math.floor(leaf / 2 ** level)
        if (toHex(hash) !== toHex(vast.readHashes([{ level, index }])[0]!)) wrong.push({ level, index })
      })
    }
    t.same(wrong, [])
    t.equal(toHex(edge.rootHash()), toHex(vast.root(0, start + 6)))
  }
  const full = Number.MAX_SAFE_INTEGER
  const vast = new VastTree([full - 1])
  const edge = new RightEdge(full, vast.readHashes(rootNodes(full)))
  t.equal(toHex(edge.rootHash()), toHex(vast.root(0, full)))
  t.throws(() => edge.append(vast.leafHash(full)), { code: 'MALFORMED' })
  t.equal(edge.treeSize, full)
})

import t from 'tap'
import { EMPTY_ROOT, equalHashes, HASH_BYTES, hashLeaf, hashNode, hashNodeAt } from '../../src/log/hash.ts'
import { fromHex, toHex } from '../support/bytes.ts'
import { naiveLeafHash, sha256 } from '../support/naive-tree.ts'
import { readVectors } from '../support/vectors.ts'

interface MerkleVectors {
  empty_root: string
  leaf_hash: { data: string; hash: string }[]
  node_hash: { left: string; right: string; hash: string }[]
}
const vectors = readVectors<MerkleVectors>('merkle-ct')

t.test('the empty root and the hashes of leaves and nodes are those of certificate transparency', async t => {
  t.equal(toHex(EMPTY_ROOT), vectors.empty_root)
  for (const { data, hash } of vectors.leaf_hash) t.equal(toHex(hashLeaf(fromHex(data))), hash)
  for (const { left, right, hash } of vectors.node_hash) {
    t.equal(toHex(hashNode(fromHex(left), fromHex(right))), hash)
    t.equal(toHex(hashNodeAt(fromHex(`ffff${left}${right}`), 2)), hash)
  }
})

t.test('entries of every length have the leaf hash that a plain digest gives', async t => {
  const bytes = Uint8Array.from({ length: 65_535 }, (_, at) => (at * 31) >> 3)
  // Long and short in turn, so that what one call leaves behind would show in the next.
  const lengths = Array.from({ length: 300 }, (_, n) => [n, 2047 - n, 2048 + n, 65_535 - n]).flat()
  const wrong = lengths.filter(length => {
    const entry = bytes.subarray(0, length)
    return toHex(hashLeaf(entry)) !== toHex(naiveLeafHash(entry))
  })
  t.same(wrong, [])
})

t.test('a hash handed out stays as it is when the next one is made', async t => {
  const first = hashNode(sha256(), sha256())
  const text = toHex(first)
  hashNode(first, first)
  hashLeaf(first)
  t.equal(toHex(first), text)
})

t.test('a child that is not 32 bytes is refused', async t => {
  const hash = sha256()
  for (const bytes of [0, HASH_BYTES - 1, HASH_BYTES + 1]) {
    t.throws(() => hashNode(new Uint8Array(bytes), hash), { code: 'MALFORMED' })
    t.throws(() => hashNode(hash, new Uint8Array(bytes)), { code: 'MALFORMED' })
  }
  t.throws(() => hashNodeAt(new Uint8Array(63), 0), { code: 'MALFORMED' })
  t.throws(() => hashNodeAt(new Uint8Array(128), 65), { code: 'MALFORMED' })
})

t.test('hashes are equal only with every byte', async t => {
  const hash = sha256()
  t.ok(equalHashes(hash, Uint8Array.from(hash)))
  t.notOk(equalHashes(hash, hash.subarray(0, 31)))
  t.notOk(equalHashes(hash.subarray(0, 31), hash))
  const differing = Array.from({ length: 32 }, (_, at) => hash.with(at, hash[at]! ^ 1))
  t.notOk(differing.some(other => equalHashes(hash, other)))
})

/** The map of an index in rows, against a naive tree over the same pairs. */
import t, { type Test } from 'tap'
import { SignalError } from '../../src/errors.ts'
import { indexValueOf } from '../../src/log/index-leaf.ts'
import { EMPTY_TREE, verifyPatricia } from '../../src/log/patricia.ts'
import {
  growTree,
  type IndexedEntry,
  lookUpIn,
  type PatriciaLookup,
  patriciaRootOf,
  type ReadRow,
  ROOT_ID,
} from '../../src/log/patricia-rows.ts'
import { flipBit, toHex } from '../support/bytes.ts'
import { naivePatriciaHash } from '../support/naive-patricia.ts'
import { sha256 } from '../support/naive-tree.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { bySize, long } from '../support/size.ts'

const seed = seedOf()
const random = randomFrom(seed)

/** A map in memory, read through one buffer, as LMDB's reads are: what one read gives is gone with the next. */
class Rows {
  readonly rows: Map<number, Uint8Array>
  readonly #pageKeysMax: number | undefined
  readonly #buffer = new Uint8Array(2 ** 20)
  #filled = 0

  constructor(pageKeysMax?: number, rows: Iterable<readonly [number, Uint8Array]> = []) {
    this.#pageKeysMax = pageKeysMax
    this.rows = new Map(rows)
  }

  readonly read: ReadRow = id => {
    this.#buffer.fill(0xee, 0, this.#filled)
    const row = this.rows.get(id)
    if (row === undefined) return undefined
    this.#filled = 1 + row.length
    this.#buffer.set(row, 1)
    return this.#buffer.subarray(1, 1 + row.length)
  }

  /** Writes the first of the rows only, where a number is given. Returns the root, and how many there were. */
  grow(entries: readonly IndexedEntry[], written?: number): { root: Uint8Array; rows: number } {
    const { root, rows } = growTree(this.read, entries, this.#pageKeysMax)
    for (const [id, bytes] of rows.slice(0, written)) this.rows.set(id, bytes.slice())
    return { root, rows: rows.length }
  }

  hexOfRows(): string[] {
    return [...this.rows].sort(([one], [other]) => one - other).map(([id, row]) => `${id} ${toHex(row)}`)
  }
}

/** The indexes of each key, in hexadecimal. */
function mapOf(entries: readonly IndexedEntry[]): Map<string, number[]> {
  const map = new Map<string, Set<number>>()
  for (const { key, index } of entries) map.set(toHex(key), (map.get(toHex(key)) ?? new Set()).add(index))
  return new Map([...map].map(([key, indexes]) => [key, [...indexes].sort((one, other) => one - other)]))
}

function naiveRoot(entries: readonly IndexedEntry[]): string {
  const pairs = [...mapOf(entries)].map(
    ([key, indexes]) => [new Uint8Array(Buffer.from(key, 'hex')), indexValueOf(indexes)] as const,
  )
  return toHex(naivePatriciaHash(pairs))
}

function isProved(root: Uint8Array, key: Uint8Array, { indexes, proof }: PatriciaLookup): boolean {
  try {
    verifyPatricia({ root, key, value: indexes.length === 0 ? undefined : indexValueOf(indexes), proof })
    return true
  } catch {
    return false
  }
}

function randomKey(): Uint8Array {
  return randomOctets(32)
}

function randomOctets(length: number): Uint8Array {
  return Uint8Array.from({ length }, () => Math.floor(random() * 256))
}

/** Random entries; some keys begin alike, some are the same. */
function randomEntries(count: number, firstIndex = 0): IndexedEntry[] {
  const entries: IndexedEntry[] = []
  for (let at = 0; at < count; at++) {
    const earlier = entries[Math.floor(random() * at)]
    const kind = random()
    const key =
      earlier === undefined || kind < 0.7
        ? randomKey()
        : kind < 0.85
          ? earlier.key
          : flipBit(earlier.key, Math.floor(random() * 256))
    entries.push({ key, index: firstIndex + at })
  }
  return entries
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map(item => [random(), item] as const)
    .sort(([one], [other]) => one - other)
    .map(([, item]) => item)
}

/** Every key of the entries is found with its indexes, absent keys are not, and each proof verifies. */
function checkLookups(
  t: Test,
  map: Rows,
  root: Uint8Array,
  entries: readonly IndexedEntry[],
  absent: readonly Uint8Array[],
): void {
  const wrong: string[] = []
  for (const [hex, indexes] of mapOf(entries)) {
    const key = new Uint8Array(Buffer.from(hex, 'hex'))
    const found = lookUpIn(map.read, key)
    if (found.indexes.join() !== indexes.join() || !isProved(root, key, found)) wrong.push(hex)
  }
  for (const key of absent) {
    const found = lookUpIn(map.read, key)
    if (found.indexes.length > 0 || !isProved(root, key, found)) wrong.push(`absent ${toHex(key)}`)
  }
  t.same(wrong, [], `seed ${seed}`)
}

t.test('a map without entries has the root of an empty tree, and proves that nothing is in it', async t => {
  const map = new Rows()
  t.same(patriciaRootOf(map.read), EMPTY_TREE)
  t.same(growTree(map.read, []), { root: EMPTY_TREE, rows: [] })
  const found = lookUpIn(map.read, randomKey())
  t.same(found.indexes, [])
  t.ok(isProved(EMPTY_TREE, randomKey(), found))
})

for (const pageKeysMax of [1, 2, 3, 4, undefined])
  t.test(`random maps, pages of ${pageKeysMax ?? 'the usual number of'} keys`, async t => {
    for (const count of [1, 2, 3, 5, 17, 33, 34, bySize({ short: 100, long: 3_000 })]) {
      const entries = randomEntries(count)
      const map = new Rows(pageKeysMax)
      const { root } = map.grow(entries)
      t.equal(toHex(root), naiveRoot(entries), `${count} entries, seed ${seed}`)
      t.same(patriciaRootOf(map.read), root)
      const near = entries.map(({ key }) => flipBit(key, Math.floor(random() * 256)))
      const there = mapOf(entries)
      const absent = [...near, randomKey(), new Uint8Array(32), new Uint8Array(32).fill(255)]
      checkLookups(
        t,
        map,
        root,
        entries,
        absent.filter(key => !there.has(toHex(key))),
      )
    }
  })

t.test('a large map has the root of the naive tree', long(), async t => {
  const entries = Array.from({ length: 100_000 }, (_, index) => ({ key: randomKey(), index }))
  const map = new Rows()
  for (let at = 0; at < entries.length; at += 30_000) map.grow(entries.slice(at, at + 30_000))
  const root = patriciaRootOf(map.read)
  t.equal(toHex(root), naiveRoot(entries), `seed ${seed}`)
  checkLookups(
    t,
    map,
    root,
    entries,
    Array.from({ length: 20_000 }, () => randomKey()),
  )
})

t.test('entries in any order and any portions make the same rows', async t => {
  for (const pageKeysMax of [1, 3, undefined]) {
    const entries = randomEntries(bySize({ short: 300, long: 2_000 }))
    const whole = new Rows(pageKeysMax)
    const { root } = whole.grow(shuffled(entries))
    for (const portionMax of [1, 7, 150]) {
      const map = new Rows(pageKeysMax)
      // The log's order: an index is never older than those that its key has.
      for (let at = 0; at < entries.length; ) {
        const portion = entries.slice(at, at + 1 + Math.floor(random() * portionMax))
        at += portion.length
        map.grow(shuffled(portion))
      }
      t.same(patriciaRootOf(map.read), root)
      t.same(map.hexOfRows(), whole.hexOfRows(), `seed ${seed}`)
    }
  }
})

t.test('entries that a map has change nothing, and growth that stopped half-way is made again', async t => {
  for (const pageKeysMax of [1, 2, undefined]) {
    const count = bySize({ short: 25, long: 60 })
    const [earlier, later] = [randomEntries(count), randomEntries(count, count)]
    const whole = new Rows(pageKeysMax)
    whole.grow(earlier)
    const before = [...whole.rows]
    const { root, rows } = whole.grow(later)
    for (const again of [later, earlier, [...later, ...earlier], later.slice(2, 9)])
      t.same(whole.grow(again), { root, rows: 0 })
    for (let written = 0; written < rows; written++) {
      const cut = new Rows(pageKeysMax, before)
      cut.grow(later, written)
      if (toHex(cut.grow(later).root) !== toHex(root))
        t.fail(`another root after ${written} rows, seed ${seed}`)
      if (written % 10 === 0) t.same(cut.hexOfRows(), whole.hexOfRows(), `${written} rows, seed ${seed}`)
    }
  }
})

t.test('a map keeps all indexes of a key in order, up to as many as a key has', async t => {
  const map = new Rows()
  const [one, other] = [randomKey(), randomKey()]
  const indexes = Array.from({ length: 65_535 }, (_, at) => 2 * at)
  for (let at = 0; at < indexes.length; at += 20_000)
    map.grow(indexes.slice(at, at + 20_000).map(index => ({ key: one, index })))
  const { root } = map.grow([
    { key: other, index: 2 ** 48 - 1 },
    { key: other, index: 2 ** 32 },
    { key: other, index: 2 ** 32 },
  ])
  t.same(lookUpIn(map.read, one).indexes, indexes)
  t.same(lookUpIn(map.read, other).indexes, [2 ** 32, 2 ** 48 - 1])
  t.ok(isProved(root, one, lookUpIn(map.read, one)))
  t.throws(() => map.grow([{ key: one, index: 2 ** 40 }]), {
    code: 'MALFORMED',
    message: /more than 65535 entries/,
  })
})

t.test('keys that share many bits', async t => {
  const base = sha256()
  for (const pageKeysMax of [1, undefined]) {
    // One key for each place to part from the first: the longest path that there is.
    const keys = [base, ...Array.from({ length: 256 }, (_, bit) => flipBit(base, bit))]
    const entries = keys.map((key, index) => ({ key, index }))
    const map = new Rows(pageKeysMax)
    const { root } = map.grow(shuffled(entries))
    t.equal(toHex(root), naiveRoot(entries))
    const twice = Array.from({ length: 255 }, (_, bit) => flipBit(flipBit(base, bit), bit + 1))
    checkLookups(
      t,
      map,
      root,
      entries,
      // Where two bits differ, the second may be one that a key of the map has.
      twice.filter(key => !mapOf(entries).has(toHex(key))),
    )
    t.ok(lookUpIn(map.read, base).proof.length > 256 * 33, 'all bits are steps')
    t.ok([...map.rows.keys()].every(id => id < 2 ** 45))
  }
})

t.test('a page at the greatest depth takes more keys than any above it', async t => {
  const map = new Rows(2)
  const entries = Array.from({ length: 300 }, (_, index) => {
    const key = new Uint8Array(32)
    new DataView(key.buffer).setUint32(20, index * 1_000_003)
    return { key, index }
  })
  for (let at = 0; at < entries.length; at += 50) map.grow(entries.slice(at, at + 50))
  t.equal(map.rows.size, 12, 'eleven branches, a page')
  const root = patriciaRootOf(map.read)
  t.equal(toHex(root), naiveRoot(entries))
  checkLookups(t, map, root, entries, [new Uint8Array(32).fill(1), randomKey()])
})

t.test('with one bit changed in proof, key, value or root no lookup verifies', async t => {
  const entries = randomEntries(bySize({ short: 60, long: 600 }))
  for (const pageKeysMax of [1, undefined]) {
    const map = new Rows(pageKeysMax)
    const { root } = map.grow(entries)
    const keys = [
      ...shuffled(entries)
        .slice(0, bySize({ short: 4, long: 12 }))
        .map(({ key }) => key),
      randomKey(),
    ]
    const taken: string[] = []
    for (const key of keys) {
      const { indexes, proof } = lookUpIn(map.read, key)
      const value = indexes.length === 0 ? undefined : indexValueOf(indexes)
      verifyPatricia({ root, key, value, proof })
      const refuse = (what: string, claim: Parameters<typeof verifyPatricia>[0]) => {
        try {
          verifyPatricia(claim)
          taken.push(what)
        } catch (error) {
          if (!(error instanceof SignalError) || error.code !== 'PROOF_INVALID') throw error
        }
      }
      for (let bit = 0; bit < 8 * proof.length; bit++)
        refuse(`proof ${bit}`, { root, key, value, proof: flipBit(proof, bit) })
      for (let bit = 0; bit < 256; bit++) {
        refuse(`root ${bit}`, { root: flipBit(root, bit), key, value, proof })
        if (value === undefined) continue
        refuse(`key ${bit}`, { root, key: flipBit(key, bit), value, proof })
        refuse(`value ${bit}`, { root, key, value: flipBit(value, bit), proof })
      }
      refuse('said to be what it is not', { root, key, value: value === undefined ? root : undefined, proof })
      for (let length = 0; length < proof.length; length++)
        refuse(`cut to ${length}`, { root, key, value, proof: proof.subarray(0, length) })
    }
    t.same(taken, [], `seed ${seed}`)
  }
})

/** Its result, or undefined where it refuses a damaged row. Another error fails the test. */
function unlessDamaged<Result>(act: () => Result): Result | undefined {
  try {
    return act()
  } catch (error) {
    if (error instanceof SignalError && error.code === 'STORE_UNAVAILABLE') return undefined
    throw error
  }
}

t.test('rows that are cut, of another kind or missing are refused', async t => {
  for (const [pageKeysMax, count] of [
    [1, 3],
    [4, bySize({ short: 6, long: 40 })],
    [undefined, bySize({ short: 6, long: 12 })],
  ] as const) {
    const entries = randomEntries(count)
    const map = new Rows(pageKeysMax)
    map.grow(entries)
    for (const [id, row] of [...map.rows]) {
      const under = entries.filter(
        ({ key }) => BigInt(`0x1${toHex(key)}`) >> BigInt(257 - id.toString(2).length) === BigInt(id),
      )
      const [{ key }] = under as [IndexedEntry]
      const forms = [
        ...Array.from({ length: row.length }, (_, length) => row.subarray(0, length)),
        Uint8Array.of(...row, 0),
        ...[0, 1, 2, 3, 255].filter(kind => kind !== row[0]).map(kind => row.with(0, kind)),
      ]
      for (const form of forms) {
        map.rows.set(id, form)
        if (unlessDamaged(() => lookUpIn(map.read, key)) !== undefined) t.fail(`looked up in ${toHex(form)}`)
        if (unlessDamaged(() => map.grow([{ key, index: 10 ** 6 }], 0)) !== undefined)
          t.fail(`grown on ${toHex(form)}`)
      }
      map.rows.delete(id)
      if (id !== ROOT_ID) {
        t.throws(() => lookUpIn(map.read, key), { code: 'STORE_UNAVAILABLE', message: /is missing/ })
        t.throws(() => map.grow([{ key, index: 10 ** 6 }], 0), { code: 'STORE_UNAVAILABLE' })
      }
      map.rows.set(id, row)
    }
  }
  t.pass('all were refused')
})

t.test('rows whose parts contradict each other are refused', async t => {
  const map = new Rows()
  const keys = [1, 2, 3].map(octet => new Uint8Array(32).fill(octet))
  const isRefused = (key: Uint8Array): boolean =>
    unlessDamaged(() => lookUpIn(map.read, key)) === undefined &&
    unlessDamaged(() => map.grow([{ key, index: 10 ** 6 }], 0)) === undefined
  map.grow(keys.map((key, index) => ({ key, index })))
  const page = map.rows.get(ROOT_ID)!
  const withKeys = (...order: number[]): Uint8Array => {
    const changed = page.slice()
    for (const [at, key] of order.entries()) changed.set(keys[key]!, 3 + 32 * at)
    return changed
  }
  map.rows.set(ROOT_ID, withKeys(0, 1, 0))
  t.ok(isRefused(keys[0]!), 'a key twice')
  map.rows.set(ROOT_ID, withKeys(1, 2, 0))
  t.ok(isRefused(keys[1]!), 'keys out of order')
  map.rows.set(ROOT_ID, page.with(page.length - 3 * 6 - 1, 0).slice(0, -6))
  t.ok(isRefused(keys[2]!), 'a key without indexes')

  const branched = new Rows(1)
  branched.grow(keys.map((key, index) => ({ key, index })))
  const branch = branched.rows.get(ROOT_ID)!
  const below = branched.rows.get(ROOT_ID * 16)!
  for (const [id, row] of [
    [ROOT_ID, branch],
    [ROOT_ID * 16, below],
  ] as const) {
    t.equal(row[0], 2)
    // The flags of slots 15 to 0, in the last two of their four octets.
    for (let flag = 8 * 3; flag < 8 * 5; flag++) {
      map.rows.clear()
      for (const [each, bytes] of branched.rows) map.rows.set(each, bytes)
      map.rows.set(id, flipBit(row, flag))
      if (!isRefused(keys[0]!)) t.fail(`row ${id} with another bit ${flag}`)
    }
  }
  // Its keys do not begin as its own bits do.
  map.rows.set(ROOT_ID * 16, page)
  map.rows.set(ROOT_ID, branch)
  const strange = page.slice()
  strange.set(new Uint8Array(32).fill(0xf3), 3 + 2 * 32)
  map.rows.set(ROOT_ID * 16, strange)
  t.ok(isRefused(keys[0]!), 'a key of another row')
})

t.test('a row with one bit changed is refused, or proves nothing that is wrong', async t => {
  for (const [pageKeysMax, count] of [
    [2, 12],
    [undefined, 8],
  ] as const) {
    const entries = randomEntries(count)
    const there = mapOf(entries)
    const map = new Rows(pageKeysMax)
    const { root } = map.grow(entries)
    const wrong: string[] = []
    const keys = [...entries.map(({ key }) => key), randomKey()]
    for (const [id, row] of [...map.rows]) {
      for (let bit = 0; bit < 8 * row.length; bit += bySize({ short: 23, long: 3 })) {
        map.rows.set(id, flipBit(row, bit))
        for (const key of keys) {
          const found = unlessDamaged(() => lookUpIn(map.read, key))
          const indexes = there.get(toHex(key)) ?? []
          if (found !== undefined && isProved(root, key, found) && found.indexes.join() !== indexes.join())
            wrong.push(`${id} ${bit} ${toHex(key)}`)
        }
        unlessDamaged(() => map.grow([{ key: keys[bit % keys.length]!, index: 10 ** 6 }], 0))
      }
      map.rows.set(id, row)
    }
    t.same(wrong, [], `seed ${seed}`)
  }
})

/** A page of a whole form, with keys that may be out of order or the same. */
function randomPage(keys: number): Uint8Array {
  const octets = randomOctets(3 + 32 * (2 * keys - 1) + 8 * keys)
  octets.set([1, 0, keys])
  const countsAt = 3 + 32 * (2 * keys - 1)
  for (let key = 0; key < keys; key++) {
    octets.set([0, 1], countsAt + 2 * key)
    if (random() < 0.3) octets.fill(key % 2, 3 + 32 * key, 3 + 32 * key + 32)
  }
  return octets
}

t.test('rows of random octets lead nowhere for long', async t => {
  for (let run = 0; run < bySize({ short: 1_000, long: 10_000 }); run++) {
    const row = run % 2 === 0 ? randomPage(1 + Math.floor(random() * 4)) : randomOctets(997)
    row[0] = 1 + (run % 2)
    unlessDamaged(() => lookUpIn(() => row, randomKey()))
    unlessDamaged(() => growTree(() => row, [{ key: randomKey(), index: 1 }]))
  }
  // A branch under every branch, each sound in itself.
  const branch = new Rows(1)
  branch.grow([new Uint8Array(32), new Uint8Array(32).fill(255)].map((key, index) => ({ key, index })))
  const top = branch.rows.get(ROOT_ID)!
  t.equal(top[0], 2)
  t.throws(() => lookUpIn(() => top, new Uint8Array(32)), { code: 'STORE_UNAVAILABLE' })
  t.throws(() => growTree(() => top, [{ key: new Uint8Array(32), index: 1 }]), { code: 'STORE_UNAVAILABLE' })
})

/** The log's tables on a real store: reopened after every few batches, out of order, damaged. */

import t, { type Test } from 'tap'
import { HEAD, LogStore } from '../../src/keyserver/log-store.ts'
import { HASH_BYTES } from '../../src/log/hash.ts'
import { indexKey, tileKey } from '../../src/store/engine/keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { codeOf } from '../support/codes.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import {
  createLog,
  type DeviceKey,
  deviceOf,
  ExpectedLog,
  faultsOfStore,
  freshKeys,
  keyOf,
  LogWriter,
  MAKER,
} from '../support/stored-log.ts'
import { storedTable } from '../support/stored-table.ts'

interface OpenLog {
  readonly database: LmdbStore
  readonly store: LogStore
  readonly writer: LogWriter
}

/** A new log with `size` entries of as many devices. */
async function openLog(t: Test, size = 0): Promise<OpenLog> {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const store = new LogStore(database)
  await createLog(store)
  const writer = new LogWriter(store, new ExpectedLog())
  if (size > 0) await writer.append(freshKeys(0, size))
  return { database, store, writer }
}

/** Everything in the log's tables, as text. */
function dump(database: LmdbStore): string {
  const tables = ['log-tiles', 'log-bundles', 'log-identities', 'log-lookup']
  return database.view(view => {
    const rows = tables.flatMap(name =>
      [...view.range(storedTable(name))].map(({ key, value }) =>
        [name, Buffer.from(key).toString('hex'), Buffer.from(value).toString('hex')].join(' '),
      ),
    )
    return [...rows, JSON.stringify(view.get(HEAD, 'head'))].join('\n')
  })
}

t.test('a log is whole to one who follows what another appends, far beyond a step of the index', async t => {
  const seed = seedOf()
  t.comment(`CALLSIGN_SEED=${seed}`)
  const random = randomFrom(seed)
  const { database, writer } = await openLog(t, 5)
  const follower = new LogStore(database)
  const faults: string[] = []
  for (let round = 0; round < 12; round++) {
    follower.follow(writer.expected.size)
    for (const fault of faultsOfStore(follower, writer.expected)) faults.push(`round ${round}: ${fault}`)
    if (round === 5) await writer.append(freshKeys(5, 600))
    for (let batches = Math.floor(random() * 4); batches > 0; batches--)
      await writer.append(randomKeys(random, writer.expected))
  }
  t.same(faults, [])
})

t.test('a log that is reopened after every few batches is whole each time', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const folder = t.testdir()
  const faults: string[] = []
  const below = (bound: number) => Math.floor(random() * bound)
  let expected = new ExpectedLog()
  let isNew = true
  for (let cycle = 0; cycle < 14 || expected.size <= 512; cycle++) {
    const database = LmdbStore.open(folder)
    const store = new LogStore(database)
    if (isNew) await createLog(store)
    isNew = false
    const writer = new LogWriter(store, expected)
    for (const fault of faultsOfStore(store, expected)) faults.push(`reopened for cycle ${cycle}: ${fault}`)
    for (let batches = 1 + below(3); batches > 0; batches--) {
      const underWay = Array.from({ length: 1 + below(2) }, () => writer.append(randomKeys(random, expected)))
      await Promise.all(underWay)
    }
    expected = writer.expected
    for (const fault of faultsOfStore(store, expected)) faults.push(`written in cycle ${cycle}: ${fault}`)
    await database.close()
  }
  t.same(faults, [], `seed ${seed}`)
})

/** 1 to 300 keys, about a third of them of devices that have one. */
function randomKeys(random: () => number, log: ExpectedLog): DeviceKey[] {
  const below = (bound: number) => Math.floor(random() * bound)
  return Array.from({ length: 1 + below(300 ** random()) }, (_, at) => {
    const isReplaced = random() < 0.35 && log.size > 0
    return { device: deviceOf(isReplaced ? below(200) : below(100_000)), publicKey: keyOf(log.size + at) }
  })
}

t.test('a log is made once, and says by whom', async t => {
  const { store } = await openLog(t, 3)
  t.same(store.maker(), MAKER)
  await t.rejects(createLog(store), { message: /a log is made once/ })
  t.equal(store.head()?.treeSize, 3, 'what was there stays')
})

t.test('two batches in flight are committed in their order', async t => {
  const { store, writer } = await openLog(t)
  const sizes: (number | undefined)[] = []
  const note = (which: number) => () => sizes.push(which, store.head()?.treeSize)
  const first = writer.append(freshKeys(0, 300)).then(note(1))
  const second = writer.append(freshKeys(300, 5)).then(note(2))
  t.equal(store.head()?.treeSize, 0, 'neither is there at once')
  await Promise.all([first, second])
  t.equal(sizes[0], 1)
  t.equal(sizes[2], 2)
  t.ok(sizes[1]! >= 300, 'the first is durable when it is told')
  t.equal(sizes[3], 305)
  t.same(faultsOfStore(store, writer.expected), [])
})

t.test('lookups and identities of a batch that is being written answer at once', async t => {
  const { store, writer } = await openLog(t, 200)
  const first = writer.append([{ device: deviceOf(7), publicKey: keyOf(1_000) }, ...freshKeys(200, 400)])
  const second = writer.append([{ device: deviceOf(7), publicKey: keyOf(1_001) }])
  t.equal(store.head()?.treeSize, 200)
  t.equal(store.newestIndex(deviceOf(7).vrfHash), 601)
  t.match(store.identity(601), { previousIndex: 200, earlierKeys: 2 })
  t.match(store.identity(200), { previousIndex: 7, earlierKeys: 1 })
  t.equal(store.newestIndex(deviceOf(599).vrfHash), 600)
  await Promise.all([first, second])
  t.same(faultsOfStore(store, writer.expected), [])
})

t.test('batches that do not follow on the committed tree change nothing', async t => {
  const { database, store, writer } = await openLog(t, 300)
  const rival = new LogWriter(new LogStore(database), new ExpectedLog(freshKeys(0, 300)))
  await rival.append(freshKeys(9_000, 10))
  const before = dump(database)
  const refused = await Promise.allSettled([
    writer.append(freshKeys(300, 20)),
    writer.append(freshKeys(320, 300)),
    store.append(writer.makeBatch(freshKeys(620, 1))),
  ])
  t.same(
    refused.map(outcome => outcome.status === 'rejected' && /meets a tree of/.test(String(outcome.reason))),
    [true, true, true],
  )
  t.equal(dump(database), before)
  const reopened = new LogStore(database)
  reopened.openTail(310)
  t.same(faultsOfStore(reopened, rival.expected), [])
})

t.test('after a refused batch, the same store goes on when its tail is opened again', async t => {
  const { database, store, writer } = await openLog(t, 300)
  const rival = new LogWriter(new LogStore(database), new ExpectedLog(freshKeys(0, 300)))
  await rival.append(freshKeys(9_000, 10))
  await t.rejects(writer.append(freshKeys(300, 200)), { message: /meets a tree of/ })
  const goingOn = new LogWriter(store, rival.expected)
  t.same(faultsOfStore(store, rival.expected), [], 'nothing of the refused batch is left in memory')
  await goingOn.append(freshKeys(500, 300))
  t.same(faultsOfStore(store, goingOn.expected), [])
})

interface Row {
  readonly table: string
  readonly key: Uint8Array
}

/** A row's replacement; undefined removes it. */
type Spoil = (bytes: Buffer) => Uint8Array | undefined

// The right edge of a log of 300: 44 leaf hashes, one hash of 256 leaves, 44 entries of 136 bytes.
const LAST_TILE: Row = { table: 'log-tiles', key: tileKey(0, 1) }
const TOP_TILE: Row = { table: 'log-tiles', key: tileKey(1, 0) }
const LAST_BUNDLE: Row = { table: 'log-bundles', key: indexKey(1) }
const FULL_BUNDLE: Row = { table: 'log-bundles', key: indexKey(0) }

const remove: Spoil = () => undefined
const cut = (length: number): Spoil => {
  return bytes => bytes.subarray(0, length)
}
const flip = (at: number): Spoil => {
  return bytes => bytes.with(at, bytes[at]! ^ 1)
}
const put = (at: number, character: string): Spoil => {
  return bytes => bytes.with(at, character.charCodeAt(0))
}

const DAMAGES: readonly (readonly [title: string, row: Row, spoil: Spoil])[] = [
  ['the last tile of level 0 is missing', LAST_TILE, remove],
  ['the last tile of level 0 is empty', LAST_TILE, cut(0)],
  ['the last tile of level 0 has one hash less', LAST_TILE, cut(43 * HASH_BYTES)],
  ['the last tile of level 0 ends inside a hash', LAST_TILE, cut(43 * HASH_BYTES + 5)],
  ['a hash of the last tile is another', LAST_TILE, flip(20 * HASH_BYTES)],
  ['the last tile of level 1 is missing', TOP_TILE, remove],
  ['the last tile of level 1 is empty', TOP_TILE, cut(0)],
  ['the last bundle is missing', LAST_BUNDLE, remove],
  ['the last bundle is empty', LAST_BUNDLE, cut(0)],
  ['the last bundle has one entry less', LAST_BUNDLE, cut(43 * 136)],
  ['the last bundle ends inside an entry', LAST_BUNDLE, cut(44 * 136 - 1)],
  ['an entry of the last bundle has another key', LAST_BUNDLE, flip(136 + 100)],
  ['an entry of the last bundle has another length', LAST_BUNDLE, flip(136 + 1)],
  ['a bundle that the lookup index is filled from is missing', FULL_BUNDLE, remove],
  ['a bundle that the lookup index is filled from is short', FULL_BUNDLE, cut(255 * 136)],
  ['an entry that the lookup index is filled from has no first line', FULL_BUNDLE, flip(3 * 136 + 2 + 88)],
  ['a hash that the lookup index is filled from is no base64', FULL_BUNDLE, put(3 * 136 + 2 + 10, '!')],
]

for (const [title, row, spoil] of DAMAGES) {
  t.test(`a log is not opened when ${title}`, async t => {
    const { database } = await openLog(t, 300)
    await spoilRow(database, row, spoil)
    t.equal(
      codeOf(() => new LogStore(database).openTail(300)),
      'CHECKPOINT_INVALID',
    )
  })
}

t.test('a log of full tiles is not opened when the tile above them is missing or short', async t => {
  const { database } = await openLog(t, 512)
  const codes: string[] = []
  for (const spoil of [cut(HASH_BYTES), remove]) {
    await spoilRow(database, TOP_TILE, spoil)
    codes.push(codeOf(() => new LogStore(database).openTail(512)))
  }
  t.same(codes, ['CHECKPOINT_INVALID', 'CHECKPOINT_INVALID'])
})

async function spoilRow(database: LmdbStore, { table, key }: Row, spoil: Spoil): Promise<void> {
  const rows = storedTable(table)
  await database.change(change => {
    const spoilt = spoil(Buffer.from(change.get(rows, key)!))
    if (spoilt === undefined) change.remove(rows, key)
    else change.put(rows, key, spoilt)
  })
}

t.test('a head larger than what the tables hold is not opened', async t => {
  const { store } = await openLog(t, 300)
  const codes = [301, 320, 511, 512, 513, 65_536, 70_000].map(size => codeOf(() => store.openTail(size)))
  t.same(new Set(codes), new Set(['CHECKPOINT_INVALID']), codes.join())
})

t.test('hashes that were read stay what they were when more is read', async t => {
  const { store, writer } = await openLog(t, 600)
  const nodes = [
    { level: 0, index: 5 },
    { level: 3, index: 5 },
    { level: 8, index: 1 },
  ]
  const hashes = store.readHashes(nodes)
  const copies = hashes.map(hash => Buffer.from(hash).toString('hex'))
  for (let index = 0; index < 600; index++) store.entryVolatile(index)
  for (let index = 0; index < 600; index++) store.readHashes([{ level: 0, index }])
  await writer.append(freshKeys(600, 300))
  t.same(
    hashes.map(hash => Buffer.from(hash).toString('hex')),
    copies,
  )
})

t.test('every narrower form of a tile and a bundle is its prefix', async t => {
  const { store, writer } = await openLog(t, 300)
  const wrong: string[] = []
  for (let width = 1; width <= 256; width++) {
    if (Buffer.compare(store.tileVolatile(0, 0, width), writer.expected.hashTile(0, 0, width)) !== 0) {
      wrong.push(`tile of ${width}`)
    }
    if (Buffer.compare(store.bundleVolatile(0, width), writer.expected.bundle(0, width)) !== 0) {
      wrong.push(`bundle of ${width}`)
    }
  }
  t.same(wrong, [])
})

t.test('a tile, bundle or entry that is not there is refused', async t => {
  const { store } = await openLog(t, 300)
  const codes = [
    () => store.tileVolatile(0, 2, 1),
    () => store.tileVolatile(0, 1, 45),
    () => store.tileVolatile(2, 0, 1),
    () => store.bundleVolatile(2, 1),
    () => store.entryVolatile(512),
    () => store.readHashes([{ level: 16, index: 0 }]),
  ].map(codeOf)
  t.same(codes, Array(6).fill('CHECKPOINT_INVALID'))
})

t.test('hashes of all complete subtrees are read as the naive tree has them', async t => {
  const { store, writer } = await openLog(t, 700)
  const wrong: string[] = []
  for (let level = 0; 2 ** level <= 700; level++) {
    const nodes = Array.from({ length: Math.floor(700 / 2 ** level) }, (_, index) => ({ level, index }))
    const expected = writer.expected.tree.readHashes(nodes)
    for (const [at, hash] of store.readHashes(nodes).entries()) {
      if (Buffer.compare(hash, expected[at]!) !== 0) wrong.push(`${level}/${at}`)
    }
  }
  t.same(wrong, [])
})

/**
 * The check of a stored log: what is whole is found whole, a byte changed anywhere is named where it is, and what is
 * derived is put right. `CALLSIGN_SEED` replays the random damage.
 */

import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { signerKeyFromSeed } from '../../src/log/note.ts'
import { parseBundle } from '../../src/log/tile.ts'
import { Database } from '../../src/store/database.ts'
import { indexKey, tileKey } from '../../src/store/keys.ts'
import type { CheckName, CheckOutcome, LogReport } from '../../src/store/log-check/fault.ts'
import { RawLog } from '../../src/store/log-check/raw-log.ts'
import { checkLog, type LogCheckOptions } from '../../src/store/log-check.ts'
import { reasonAgainstRepair, repairLog } from '../../src/store/log-repair.ts'
import { LOG_TABLES, LogStore } from '../../src/store/log-store.ts'
import { nameOfKey, RawTables, type RowKey, type TableName } from '../support/damage.ts'
import { seedOf } from '../support/seed.ts'
import {
  createLog,
  type Device,
  type DeviceKey,
  deviceOf,
  ExpectedLog,
  faultsOfStore,
  freshKeys,
  keyOf,
  LogWriter,
  MAKER,
  SIGNER,
} from '../support/stored-log.ts'
import { SeededRandom } from '../support/world.ts'

/** Where the devices of a test log come from stands in for the VRF. */
const KNOWN: LogCheckOptions = {
  known: { verifier: SIGNER, vrfPublicKey: MAKER.vrfPublicKey },
  vrf: {
    hash: (userId, deviceId) => deviceOf(Number(userId) * 4 + Number(deviceId)).vrfHash,
    sampleMax: 1_000_000,
    random: () => 0.5,
  },
}

interface Stored {
  readonly database: Database
  readonly tables: RawTables
  readonly log: ExpectedLog
}

async function storeLog(t: Test, keys: readonly DeviceKey[], batchEntries = 500): Promise<Stored> {
  const database = Database.open(t.testdir())
  t.teardown(() => database.close())
  const store = new LogStore(database)
  await createLog(store)
  const writer = new LogWriter(store, new ExpectedLog())
  for (let first = 0; first < keys.length; first += batchEntries) {
    await writer.append(keys.slice(first, first + batchEntries))
  }
  return { database, tables: RawTables.of(database), log: writer.expected }
}

/** Keys of which every fifth is a further key of one of ten devices. */
function mixedKeys(count: number): DeviceKey[] {
  return freshKeys(0, count).map((key, at) =>
    at % 5 === 4 ? { device: deviceOf(100_000 + (at % 10)), publicKey: keyOf(at) } : key,
  )
}

async function check(database: Database, options: LogCheckOptions = KNOWN): Promise<LogReport> {
  const raw = new RawLog(database)
  try {
    return await checkLog(raw, options)
  } finally {
    raw.end()
  }
}

function brokenOf(report: LogReport): CheckOutcome[] {
  return report.outcomes.filter(({ ok }) => ok === false)
}

/** `check: table key offset detail` of the first fault of each check. */
function namesOf(report: LogReport): string[] {
  return brokenOf(report).map(
    ({ check, first }) => `${check}: ${first!.table} ${first!.key} ${first!.detail}`,
  )
}

t.test('a log of any size is whole, however it was batched', async t => {
  for (const [size, batchEntries] of [
    [0, 1],
    [1, 1],
    [170, 90],
    [255, 255],
    [256, 256],
    [257, 100],
    [512, 511],
    [1_300, 7],
    [3_000, 700],
  ] as const) {
    const { database, log } = await storeLog(t, mixedKeys(size), batchEntries)
    const report = await check(database)
    t.same(namesOf(report), [], `${size} entries`)
    t.equal(report.treeSize, size)
    t.equal(report.rootHash, Buffer.from(log.tree.root(0, size)).toString('base64'))
    t.ok(report.isProven)
    await database.close()
  }
})

t.test('it is one moment that is checked, while the log grows', async t => {
  const { database, log } = await storeLog(t, mixedKeys(700))
  const raw = new RawLog(database)
  const store = new LogStore(database)
  const writer = new LogWriter(store, log)
  await writer.append(freshKeys(5_000, 900))
  const report = await checkLog(raw, { onProgress: () => writer.append(freshKeys(9_000 + log.size, 10)) })
  raw.end()
  t.same([namesOf(report), report.treeSize], [[], 700])
  t.same([namesOf(await check(database)), (await check(database)).treeSize], [[], log.size])
})

/** What a changed byte of a table must be told as, given where it was. */
interface Expectation {
  readonly check: CheckName
  /** Whether the offset that is named can be that of the byte, given the row as it was. */
  readonly isRightOffset: (named: number | undefined, offset: number, row: Buffer) => boolean
  readonly isDerived: (offset: number) => boolean
}

const isSame = (named: number | undefined, offset: number) => named === offset

/** The bytes of an entry are known only together; what is not base64 or a length breaks the bundle before. */
function isWithinEntry(named: number | undefined, offset: number, row: Buffer): boolean {
  let start = 0
  for (const entry of parseBundle(row)) {
    const end = start + 2 + entry.length
    if (offset < end) return named !== undefined && named >= start && named <= offset + 2
    start = end
  }
  return false
}

/** Nothing says what a signature should be, so the first of its bytes is named; the frame of a record is one thing. */
function isRightInHead(named: number | undefined, offset: number, row: Buffer): boolean {
  const signature = row.length - 93
  const text = row.indexOf(Buffer.from(`${SIGNER.name}\n`))
  if (offset >= signature) return named === signature
  return offset >= text ? named === offset : true
}

const IDENTITY_PREVIOUS = 16
const EXPECTED: Record<TableName, Expectation> = {
  [LOG_TABLES.tiles]: { check: 'tiles', isRightOffset: isSame, isDerived: () => true },
  [LOG_TABLES.bundles]: { check: 'entries', isRightOffset: isWithinEntry, isDerived: () => false },
  [LOG_TABLES.identities]: {
    check: 'identities',
    // User and device count as one: the record's start, or its first byte unlike an earlier one's.
    isRightOffset: (named, offset) =>
      offset % 24 >= IDENTITY_PREVIOUS
        ? named === offset
        : Math.floor(named! / 24) === Math.floor(offset / 24) || named !== undefined,
    isDerived: offset => offset % 24 >= IDENTITY_PREVIOUS,
  },
  [LOG_TABLES.lookup]: { check: 'lookup', isRightOffset: isSame, isDerived: () => true },
  [LOG_TABLES.head]: { check: 'checkpoint', isRightOffset: isRightInHead, isDerived: () => false },
  [LOG_TABLES.maker]: { check: 'maker', isRightOffset: named => named === undefined, isDerived: () => false },
}

for (const [table, expected] of Object.entries(EXPECTED) as [TableName, Expectation][]) {
  t.test(
    `a byte changed anywhere in ${table} is named by table and key, and put right where it is derived`,
    async t => {
      const seed = seedOf()
      const draw = new SeededRandom(seed)
      // At 2,560 the index was just written down, so its state row can say nothing else.
      const { database, tables } = await storeLog(t, mixedKeys(2_560), 512)
      const wrong: string[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const keys = tables.keys(table)
        const key = keys[draw.below(keys.length)]!
        const before = tables.get(table, key)!
        const offset = draw.below(before.length)
        const meantBefore = meaningOf(database, table, key)
        await tables.change(table, key, offset, 1 + draw.below(255))
        // The frame of a record has a byte that means nothing.
        if (meantBefore !== undefined && meaningOf(database, table, key) === meantBefore) continue
        const report = await check(database)
        for (const fault of misjudged(report, expected, table, key, offset, before)) {
          wrong.push(`${nameOfKey(table, key)} byte ${offset}: ${fault}`)
        }
        if (expected.isDerived(offset)) await repairLog(database, report)
        else await tables.put(table, key, before)
        if (!tables.get(table, key)!.equals(before) && table !== LOG_TABLES.lookup) {
          wrong.push(`${nameOfKey(table, key)} byte ${offset}: not put right`)
        }
        const after = namesOf(await check(database))
        if (after.length > 0) wrong.push(`${nameOfKey(table, key)} byte ${offset}: afterwards ${after[0]}`)
      }
      t.same(wrong, [], `seed ${seed}`)
    },
  )
}

/** What a record says, as text. */
function meaningOf(database: Database, table: TableName, key: RowKey): string | undefined {
  if (table !== LOG_TABLES.head && table !== LOG_TABLES.maker) return undefined
  const raw = new RawLog(database)
  try {
    return JSON.stringify(raw.record(table, String(key)))
  } catch {
    return 'nothing'
  } finally {
    raw.end()
  }
}

/** All in which a report does not say that this byte, and nothing else, is wrong. */
function misjudged(
  report: LogReport,
  expected: Expectation,
  table: TableName,
  key: RowKey,
  offset: number,
  before: Buffer,
): string[] {
  const broken = brokenOf(report)
  const named = broken.find(({ check }) => check === expected.check || check === 'vrf')
  if (named === undefined) return [`not found: ${namesOf(report)}`]
  const { first, lasting } = named
  const faults: string[] = []
  if (broken.some(({ check }) => check !== expected.check && check !== 'vrf')) {
    faults.push(`others are blamed: ${namesOf(report)}`)
  }
  // Of two records of one device that differ, either may be the wrong one.
  const isPair = table === LOG_TABLES.identities && !expected.isDerived(offset)
  if (first!.table !== table || (first!.key !== nameOfKey(table, key) && !isPair)) {
    faults.push(`named as ${first!.table} ${first!.key}`)
  }
  if (!expected.isRightOffset(first!.offset, offset, before)) {
    faults.push(`named as byte ${first!.offset}: ${first!.detail}`)
  }
  if ((lasting === 0) !== expected.isDerived(offset)) faults.push(`${lasting} faults can't be repaired`)
  const reason = reasonAgainstRepair(report)
  const mayRepair = expected.isDerived(offset) || table === LOG_TABLES.identities
  if ((reason === undefined) !== mayRepair) faults.push(`repair: ${reason}`)
  return faults
}

const ROUNDS = 40

t.test('what is altered in several tables at once is named in each of them', async t => {
  const { database, tables } = await storeLog(t, mixedKeys(2_560), 512)
  await tables.change(LOG_TABLES.bundles, indexKey(3), 5_000, 1)
  await tables.change(LOG_TABLES.tiles, tileKey(0, 6), 77, 1)
  await tables.change(LOG_TABLES.tiles, tileKey(1, 0), 40, 1)
  await tables.change(LOG_TABLES.identities, indexKey(2), 24 * 9 + 23, 1)
  const node = lookupKeys(tables).find(key => tables.get(LOG_TABLES.lookup, key)!.length > 30)!
  await tables.change(LOG_TABLES.lookup, node, 5, 1)
  const report = await check(database)
  t.match(namesOf(report), [
    /^entries: log-bundles 3 entry 804 /,
    /^tiles: log-tiles 0\/6 hash 2 /,
    /^identities: log-identities 2 entry 349 has /,
    new RegExp(
      `^lookup: log-lookup ${nameOfKey(LOG_TABLES.lookup, node)} row has not the VRF hash of entry `,
    ),
  ])
  t.same(
    brokenOf(report).map(({ first }) => first!.offset),
    [4_898, 77, 24 * 9 + 23, 5],
  )
  t.match(reasonAgainstRepair(report), /entries can't be derived from anything: restore a backup/)
})

t.test('of an entry and its leaf hash the one is named that does not lead to the signed root', async t => {
  // In the last, partial tile; in a full one; in the last full one, above which there is nothing but the root.
  for (const [size, index] of [
    [700, 2],
    [700, 1],
    [512, 1],
  ] as const) {
    const { database, tables } = await storeLog(t, freshKeys(0, size))
    const entry = await tables.change(LOG_TABLES.bundles, indexKey(index), 120, 1)
    t.match(namesOf(await check(database)), [new RegExp(`^entries: log-bundles ${index} `)])
    await tables.put(LOG_TABLES.bundles, indexKey(index), entry)
    await tables.change(LOG_TABLES.tiles, tileKey(0, index), 120, 1)
    t.match(namesOf(await check(database)), [new RegExp(`^tiles: log-tiles 0/${index} hash 3 `)])
    await database.close()
  }
})

t.test('rows that are missing, cut short, too long or too many are named', async t => {
  const { database, tables } = await storeLog(t, mixedKeys(2_560), 512)
  const { bundles, tiles, identities } = LOG_TABLES
  const lookup = lookupKeys(tables).at(-1)!
  const shorter = (table: TableName, key: RowKey) => tables.get(table, key)!.subarray(0, -3)
  const longer = (table: TableName, key: RowKey) => Buffer.concat([tables.get(table, key)!, Buffer.alloc(24)])
  const cases: [TableName, RowKey, ((table: TableName, key: RowKey) => Buffer) | undefined, RegExp][] = [
    [bundles, indexKey(4), undefined, /^entries: log-bundles 4 bundle 4 is missing/],
    [bundles, indexKey(9), undefined, /^entries: log-bundles 9 bundle 9 is missing/],
    [bundles, indexKey(4), shorter, /^entries: log-bundles 4 bundle ends inside entry 1279/],
    [bundles, indexKey(4), longer, /^entries: log-bundles 4 bundle goes on beyond the tree/],
    [bundles, indexKey(10), () => Buffer.alloc(9), /^entries: log-bundles 10 the tree has no such bundle/],
    [tiles, tileKey(0, 4), undefined, /^tiles: log-tiles 0\/4 tile is missing/],
    [tiles, tileKey(1, 0), undefined, /^tiles: log-tiles 1\/0 tile is missing/],
    [tiles, tileKey(1, 0), shorter, /^tiles: log-tiles 1\/0 tile has 317 bytes, not 320/],
    [tiles, tileKey(1, 0), longer, /^tiles: log-tiles 1\/0 tile has 344 bytes, not 320/],
    [tiles, tileKey(2, 0), () => Buffer.alloc(32), /^tiles: log-tiles 2\/0 the tree has no such tile/],
    [tiles, Buffer.from('odd'), () => Buffer.alloc(32), /^tiles: log-tiles 6f6464 the tree has no such tile/],
    [identities, indexKey(4), undefined, /^identities: log-identities 4 block is missing/],
    [identities, indexKey(4), shorter, /^identities: log-identities 4 block has 4077 bytes, not 4080/],
    [identities, indexKey(15), longer, /^identities: log-identities 15 block has 264 bytes, not 240/],
    [
      identities,
      indexKey(16),
      () => Buffer.alloc(24),
      /^identities: log-identities 16 the tree has no such block/,
    ],
    [LOG_TABLES.lookup, lookup, shorter, /^lookup: log-lookup \w+ node ends inside a row/],
    [LOG_TABLES.lookup, indexKey(0xfff), () => Buffer.from([1]), /^lookup: log-lookup fff no search comes/],
    [LOG_TABLES.lookup, indexKey(0), undefined, /^lookup: log-lookup 0 index was written down at size 0/],
    [LOG_TABLES.head, 'head', undefined, /^checkpoint: log-head head record is missing/],
    [LOG_TABLES.maker, 'maker', undefined, /^maker: log-maker maker record is missing/],
  ]
  for (const [table, key, change, sentence] of cases) {
    const before = tables.get(table, key)
    if (change === undefined) await tables.remove(table, key)
    else await tables.put(table, key, change(table, key))
    const report = await check(database)
    t.match(namesOf(report), [sentence])
    if (reasonAgainstRepair(report) === undefined && table !== identities) {
      await repairLog(database, report)
      t.same(namesOf(await check(database)), [], `repaired: ${sentence}`)
    }
    if (before === undefined) await tables.remove(table, key)
    else await tables.put(table, key, before)
  }
  t.same(namesOf(await check(database)), [], 'all is as it was')
})

t.test(
  'a checkpoint that is not of this tree, key or origin is named, up to its first wrong byte',
  async t => {
    const { database, log } = await storeLog(t, freshKeys(0, 300))
    const heads = database.recordTable<{ treeSize: number; checkpoint: string }>(LOG_TABLES.head)
    const sign = (treeSize: number, root: Uint8Array, signer = SIGNER) =>
      signCheckpoint({ treeSize, rootHash: root }, signer)
    const root = log.tree.root(0, 300)
    const other = log.tree.root(0, 299)
    const otherKey = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(1))
    const cases: [number, string, RegExp][] = [
      [300, sign(300, other), /the signed root is not that of the entries and tiles/],
      [299, sign(300, root), /record says size 299, the checkpoint 300/],
      [300, sign(300, root, otherKey), /signature does not verify/],
      [300, sign(300, root).replace('\n300\n', '\n301\n'), /signature does not verify/],
      [300, 'nothing of the kind', /checkpoint is not one/],
    ]
    for (const [treeSize, checkpoint, sentence] of cases) {
      await database.commit(() => void heads.put('head', { treeSize, checkpoint }))
      const report = await check(database)
      t.match(namesOf(report), [sentence])
      t.match(reasonAgainstRepair(report), /restore a backup/)
    }
  },
)

t.test('an older checkpoint under a longer log names what lies beyond it', async t => {
  const { database, log } = await storeLog(t, freshKeys(0, 700))
  const checkpoint = signCheckpoint({ treeSize: 300, rootHash: log.tree.root(0, 300) }, SIGNER)
  const heads = database.recordTable(LOG_TABLES.head)
  await database.commit(() => void heads.put('head', { treeSize: 300, checkpoint }))
  const report = await check(database)
  t.match(namesOf(report), [/^entries: log-bundles 2 /, /^tiles: /, /^identities: /, /^lookup: /])
  t.match(reasonAgainstRepair(report), /restore a backup/, 'what may be lost entries is not thrown away')
})

t.test('records of one VRF hash that name two devices are named, also without the VRF key', async t => {
  const { database, tables } = await storeLog(t, mixedKeys(700))
  // Entry 14 is the second key of the device of entry 4.
  await tables.change(LOG_TABLES.identities, indexKey(0), 24 * 14 + 7, 1)
  const report = await check(database, {})
  t.match(namesOf(report), [
    /^identities: log-identities 0 entries 4 and 14 have one VRF hash, but not one user/,
  ])
  t.equal(brokenOf(report)[0]?.first?.offset, 24 * 14 + 7)
  t.equal(reasonAgainstRepair(report), undefined, 'what else is wrong could be repaired')
  await repairLog(database, report)
  t.match(brokenOf(await check(database, {})), [{ check: 'identities' }], 'but not this')
})

t.test('keys that are given from outside count, not those in the store', async t => {
  const { database } = await storeLog(t, freshKeys(0, 20))
  const otherKey = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(1))
  const foreign = namesOf(await check(database, { known: { verifier: otherKey } }))
  t.match(foreign, [
    /^maker: .*another verifier key than was given/,
    /^checkpoint: .*signature does not verify/,
  ])
  const otherVrf = namesOf(await check(database, { known: { vrfPublicKey: 'another' } }))
  t.match(otherVrf, [/^maker: .*another VRF key/])
  t.same(namesOf(await check(database, {})), [], 'without any, those of the maker record')
})

/** Devices whose hashes all begin with one byte, so that their lookup node splits and its children may split again. */
function crowdedKeys(count: number): DeviceKey[] {
  return Array.from({ length: count }, (_, number) => {
    const vrfHash = new Uint8Array(createHash('sha512').update(`crowd ${number}`).digest())
    vrfHash[0] = 8
    const device: Device = { userId: BigInt(number), deviceId: 1n, vrfHash }
    return { device, publicKey: keyOf(number) }
  })
}

t.test('lookup nodes that were split are walked to the last row', async t => {
  const { database, tables } = await storeLog(t, crowdedKeys(2_100), 2_050)
  const keys = lookupKeys(tables)
  t.equal(keys.length, 17, 'a node and its sixteen children')
  t.same(namesOf(await check(database, {})), [])
  const draw = new SeededRandom(seedOf())
  const missed: string[] = []
  for (const key of keys) {
    const before = tables.get(LOG_TABLES.lookup, key)!
    for (const offset of [0, draw.below(before.length), before.length - 1]) {
      await tables.change(LOG_TABLES.lookup, key, offset, 1 + draw.below(255))
      const [named] = brokenOf(await check(database, {}))
      const isNamed = named?.first?.key === nameOfKey(LOG_TABLES.lookup, key) && named.first.offset === offset
      if (!isNamed)
        missed.push(`${nameOfKey(LOG_TABLES.lookup, key)} byte ${offset}: ${JSON.stringify(named)}`)
      await tables.put(LOG_TABLES.lookup, key, before)
    }
  }
  t.same(missed, [])
})

t.test(
  'in a log longer than the index keeps in memory every older entry must be found in the table',
  async t => {
    // The first 4,608 are in the table only; of these, 1,000 keys replace others.
    const keys = freshKeys(0, 69_000)
    const again = keys.slice(0, 1_000).map(({ device }, at) => ({ device, publicKey: keyOf(900_000 + at) }))
    const all = [...keys.slice(0, 1_000), ...again, ...keys.slice(1_000)]
    const { database, tables, log } = await storeLog(t, all, 2_048)
    t.same(namesOf(await check(database, {})), [])

    const { key, at } = findRow(tables, index => index >= 1_000 && index < 2_000)
    const before = tables.get(LOG_TABLES.lookup, key)!
    const name = nameOfKey(LOG_TABLES.lookup, key)
    const row = before.subarray(at, at + 22)
    const newest = row.readUIntBE(16, 6)

    const older = Buffer.from(before)
    older.writeUIntBE(newest - 1_000, at + 16, 6)
    await tables.put(LOG_TABLES.lookup, key, older)
    const misled = await check(database, {})
    t.match(namesOf(misled), [
      `lookup: log-lookup ${name} row leads to entry ${newest - 1_000}, which ${newest} has`,
    ])
    t.equal(brokenOf(misled)[0]?.first?.offset, at + 20)

    await tables.put(
      LOG_TABLES.lookup,
      key,
      Buffer.concat([before.subarray(0, at), before.subarray(at + 22)]),
    )
    t.match(namesOf(await check(database, {})), [`lookup: log-lookup ${name} entry ${newest} is not found`])
    await tables.remove(LOG_TABLES.lookup, key)
    const lost = await check(database, { entriesPerRange: 20_000 })
    t.match(namesOf(lost), [new RegExp(`^lookup: log-lookup ${name} entry \\d+ is not found`)])

    await repairLog(database, lost)
    t.same(namesOf(await check(database, {})), [])
    const store = new LogStore(database)
    store.openTail(log.size)
    const unfound = [...log.newest()].filter(
      ({ device, index }) => store.newestIndex(device.vrfHash) !== index,
    )
    t.same(unfound, [], 'and the server finds every newest entry')
  },
)

/** The first row of a lookup node that leads to such an index. */
function findRow(tables: RawTables, isWanted: (index: number) => boolean): { key: RowKey; at: number } {
  for (const key of lookupKeys(tables)) {
    const node = tables.get(LOG_TABLES.lookup, key)!
    for (let at = 1; at < node.length; at += 22) {
      if (isWanted(node.readUIntBE(at + 16, 6))) return { key, at }
    }
  }
  throw new Error('no such row')
}

t.test('a log whose hashes do not fit into memory at once is checked in parts', async t => {
  const { database, tables } = await storeLog(t, mixedKeys(2_560), 512)
  for (const entriesPerRange of [2_559, 900, 100, 10]) {
    t.same(namesOf(await check(database, { ...KNOWN, entriesPerRange })), [], `${entriesPerRange} at a time`)
  }
  await tables.change(LOG_TABLES.identities, indexKey(7), 24 * 3 + 21, 3)
  await tables.change(LOG_TABLES.identities, indexKey(1), 24 * 100 + 23, 9)
  const report = await check(database, { ...KNOWN, entriesPerRange: 50 })
  t.match(brokenOf(report), [{ check: 'identities', faults: 2, lasting: 0 }])
  await repairLog(database, report)
  t.same(namesOf(await check(database)), [])
})

t.test('a repair derives every table but the entries, and a log goes on from it', async t => {
  const { database, tables, log } = await storeLog(t, mixedKeys(2_560), 512)
  const rowsOf = (table: TableName) =>
    tables.keys(table).map(key => [nameOfKey(table, key), tables.get(table, key)!.toString('hex')])
  const before = {
    tiles: rowsOf(LOG_TABLES.tiles),
    bundles: rowsOf(LOG_TABLES.bundles),
    head: rowsOf(LOG_TABLES.head),
  }
  for (const table of [LOG_TABLES.tiles, LOG_TABLES.lookup]) {
    for (const key of tables.keys(table)) await tables.remove(table, key)
  }
  for (const key of tables.keys(LOG_TABLES.identities)) {
    const block = tables.get(LOG_TABLES.identities, key)!
    for (let at = 0; at < block.length; at += 24) block.fill(7, at + 16, at + 24)
    await tables.put(LOG_TABLES.identities, key, block)
  }
  const report = await check(database)
  t.same(
    brokenOf(report).map(({ check }) => check),
    ['tiles', 'identities', 'lookup'],
  )
  t.equal(reasonAgainstRepair(report), undefined)
  await repairLog(database, report)
  t.same(namesOf(await check(database)), [])
  t.same(
    { tiles: rowsOf(LOG_TABLES.tiles), bundles: rowsOf(LOG_TABLES.bundles), head: rowsOf(LOG_TABLES.head) },
    before,
    'tiles are byte for byte what they were, entries and checkpoint were not touched',
  )
  const store = new LogStore(database)
  await new LogWriter(store, log).append(mixedKeys(2_000))
  t.same(faultsOfStore(store, log), [])
})

t.test(
  'a repair that was cut off in the lookup table is refused by the server and finished by the next',
  async t => {
    const { database, tables, log } = await storeLog(t, mixedKeys(2_560), 512)
    for (const key of tables.keys(LOG_TABLES.lookup)) await tables.remove(LOG_TABLES.lookup, key)
    t.throws(() => new LogStore(database).openTail(log.size), {
      code: 'CHECKPOINT_INVALID',
      message: /lags behind/,
    })
    await repairLog(database, await check(database))
    t.same(namesOf(await check(database)), [])
  },
)

function lookupKeys(tables: RawTables): RowKey[] {
  return tables.keys(LOG_TABLES.lookup).filter(key => nameOfKey(LOG_TABLES.lookup, key) !== '0')
}

/** The check of a stored log, rule by rule: a whole log is found whole, and a fault is named where it is. */

import { createHash } from 'node:crypto'
import t from 'tap'
import { checkLog } from '../../../src/check/log/log-check.ts'
import type { TableName } from '../../../src/check/log/raw-log.ts'
import { RawLog } from '../../../src/check/log/raw-log.ts'
import { reasonAgainstRepair, repairLog } from '../../../src/check/log/repair.ts'
import { HEAD, LOG_TABLES, LogStore } from '../../../src/keyserver/log-store.ts'
import { signCheckpoint } from '../../../src/log/checkpoint.ts'
import { signerKeyFromSeed } from '../../../src/log/note.ts'
import { indexKey, tileKey } from '../../../src/store/engine/keys.ts'
import {
  brokenOf,
  check,
  KNOWN,
  lookupKeys,
  mixedKeys,
  namesOf,
  storeLog,
} from '../../support/checked-log.ts'
import { nameOfKey, type RawTables, type RowKey } from '../../support/damage.ts'
import { seedOf } from '../../support/seed.ts'
import { long } from '../../support/size.ts'
import { type Device, type DeviceKey, freshKeys, keyOf, LogWriter, SIGNER } from '../../support/stored-log.ts'
import { SeededRandom } from '../../support/world.ts'

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

t.test('damage to several tables at once is named in each', async t => {
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
      await database.change(change => change.put(HEAD, 'head', { treeSize, checkpoint }))
      const report = await check(database)
      t.match(namesOf(report), [sentence])
      t.match(reasonAgainstRepair(report), /restore a backup/)
    }
  },
)

t.test('an older checkpoint under a longer log names the rows beyond it', async t => {
  const { database, log } = await storeLog(t, freshKeys(0, 700))
  const checkpoint = signCheckpoint({ treeSize: 300, rootHash: log.tree.root(0, 300) }, SIGNER)
  await database.change(change => change.put(HEAD, 'head', { treeSize: 300, checkpoint }))
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
  long(),
  async t => {
    // The first 4,608 are in the table only; 1,000 keys of these replace older ones.
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

t.test(
  'the checkpoint that was shown last is checked, too, and one that was not kept is no fault',
  async t => {
    const { database } = await storeLog(t, mixedKeys(30))
    const store = new LogStore(database)
    const head = store.head()!
    for (const [treeSize, checkpoint, isWhole] of [
      [30, head.checkpoint, true],
      [20, signCheckpoint({ treeSize: 20, rootHash: new Uint8Array(32) }, SIGNER), true],
      [31, signCheckpoint({ treeSize: 31, rootHash: new Uint8Array(32) }, SIGNER), false],
      [20, head.checkpoint, false],
      [20, head.checkpoint.replace('\n30\n', '\n20\n'), false],
      [20, 'nothing', false],
    ] as const) {
      await store.keepShown({ treeSize, checkpoint })
      const report = await check(database)
      t.match(namesOf(report), isWhole ? [] : [/^checkpoint: log-head shown /], checkpoint)
      t.equal(namesOf(report).length, isWhole ? 0 : 1)
    }
    t.equal(store.shownHead()?.treeSize, 20)
    await store.forgetShown()
    t.same([namesOf(await check(database)), store.shownHead(), store.keepsShown], [[], head, false])
    await database.close()
  },
)

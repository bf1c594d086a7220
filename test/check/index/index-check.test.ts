/** The check of a stored index, rule by rule: a whole one is found whole, and each fault is named where it is. */

import t, { type Test } from 'tap'
import { checkLog } from '../../../src/check/log/log-check.ts'
import { RawLog, type TableName } from '../../../src/check/log/raw-log.ts'
import { reasonAgainstRepair, repairLog } from '../../../src/check/log/repair.ts'
import {
  INDEX_HEAD,
  INDEX_STATE,
  INDEX_TABLES,
  type IndexState,
  MAP,
  SHOWN,
} from '../../../src/keyserver/index/index-tables.ts'
import { LogStore } from '../../../src/keyserver/log-store.ts'
import { signCheckpoint } from '../../../src/log/checkpoint.ts'
import { indexOriginOf } from '../../../src/log/index-leaf.ts'
import { formatVerifierKey, signerKeyFromSeed } from '../../../src/log/note.ts'
import { ROOT_ID } from '../../../src/log/patricia-rows.ts'
import { indexKey, tileKey } from '../../../src/store/engine/keys.ts'
import type { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import {
  check,
  KNOWN,
  mixedKeys,
  namesOf,
  type Stored,
  storeIndexedLog,
  storeLog,
} from '../../support/checked-log.ts'
import { RawTables, type RowKey } from '../../support/damage.ts'
import { FilledIndex, INDEX_SIGNER } from '../../support/filled-index.ts'
import { freshKeys, LogWriter, SIGNER } from '../../support/stored-log.ts'

const { rows, tiles, bundles, head: heads, state: states } = INDEX_TABLES

/** The outcome of each index check, by its name. */
async function outcomesOf(database: LmdbStore) {
  const { outcomes } = await check(database)
  return Object.fromEntries(
    outcomes
      .filter(({ check }) => check.startsWith('index'))
      .map(({ check, ok, detail }) => [check, [ok, detail]]),
  )
}

/** Rows of every derived table of the index. */
function derived({ tables }: Stored): [TableName, RowKey, string][] {
  return [rows, tiles].flatMap(table =>
    tables
      .keys(table)
      .map(key => [table, key, tables.get(table, key)!.toString('hex')] as [TableName, RowKey, string]),
  )
}

function stateOf(database: LmdbStore): IndexState {
  return database.view(view => view.get(INDEX_STATE, MAP))!
}

function setState(database: LmdbStore, changed: Partial<IndexState>): Promise<void> {
  const state = { ...stateOf(database), ...changed }
  return database.change(change => change.put(INDEX_STATE, MAP, state))
}

/** Names the faults, repairs, and expects that nothing but the named faults was there. */
async function repairs(t: Test, database: LmdbStore, sentence: RegExp): Promise<void> {
  const report = await check(database)
  t.match(namesOf(report), [sentence])
  t.equal(namesOf(report).length, 1, `${namesOf(report)}`)
  t.equal(reasonAgainstRepair(report), undefined)
  await repairLog(database, report)
  t.same(namesOf(await check(database)), [], `repaired: ${sentence}`)
}

t.test('an index of any size is whole, however its leaves came', async t => {
  for (const [size, batchEntries, leavesPerBatch] of [
    [1, 1, 1],
    [32, 32, 2],
    [33, 33, 1],
    [700, 90, 3],
    [1_300, 650, 150],
    [3_000, 700, 1],
  ] as const) {
    const { database } = await storeIndexedLog(t, mixedKeys(size), { batchEntries, leavesPerBatch })
    const outcomes = await outcomesOf(database)
    t.match(outcomes, {
      index: [true, /^the state: the map of \d+ leaves, over \d+ of \d+ entries$/],
      'index-checkpoint': [true, String],
      'index-leaves': [true, /^\d+ leaves: /],
      'index-tiles': [true, String],
      'index-map': [true, new RegExp(`^\\d+ rows of the map over ${size} entries`)],
    })
    await database.close()
  }
})

t.test('a store without an index says so, and the log may be ahead of one', async t => {
  const { database, log } = await storeLog(t, freshKeys(0, 300))
  t.same(await outcomesOf(database), { index: [null, 'the store has no index'] })
  const store = new LogStore(database)
  await new FilledIndex(database).addLeaf(store.head()!)
  await new LogWriter(store, log).append(freshKeys(1_000, 300))
  t.match(await outcomesOf(database), {
    index: [true, /over 300 of 600 entries$/],
    'index-map': [true, /over 300 entries/],
  })
})

t.test('an index that is being built, or held, is no fault', async t => {
  const { database, tables } = await storeIndexedLog(t, mixedKeys(700))
  await setState(database, { isHeld: true })
  t.match(await outcomesOf(database), { index: [true, /; it is held: nothing is appended to it/] })
  // Built again: the map has some rows, the output log stays.
  await setState(database, { isHeld: false, leaves: 0, entries: 256 })
  await tables.remove(rows, indexKey(ROOT_ID))
  t.match(await outcomesOf(database), {
    index: [true, /^the map is being built: 256 of 700 entries$/],
    'index-leaves': [true, String],
    'index-map': [null, /^not compared: the map is being built$/],
  })
  // Begun anew under another key: what the earlier one left is not of interest.
  for (const key of tables.keys(heads)) await tables.remove(heads, key)
  await tables.remove(tiles, tileKey(0, 0))
  t.match(await outcomesOf(database), {
    index: [true, String],
    'index-leaves': [null, /^not checked: there is no leaf yet$/],
    'index-map': [null, String],
  })
  await setState(database, { entries: 701 })
  await repairs(
    t,
    database,
    /^index: index-state map the map is said to have 701 entries, and the log has 700$/,
  )
  t.match(stateOf(database), { entries: 0, leaves: 0 })
})

t.test('rows of the map that are missing, changed or too many are named and made again', async t => {
  const stored = await storeIndexedLog(t, mixedKeys(2_000))
  const { database, tables } = stored
  const before = derived(stored)
  const page = tables.keys(rows).at(-1)!
  const name = Buffer.from(page as Uint8Array)
    .readUIntBE(0, 6)
    .toString(16)
  await tables.remove(rows, page)
  await repairs(t, database, new RegExp(`^index-map: index-rows ${name} row is missing$`))
  await tables.change(rows, page, 40, 1)
  await repairs(t, database, new RegExp(`^index-map: index-rows ${name} row is not as the entries make it$`))
  await tables.change(rows, indexKey(ROOT_ID), 37, 1)
  await repairs(t, database, /^index-map: index-rows 1 row is not as the entries make it$/)
  await tables.put(rows, indexKey(0x1000), Buffer.from([1]))
  await repairs(t, database, /^index-map: index-rows 1000 the map has no such row$/)
  await tables.put(rows, Buffer.from('odd'), Buffer.from([1]))
  await repairs(t, database, /^index-map: index-rows 6f6464 the map has no such row$/)
  t.same(derived(stored), before)
  for (const table of [rows, tiles]) for (const key of tables.keys(table)) await tables.remove(table, key)
  const report = await check(database)
  t.match(namesOf(report), [/^index-tiles: index-tiles 0\/0 tile is missing/, /^index-map: /])
  await repairLog(database, report)
  t.same(derived(stored), before, 'byte for byte')
})

t.test('an entry that the map lacks, or has twice, is named even where the rows make a tree', async t => {
  const { database, log } = await storeIndexedLog(t, freshKeys(0, 600))
  const other = await storeIndexedLog(t, freshKeys(0, 599))
  // The rows of the map over one entry less, whole in themselves.
  const store = new LogStore(database)
  t.equal(store.head()?.treeSize, log.size)
  for (const key of other.tables.keys(rows))
    await RawTables.of(database).put(rows, key, other.tables.get(rows, key)!)
  await repairs(t, database, /^index-map: index-rows \w+ row is not as the entries make it$/)
})

t.test('tiles and leaves of the output log are checked as those of a log', async t => {
  const { database, tables } = await storeIndexedLog(t, mixedKeys(900), { leavesPerBatch: 150 })
  const tile = tables.get(tiles, tileKey(0, 1))!
  await tables.change(tiles, tileKey(0, 1), 40, 1)
  await repairs(t, database, /^index-tiles: index-tiles 0\/1 hash 1 of the tile is not that of its entry$/)
  t.same(tables.get(tiles, tileKey(0, 1)), tile)
  await tables.put(tiles, tileKey(0, 2), tile)
  await repairs(t, database, /^index-tiles: index-tiles 0\/2 the tree has no such tile$/)
  const cases: [TableName, RowKey, ((row: Buffer) => Buffer) | undefined, RegExp][] = [
    [
      bundles,
      indexKey(1),
      row => row.subarray(0, -3),
      /^index-leaves: index-bundles 1 bundle ends inside entry 299/,
    ],
    [bundles, indexKey(1), undefined, /^index-leaves: index-bundles 1 bundle 1 is missing/],
    [
      bundles,
      indexKey(2),
      () => Buffer.alloc(9),
      /^index-leaves: index-bundles 2 the tree has no such bundle/,
    ],
    [
      bundles,
      indexKey(0),
      row => Buffer.from(row.toString('latin1').replace('"index_root"', '"index_Root"'), 'latin1'),
      /^index-leaves: index-bundles 0 entry 0: leaf of the index is not of its form/,
    ],
    [heads, 'head', undefined, /^index-checkpoint: index-head head record is missing/],
    [heads, 'shown', undefined, /^index-checkpoint: index-head shown record is missing/],
    [heads, 'odd', () => Buffer.alloc(1), /^index-checkpoint: index-head odd no such record belongs here/],
    [states, 'odd', () => Buffer.alloc(1), /^index: index-state odd no such record belongs here/],
    [states, 'map', undefined, /^index: index-state map record is missing or can’t be decoded/],
  ]
  for (const [table, key, change, sentence] of cases) {
    const before = tables.get(table, key)
    if (change === undefined) await tables.remove(table, key)
    else await tables.put(table, key, change(before ?? Buffer.alloc(0)))
    const report = await check(database)
    t.match(namesOf(report), [sentence])
    t.equal(namesOf(report).length, 1, `${namesOf(report)}`)
    t.match(reasonAgainstRepair(report), /^what is damaged of the index is signed: /)
    if (before === undefined) await tables.remove(table, key)
    else await tables.put(table, key, before)
  }
  t.same(namesOf(await check(database)), [], 'all is as it was')
})

t.test('tiles are not rebuilt from unsigned leaves', async t => {
  const { database, tables } = await storeIndexedLog(t, mixedKeys(300))
  const leaf = tables.get(bundles, indexKey(0))!.toString('latin1')
  // Another checkpoint, of the same form.
  const at = leaf.indexOf('"index_root":[') - 10
  await tables.change(bundles, indexKey(0), at, 0x20)
  await tables.remove(tiles, tileKey(0, 0))
  const report = await check(database)
  const checks = namesOf(report).map(name => name.split(':')[0])
  t.ok(checks.includes('index-tiles') && checks.includes('index-checkpoint'), checks.join())
  await repairLog(database, report)
  t.equal(tables.get(tiles, tileKey(0, 0)), undefined)
})

t.test(
  'a state that contradicts the shown checkpoint is named, and repaired where the rest allows it',
  async t => {
    const { database } = await storeIndexedLog(t, mixedKeys(1_200), { batchEntries: 400 })
    const whole = stateOf(database)
    await setState(database, { entries: 900, isHeld: true })
    await repairs(
      t,
      database,
      /^index: index-state map the state says 3 leaves and a map of 900 entries; what is shown has 3 and 1200$/,
    )
    await setState(database, { isHeld: false, leaves: 2 })
    await repairs(t, database, /^index: index-state map the state says 2 leaves /)
    t.same(stateOf(database), whole)
    await setState(database, { vkey: 'nothing' })
    t.match(namesOf(await check(database)), ['index: index-state map record has no whole verifier key'])
    const foreign = signerKeyFromSeed('other.example/index', Buffer.alloc(32, 1))
    await setState(database, { vkey: formatVerifierKey(foreign) })
    t.match(namesOf(await check(database)), [
      / its key is of other\.example\/index, not of log\.example\/test\/index$/,
    ])
    const otherKey = signerKeyFromSeed(indexOriginOf(SIGNER.name), Buffer.alloc(32, 1))
    await setState(database, { vkey: formatVerifierKey(otherKey) })
    t.match(namesOf(await check(database)), [/^index-checkpoint: index-head shown .* not one of this log$/])
  },
)

t.test('the shown checkpoint covers these leaves, and at most one leaf waits', async t => {
  const { database, index } = await storeIndexedLog(t, mixedKeys(1_200), { batchEntries: 400 })
  const shown = database.view(view => view.get(INDEX_HEAD, SHOWN))!
  const other = signCheckpoint({ treeSize: 3, rootHash: new Uint8Array(32) }, INDEX_SIGNER)
  await database.change(change => change.put(INDEX_HEAD, SHOWN, { treeSize: 3, checkpoint: other }))
  t.match(namesOf(await check(database)), [
    /^index-checkpoint: index-head shown the signed root is not that of the leaves$/,
  ])
  await database.change(change => change.put(INDEX_HEAD, SHOWN, { ...shown, treeSize: 2 }))
  t.match(namesOf(await check(database)), [/index-head shown record says size 2, the checkpoint 3$/])
  const store = new LogStore(database)
  const state = stateOf(database)
  for (const [waiting, faults] of [
    [1, []],
    [2, [/^index-checkpoint: index-head head 2 leaves wait for witnesses, where one may$/]],
  ] as const) {
    await index.addLeaf(store.head()!)
    await database.change(change => {
      change.put(INDEX_HEAD, SHOWN, shown)
      change.put(INDEX_STATE, MAP, state)
    })
    const found = namesOf(await check(database))
    t.match(found, faults)
    t.equal(found.length, waiting - 1)
  }
})

t.test('a leaf with a root other than the entries’ is named, and nothing is rebuilt from it', async t => {
  const { database } = await storeLog(t, mixedKeys(400))
  const head = new LogStore(database).head()!
  await new FilledIndex(database).addLeaf(head, { root: root => root.map(octet => octet ^ 1) })
  const report = await check(database)
  t.match(namesOf(report), [
    /^index-leaves: index-bundles 0 leaf 0 says another root than the map over its 400 entries has$/,
  ])
  t.match(reasonAgainstRepair(report), /^what is damaged of the index is signed: /)
})

t.test('the checkpoint in each leaf has to be the log’s', async t => {
  const otherKey = signerKeyFromSeed(SIGNER.name, Buffer.alloc(32, 9))
  const { database, log } = await storeLog(t, freshKeys(0, 400))
  const treeOf = (treeSize: number) => ({ treeSize, rootHash: log.tree.root(0, treeSize) })
  const elsewhere = { treeSize: 400, rootHash: new Uint8Array(32) }
  const rotated = signerKeyFromSeed('log.example/other', Buffer.alloc(32, 9))
  for (const [name, checkpoint, fault] of [
    ['the log’s', signCheckpoint(treeOf(400), SIGNER), undefined],
    ['signed with its earlier key', signCheckpoint(treeOf(400), otherKey), undefined],
    [
      'of another tree',
      signCheckpoint(elsewhere, SIGNER),
      /is of another log, whose first 400 entries are others/,
    ],
    ['of another tree and key', signCheckpoint(elsewhere, otherKey), /is of another log/],
    ['of another origin', signCheckpoint(treeOf(400), rotated), /is not signed by the log/],
    [
      'changed',
      signCheckpoint(treeOf(400), SIGNER).replace('\n400\n', '\n399\n'),
      /is not signed by the log/,
    ],
    ['nothing', 'nothing', /is not one/],
  ] as const) {
    const { database: copy } = await storeLog(t, freshKeys(0, 400))
    const index = new FilledIndex(copy)
    await index.addLeaf({ treeSize: 400, checkpoint })
    const found = namesOf(await check(copy))
    t.match(found, fault === undefined ? [] : [fault], name)
    t.equal(found.length, fault === undefined ? 0 : 1, name)
    await copy.close()
  }
  const index = new FilledIndex(database)
  await index.addLeaf({ treeSize: 400, checkpoint: signCheckpoint(treeOf(400), SIGNER) })
  await index.addLeaf({ treeSize: 400, checkpoint: signCheckpoint(treeOf(300), SIGNER) })
  t.match(namesOf(await check(database)), [/ leaf 1: it is of 300 entries, and a leaf before it of 400$/])
})

t.test('damage to the log is said of the log, and the index is not made of damaged entries', async t => {
  const { database, tables } = await storeIndexedLog(t, mixedKeys(900))
  const before = tables.keys(rows).length
  await tables.change('log-bundles', indexKey(1), 200, 1)
  await tables.remove(rows, tables.keys(rows).at(-1)!)
  t.match(namesOf(await check(database)), [/^entries: /])
  t.match(await outcomesOf(database), {
    'index-map': [null, /^not compared: the log’s entries are damaged$/],
  })
  t.equal(tables.keys(rows).length, before - 1)
})

t.test('a log whose keys do not fit into memory at once has its map checked in parts', async t => {
  const { database, tables } = await storeIndexedLog(t, mixedKeys(2_560), { batchEntries: 512 })
  for (const entriesPerRange of [2_559, 900, 100, 10])
    t.same(namesOf(await check(database, { ...KNOWN, entriesPerRange })), [], `${entriesPerRange} at a time`)
  await tables.change(rows, tables.keys(rows)[9]!, 9, 1)
  for (const entriesPerRange of [900, 10])
    t.match(namesOf(await check(database, { ...KNOWN, entriesPerRange })), [/^index-map: index-rows /])
})

t.test('it is one moment that is checked, while log and index grow', async t => {
  const { database, index, log } = await storeIndexedLog(t, mixedKeys(700))
  const raw = new RawLog(database)
  const store = new LogStore(database)
  const writer = new LogWriter(store, log)
  const report = await checkLog(raw, {
    async onProgress() {
      await writer.append(freshKeys(9_000 + log.size, 10))
      await index.addLeaf(store.head()!)
    },
  })
  raw.end()
  t.same([namesOf(report), report.treeSize], [[], 700])
  t.same(namesOf(await check(database)), [])
})

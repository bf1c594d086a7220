/** Lookups in an index: each verified as a client would, over a store whose index grows, is held, or is damaged. */

import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { absencesIn } from '../../../src/keyserver/index/absences.ts'
import { IndexReader } from '../../../src/keyserver/index/index-reader.ts'
import {
  INDEX_BUNDLES,
  INDEX_HEAD,
  INDEX_ROWS,
  INDEX_STATE,
  MAP,
  SHOWN,
} from '../../../src/keyserver/index/index-tables.ts'
import { LogStore } from '../../../src/keyserver/log-store.ts'
import { type LookedUpLog, lookupRoutes, type Prover } from '../../../src/keyserver/lookups.ts'
import { openCheckpoint } from '../../../src/log/checkpoint.ts'
import { hashLeaf } from '../../../src/log/hash.ts'
import { verifyInclusion } from '../../../src/log/inclusion.ts'
import { indexOriginOf, indexValueOf, parseIndexLeaf } from '../../../src/log/index-leaf.ts'
import { openNote, signerKeyFromSeed, signNote } from '../../../src/log/note.ts'
import { verifyPatricia } from '../../../src/log/patricia.ts'
import { indexKey } from '../../../src/store/engine/keys.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { codeOf } from '../../support/codes.ts'
import { FilledIndex, INDEX_SIGNER } from '../../support/filled-index.ts'
import {
  createLog,
  type Device,
  type DeviceKey,
  deviceOf,
  ExpectedLog,
  freshKeys,
  keyOf,
  LogWriter,
  SIGNER,
} from '../../support/stored-log.ts'

interface Stage {
  readonly database: LmdbStore
  readonly index: FilledIndex
  readonly reader: IndexReader
  readonly faults: unknown[]
  /** Logs these keys, and adds a leaf with them. */
  grow(keys: readonly DeviceKey[]): Promise<void>
}

async function openStage(t: Test, size: number): Promise<Stage> {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const store = new LogStore(database)
  await createLog(store)
  const writer = new LogWriter(store, new ExpectedLog())
  const index = new FilledIndex(database)
  const faults: unknown[] = []
  const reader = new IndexReader(database, [INDEX_SIGNER], error => faults.push(error))
  const grow = async (keys: readonly DeviceKey[]) => {
    await writer.append(keys)
    await index.addLeaf(store.head()!)
  }
  if (size > 0) await grow(freshKeys(0, size))
  return { database, index, reader, faults, grow }
}

function textOf({ vrfHash }: Device): string {
  return Buffer.from(vrfHash).toString('base64')
}

function keyUnder(vrfHash: string): Uint8Array {
  return Uint8Array.from(createHash('sha256').update(vrfHash).digest())
}

/** The indexes of a lookup, once everything about it is verified; and the size of its log's tree. */
function verified(vrfHash: string, json: string): { readonly indexes: number[]; readonly treeSize: number } {
  const lookup = JSON.parse(json)
  const { treeSize, rootHash } = openCheckpoint(Buffer.from(lookup.output_log_cp, 'base64'), INDEX_SIGNER)
  const leaf = Buffer.from(lookup.output_log_leaf, 'base64')
  const path = lookup.output_log_proof.map((hash: number[]) => Uint8Array.from(hash))
  verifyInclusion({ leafHash: hashLeaf(leaf), index: treeSize - 1, treeSize, path, rootHash })
  const { root, inputCheckpoint } = parseIndexLeaf(Uint8Array.from(leaf))
  const indexes: number[] = lookup.index_value
  const value = indexes.length === 0 ? undefined : indexValueOf(indexes)
  const proof = Uint8Array.from(Buffer.from(lookup.index_proof, 'base64'))
  verifyPatricia({ root, key: keyUnder(vrfHash), value, proof })
  return { indexes, treeSize: openCheckpoint(inputCheckpoint, SIGNER).treeSize }
}

t.test('every key of a log, and keys that are not in it, with proofs of one leaf', async t => {
  const { reader, faults, grow } = await openStage(t, 1_500)
  await grow([{ device: deviceOf(7), publicKey: keyOf(9_001) }, ...freshKeys(1_500, 300)])
  const devices = Array.from({ length: 2_000 }, (_, number) => textOf(deviceOf(number)))
  const found = reader.lookUpAll(devices)!
  for (const [number, vrfHash] of devices.entries()) {
    const expected =
      number === 7 ? [7, 1_500] : number < 1_500 ? [number] : number < 1_800 ? [number + 1] : []
    const { indexes, treeSize } = verified(vrfHash, found[number]!)
    if (treeSize !== 1_801 || indexes.join() !== expected.join()) t.fail(`device ${number}: ${indexes}`)
  }
  t.equal(reader.lookUp(keyUnder(devices[7]!)), found[7], 'the same by the key alone')
  for (const route of lookupRoutes({} as LookedUpLog, {} as Prover, reader))
    t.match(route, { isLookup: true, countsFor: 'good-token' }, `${route.path} counts as a lookup`)
  t.same(Object.keys(JSON.parse(found[7]!)), [
    'output_log_cp',
    'output_log_leaf',
    'output_log_proof',
    'index_value',
    'index_proof',
  ])
  t.same(faults, [])
})

t.test('the first leaf may be of the empty log, and of one key', async t => {
  const { reader, grow, index, database } = await openStage(t, 0)
  await index.addLeaf(new LogStore(database).head()!)
  t.same(verified(textOf(deviceOf(1)), reader.lookUpAll([textOf(deviceOf(1))])![0]!), {
    indexes: [],
    treeSize: 0,
  })
  await grow(freshKeys(1, 1))
  t.same(verified(textOf(deviceOf(1)), reader.lookUpAll([textOf(deviceOf(1))])![0]!).indexes, [0])
  t.same(verified(textOf(deviceOf(2)), reader.lookUpAll([textOf(deviceOf(2))])![0]!).indexes, [])
})

t.test('each new leaf is shown at once, with the cosignatures that its checkpoint has', async t => {
  const { reader, grow, index, database } = await openStage(t, 10)
  const vrfHash = textOf(deviceOf(3))
  for (let leaf = 2; leaf <= 30; leaf++) await grow([{ device: deviceOf(3), publicKey: keyOf(5_000 + leaf) }])
  t.equal(verified(vrfHash, reader.lookUpAll([vrfHash])![0]!).indexes.length, 30)
  const witness = signerKeyFromSeed('witness.example', Buffer.alloc(32, 1))
  const cosigned = (note: string) => signNote(openNote(note, [INDEX_SIGNER]).text, [INDEX_SIGNER, witness])
  await index.addLeaf(new LogStore(database).head()!, { shown: cosigned })
  const { output_log_cp } = JSON.parse(reader.lookUpAll([vrfHash])![0]!)
  t.match(Buffer.from(output_log_cp, 'base64').toString(), /\n\u2014 witness\.example /)
  t.equal(reader.head.treeSize, 31)
})

t.test('lookups while leaves are written are each of one leaf', async t => {
  const { reader, faults, grow } = await openStage(t, 200)
  const asked = Array.from({ length: 40 }, (_, number) => textOf(deviceOf(number * 9)))
  const sizes = new Set<number>()
  for (let leaf = 0; leaf < 20; leaf++) {
    let isGrown = false
    const growing = grow(freshKeys(200 + leaf * 10, 10)).finally(() => {
      isGrown = true
    })
    while (!isGrown) {
      const found = reader.lookUpAll(asked)!.map((json, at) => verified(asked[at]!, json))
      const { treeSize } = found[0]!
      for (const [at, each] of found.entries())
        if (each.treeSize !== treeSize || each.indexes.join() !== (at * 9 < treeSize ? `${at * 9}` : ''))
          t.fail(`${each.indexes} of device ${at * 9} in a tree of ${each.treeSize}, not ${treeSize}`)
      sizes.add(treeSize)
      await setImmediate()
    }
    await growing
  }
  t.ok(sizes.size > 1)
  t.same(faults, [])
})

t.test('while it is built, where it is held, and under another key there is no index', async t => {
  const { database, reader, faults } = await openStage(t, 20)
  const vrfHash = textOf(deviceOf(3))
  const state = database.view(view => view.get(INDEX_STATE, MAP))!
  const other = signerKeyFromSeed(indexOriginOf(SIGNER.name), Buffer.alloc(32, 9))
  const unverified = new IndexReader(database, [other], error => faults.push(error))
  const none = new IndexReader(database, [], error => faults.push(error))
  for (const [what, each, change] of [
    ['no key', none, {}],
    ['another key', unverified, {}],
    ['being built', reader, { leaves: 0 }],
    ['held', reader, { isHeld: true }],
  ] as const) {
    await database.change(change_ => change_.put(INDEX_STATE, MAP, { ...state, ...change }))
    t.equal(each.isThere, false, what)
    t.equal(each.lookUpAll([vrfHash]), undefined, what)
    t.equal(
      codeOf(() => each.lookUp(keyUnder(vrfHash))),
      'INDEX_UNAVAILABLE',
      what,
    )
    t.equal(
      codeOf(() => each.head),
      'INDEX_UNAVAILABLE',
      what,
    )
    // Leaves are there while the map is built again.
    t.equal(
      codeOf(() => each.tileVolatile({ level: 0, index: 0, width: 1 })),
      what === 'being built' ? 'none' : 'INDEX_UNAVAILABLE',
      what,
    )
  }
  await database.change(change => change.put(INDEX_STATE, MAP, state))
  t.equal(verified(vrfHash, reader.lookUpAll([vrfHash])![0]!).indexes.length, 1, 'and then there is again')
  t.same(faults, [], 'none of it is a fault')
})

t.test('a leaf that waits for its quorum can be read, and is not shown', async t => {
  const { database, reader, index } = await openStage(t, 20)
  await index.addLeaf(new LogStore(database).head()!)
  const [state, shown] = database.view(view => [view.get(INDEX_STATE, MAP)!, view.get(INDEX_HEAD, SHOWN)!])
  await index.addLeaf(new LogStore(database).head()!)
  await database.change(change => {
    change.put(INDEX_STATE, MAP, state)
    change.put(INDEX_HEAD, SHOWN, shown)
  })
  const { treeSize } = reader.head
  t.equal(treeSize, shown.treeSize)
  const widthOf = (width: number) => reader.tileVolatile({ level: 'entries', index: 0, width }) !== undefined
  t.same([treeSize, treeSize + 1, treeSize + 2].map(widthOf), [true, true, false])
})

t.test('a damaged index gives nothing out, and is one fault in the log', async t => {
  const vrfHash = textOf(deviceOf(3))
  const flip = (bytes: Uint8Array, at: number) =>
    Uint8Array.from(bytes, (octet, each) => (each === at ? octet ^ 1 : octet))
  const harms: Record<string, (stage: Stage) => Promise<unknown>> = {
    'a hash of the branch': ({ database }) =>
      database.change(change => {
        const row = change.get(INDEX_ROWS, indexKey(1))!
        for (let at = 5; at < row.length; at += 32) row[at]! ^= 1
        change.put(INDEX_ROWS, indexKey(1), row)
      }),
    'no row': ({ database }) =>
      database.change(change => {
        for (const key of [...change.keys(INDEX_ROWS)].slice(1)) change.remove(INDEX_ROWS, key)
      }),
    'an empty row': ({ database }) =>
      database.change(change => {
        for (const key of [...change.keys(INDEX_ROWS)].slice(1))
          change.put(INDEX_ROWS, key, new Uint8Array(0))
      }),
    'another leaf': ({ database }) =>
      database.change(change => {
        change.put(INDEX_BUNDLES, indexKey(0), flip(change.get(INDEX_BUNDLES, indexKey(0))!, 40))
      }),
    'no shown checkpoint': ({ database }) => database.change(change => change.remove(INDEX_HEAD, SHOWN)),
    'a checkpoint of another size': ({ database }) =>
      database.change(change => {
        const { checkpoint } = change.get(INDEX_HEAD, SHOWN)!
        change.put(INDEX_HEAD, SHOWN, { treeSize: 2, checkpoint })
      }),
    'a leaf with another root': async ({ index, database }) =>
      index.addLeaf(new LogStore(database).head()!, { root: root => flip(root, 3) }),
  }
  for (const [what, harm] of Object.entries(harms)) {
    await t.test(what, async t => {
      const stage = await openStage(t, 400)
      await harm(stage)
      const { reader, faults } = stage
      for (let times = 0; times < 3; times++) {
        t.equal(reader.lookUpAll([vrfHash]), undefined)
        t.equal(
          codeOf(() => reader.lookUp(keyUnder(vrfHash))),
          'INDEX_UNAVAILABLE',
        )
      }
      t.equal(faults.length, 1)
    })
  }
})

t.test('kept proofs are those of one leaf, and of one index', async t => {
  const { database, reader, grow } = await openStage(t, 40)
  const vrfHash = textOf(deviceOf(3))
  t.equal(verified(vrfHash, reader.lookUpAll([vrfHash])![0]!).indexes.length, 1)
  await grow([{ device: deviceOf(3), publicKey: keyOf(700) }])
  t.equal(verified(vrfHash, reader.lookUpAll([vrfHash])![0]!).indexes.length, 2, 'of the next leaf')

  const other = signerKeyFromSeed(INDEX_SIGNER.name, Buffer.alloc(32, 77))
  const both = new IndexReader(database, [INDEX_SIGNER, other], error => t.fail(`${error}`))
  for (let times = 0; times < 40; times++) await grow([])
  both.lookUpAll([vrfHash])
  // Begun anew under the other key: the same tables have other tiles.
  await database.change(change => {
    for (const table of [INDEX_ROWS, INDEX_BUNDLES]) {
      for (const key of [...change.keys(table)]) change.remove(table, key)
    }
  })
  const anew = new FilledIndex(database, other)
  const head = new LogStore(database).head()!
  for (let times = 0; times < 38; times++) await anew.addLeaf(head)
  const [json] = both.lookUpAll([vrfHash])!
  const { output_log_cp } = JSON.parse(json!)
  t.equal(openCheckpoint(Buffer.from(output_log_cp, 'base64'), other).treeSize, 38)
  t.equal(reader.lookUpAll([vrfHash]), undefined, 'who does not know that key has no index')
})

t.test('the absence of a device list is claimed only where the index shows it', async t => {
  const { database, reader } = await openStage(t, 30)
  const vrf = {
    async prove(userId: bigint) {
      const { vrfHash } = deviceOf(Number(userId))
      return { vrfHash, vrfProof: new Uint8Array(80).fill(4) }
    },
  }
  const prove = absencesIn(reader, vrf)
  const absenceOf = await prove([3n, 500n])
  t.equal(absenceOf(3n), undefined, 'something is logged there')
  t.equal(absenceOf(501n), undefined, 'of whom it was not asked')
  const { indexProof, ...said } = absenceOf(500n)!
  const vrfHash = textOf(deviceOf(500))
  t.same(said, { deviceId: 0n, vrfHash, vrfProof: Buffer.alloc(80, 4).toString('base64') })
  t.same(verified(vrfHash, JSON.stringify(indexProof)).indexes, [])

  const state = database.view(view => view.get(INDEX_STATE, MAP))!
  await database.change(change => change.put(INDEX_STATE, MAP, { ...state, isHeld: true }))
  t.equal(absenceOf(500n), undefined, 'an index that was held meanwhile says nothing')
  const unasked = { prove: () => Promise.reject(new Error('nobody is to prove this')) }
  t.equal((await absencesIn(reader, unasked)([500n]))(500n), undefined, 'nor is the VRF asked then')
})

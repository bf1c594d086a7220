/**
 * The whole story through the public surface: keys are registered over gRPC, looked up over HTTP and crawled as
 * files. The checker has only the public keys of the ready line and the code in `test/strangers`.
 */

import { join } from 'node:path'
import t from 'tap'
import { checkPartialForms, crawl, fetchCheckpoint } from '../strangers/crawler.ts'
import { type Checkpoint, verifyLookup } from '../strangers/verifier.ts'
import {
  type LiveLog,
  lookUp,
  lookUpHistory,
  type RegisteredKey,
  registerKey,
  registerUsers,
  startLog,
} from '../support/live-log.ts'
import { growLog } from '../support/offline.ts'
import { startServer } from '../support/server.ts'
import { bySize, long, sized } from '../support/size.ts'

/** Registers in waves, fetching checkpoints all the while; with each wave, the checkpoint right after its answers. */
async function registerWatched({ http, client, keys }: LiveLog) {
  const registered: RegisteredKey[] = []
  const seen: Checkpoint[] = []
  const unprovable: number[] = []
  for (let wave = 0; wave < WAVES; wave++) {
    let isOver = false
    const answers = registerUsers(client, FIRST_USER + wave * WAVE_KEYS, WAVE_KEYS).finally(() => {
      isOver = true
    })
    while (!isOver) seen.push(await fetchCheckpoint(http, keys))
    registered.push(...(await answers))
    const after = await fetchCheckpoint(http, keys)
    seen.push(after)
    const indexes = registered.map(({ index }) => index)
    unprovable.push(...indexes.filter(index => index >= after.size))
  }
  for (const [userId, deviceId] of EDGE_IDS) registered.push(await registerKey(client, userId, deviceId))
  return { registered, seen, unprovable }
}

/** Looks all keys up in requests of 1 to 64 targets and verifies each result. */
async function verifyAll({ http, keys }: LiveLog, registered: readonly RegisteredKey[]): Promise<number> {
  let verified = 0
  for (let first = 0, request = 0; first < registered.length; request++) {
    const asked = registered.slice(first, first + TARGETS[request % TARGETS.length]!)
    const results = await lookUp(
      http,
      asked.map(({ vrfHash }) => vrfHash),
    )
    for (const [at, key] of asked.entries()) {
      const { index } = verifyLookup(keys, key, results[at]!)
      if (index === key.index && results.length === asked.length) verified++
    }
    first += asked.length
  }
  return verified
}

const UINT64_MAX = 2n ** 64n - 1n
const EDGE_IDS = [
  [0n, 0n],
  [0n, UINT64_MAX],
  [UINT64_MAX, 0n],
  [UINT64_MAX, UINT64_MAX],
  [1n, 11n],
  [11n, 1n],
] as const
const FIRST_USER = 1000
const WAVES = 12
const WAVE_KEYS = 50
const TARGETS = [1, 64, 2, 63, 3, 31]

// Both logs start before the first test: the library ends a file whose tests have ended while it still loads.
// The tests below only read this one.
const folder = t.testdir({ read: {}, grown: {} })
const log = await startLog(t, join(folder, 'read'))
const { registered, seen, unprovable } = await registerWatched(log)
const crawled = await crawl(log.http, log.keys)
// Further below, tests add to a log of their own, each with its own users.
const { http, client, keys } = await startLog(t, join(folder, 'grown'))

t.test('registered keys have indexes of their own, without gaps', async t => {
  const indexes = registered.map(({ index }) => index).sort((a, b) => a - b)
  t.same(
    indexes,
    indexes.map((_, at) => at),
  )
  t.equal(indexes.length, WAVES * WAVE_KEYS + EDGE_IDS.length)
})

t.test('each index is provable when Register answers', async t => {
  t.same(unprovable, [])
})

t.test('each key verifies step by step, in lookups of 1 to 64 targets', sized(), async t => {
  const every = bySize({ short: 3, long: 1 })
  const asked = registered.filter((_, at) => at % every === 0)
  t.equal(await verifyAll(log, asked), asked.length)
})

t.test(
  'the results of one request rest on one checkpoint, and one target may be asked for twice',
  async t => {
    const asked = [registered[3]!, registered[500]!, registered[3]!]
    const results = await lookUp(
      log.http,
      asked.map(({ vrfHash }) => vrfHash),
    )
    const checkpoints = results.map(({ proof }) => proof.slice(proof.indexOf('\n\n')))
    t.equal(new Set(checkpoints).size, 1)
    t.same(results[0], results[2])
  },
)

t.test('a crawl finds each key at its index, under a root that entries and tiles give', async t => {
  const found = registered.map(({ index }) => crawled.entries[index])
  t.same(
    found,
    registered.map(({ vrfHash, publicKey }) => ({ vrfHash, publicKey })),
  )
  t.equal(crawled.checkpoint.size, registered.length)
})

t.test('narrower partial tiles and bundles are what the wider ones begin with', async t => {
  const width = registered.length % 256
  const levelOneWidth = Math.floor(registered.length / 256)
  t.equal(await checkPartialForms(log.http, crawled), 2 * (width - 1) + levelOneWidth - 1)
})

t.test('what the checkpoint does not imply is not there', async t => {
  const width = registered.length % 256
  const paths = [
    `tile/0/002.p/${width + 1}`,
    `tile/entries/002.p/${width + 1}`,
    'tile/0/002',
    'tile/entries/002',
    'tile/0/003.p/1',
    'tile/1/000.p/3',
    'tile/2/000.p/1',
  ]
  const statuses = await Promise.all(paths.map(async path => (await fetch(`${log.http}/${path}`)).status))
  t.same(
    statuses,
    paths.map(() => 404),
  )
})

t.test('each checkpoint served while registering is a prefix of the tree', async t => {
  const forks = seen.filter(({ size, rootHash }) => !crawled.rootAt(size).equals(rootHash))
  const sizes = seen.map(({ size }) => size)
  t.same(forks, [])
  t.same(
    sizes,
    [...sizes].sort((a, b) => a - b),
    'the tree never shrinks',
  )
  t.ok(new Set(sizes).size > WAVES, `${new Set(sizes).size} different checkpoints were seen`)
})

let usersTaken = 0

/** The first of so many users whom the log does not know. */
function newUsers(count: number): number {
  usersTaken += count
  return usersTaken - count
}

t.test('the same key again gets the same index and adds nothing', async t => {
  const [first] = await registerUsers(client, newUsers(20), 20)
  const { size } = await fetchCheckpoint(http, keys)
  const { userId, deviceId, publicKey, index } = first!
  const again = Array.from({ length: 8 }, () => registerKey(client, userId, deviceId, publicKey))
  t.same(new Set((await Promise.all(again)).map(key => key.index)), new Set([index]))
  t.equal((await fetchCheckpoint(http, keys)).size, size)
})

t.test('a new key registered many times at once is logged once', async t => {
  const [first] = await registerUsers(client, newUsers(1), 1)
  const { userId, deviceId, index } = first!
  const publicKey = Buffer.alloc(32, 7).toString('base64')
  const again = Array.from({ length: 8 }, () => registerKey(client, userId, deviceId, publicKey))
  t.same(new Set((await Promise.all(again)).map(key => key.index)), new Set([index + 1]))
  t.equal((await fetchCheckpoint(http, keys)).size, index + 2)
})

t.test('the newest key of a device answers lookups, the older ones stay provable, oldest first', async t => {
  const userId = BigInt(newUsers(1))
  const versions = [await registerKey(client, userId, 6n)]
  for (let version = 1; version < 5; version++) {
    await registerUsers(client, newUsers(20), 20)
    versions.push(await registerKey(client, userId, 6n))
  }
  const { vrfHash } = versions[0]!
  t.same(new Set(versions.map(key => key.vrfHash)), new Set([vrfHash]))

  const [result] = await lookUp(http, [vrfHash])
  t.equal(verifyLookup(keys, versions.at(-1)!, result!).index, versions.at(-1)!.index)

  const { entries, treeSize } = await lookUpHistory(http, vrfHash)
  const verified = entries.map(({ publicKey, proof }, at) =>
    verifyLookup(keys, versions[at]!, { publicKey, vrfHash, proof }),
  )
  t.same(
    verified.map(({ index }) => index),
    versions.map(({ index }) => index),
  )
  t.same(
    entries.map(({ index }) => index),
    versions.map(({ index }) => `${index}`),
  )
  t.equal(treeSize, `${versions[0]!.index + 85}`)
})

t.test('a key that is asked for again and again is proven in the tree of each time', async t => {
  const kept = await registerKey(client, BigInt(newUsers(1)), 1n)
  const replacedBy = BigInt(newUsers(1))
  // Up to two full tiles later, so that its own has filled and has a neighbour.
  for (const growth of [0, 1, 60, 256, 256]) {
    await registerUsers(client, newUsers(growth), growth)
    const newest = await registerKey(client, replacedBy, 1n)
    const { size } = await fetchCheckpoint(http, keys)
    for (const time of ['first', 'second', 'third']) {
      const results = await lookUp(http, [newest.vrfHash, kept.vrfHash])
      const verified = [newest, kept].map((key, at) => verifyLookup(keys, key, results[at]!))
      const seen = verified.map(({ index, checkpoint }) => [index, checkpoint.size])
      t.same(
        seen,
        [
          [newest.index, size],
          [kept.index, size],
        ],
        `${time} time in ${size} entries`,
      )
    }
  }
})

t.test('going back to an earlier key of a device is logged as a new entry', async t => {
  const userId = BigInt(newUsers(1))
  const old = await registerKey(client, userId, 1n)
  await registerKey(client, userId, 1n)
  const back = await registerKey(client, userId, 1n, old.publicKey)
  t.equal(back.index, old.index + 2)
  const { entries } = await lookUpHistory(http, old.vrfHash)
  t.equal(entries.length, 3)
  t.equal(entries[2]!.publicKey, old.publicKey)
})

t.test(
  'a log with three levels of tiles is crawled, and any of its smaller trees recomputed',
  long(),
  async t => {
    const dataFolder = t.testdir()
    const small = await startLog(t, dataFolder)
    await registerUsers(small.client, 1, 300)
    const { checkpoint } = await crawl(small.http, small.keys)
    await small.end()
    await growLog(dataFolder, 66_100)

    const { http, keys } = await startLog(t, dataFolder)
    const crawled = await crawl(http, keys)
    t.equal(crawled.checkpoint.size, 66_100)
    t.ok(crawled.files.has('tile/2/000.p/1') && crawled.files.has('tile/1/001.p/2'))
    t.same(crawled.rootAt(300), checkpoint.rootHash)
  },
)

t.test('a restart changes no byte that a stranger sees', async t => {
  const dataFolder = t.testdir()
  const before = await startLog(t, dataFolder, {}, startServer)
  const keys = await registerUsers(before.client, 1, 300)
  const seenBefore = await crawl(before.http, before.keys)
  const lookupsBefore = await lookUp(
    before.http,
    keys.slice(0, 64).map(key => key.vrfHash),
  )
  t.equal(await before.end(), 0)

  const after = await startLog(t, dataFolder)
  const seenAfter = await crawl(after.http, after.keys)
  t.same(after.keys, before.keys)
  t.same(seenAfter.files, seenBefore.files)
  t.same(
    await lookUp(
      after.http,
      keys.slice(0, 64).map(key => key.vrfHash),
    ),
    lookupsBefore,
  )
  t.equal(await verifyAll(after, keys.slice(-64)), 64)

  const { index } = await registerKey(after.client, 999n, 1n)
  t.equal(index, 300)
  const grown = await crawl(after.http, after.keys)
  t.same(grown.rootAt(300), seenBefore.checkpoint.rootHash)
})

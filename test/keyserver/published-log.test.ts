/** A log's outside view while batches go on being written underneath. */

import t, { type Test } from 'tap'
import { IDENTITIES, LogStore } from '../../src/keyserver/log-store.ts'
import { PublishedLog } from '../../src/keyserver/published-log.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { rootFromPath } from '../../src/log/inclusion.ts'
import { signerKeyFromSeed } from '../../src/log/note.ts'
import { indexKey } from '../../src/store/engine/keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { codeOf } from '../support/codes.ts'
import { naiveLeafHash } from '../support/naive-tree.ts'
import {
  createLog,
  type DeviceKey,
  deviceOf,
  ExpectedLog,
  freshKeys,
  keyOf,
  LogWriter,
  SIGNER,
} from '../support/stored-log.ts'

interface OpenLog {
  readonly database: LmdbStore
  readonly store: LogStore
  readonly writer: LogWriter
  readonly published: PublishedLog
}

/** A log of `size` devices with a published checkpoint. */
async function openLog(t: Test, size: number): Promise<OpenLog> {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const store = new LogStore(database)
  await createLog(store)
  const writer = new LogWriter(store, new ExpectedLog())
  if (size > 0) await writer.append(freshKeys(0, size))
  const published = new PublishedLog(store, SIGNER)
  published.publish(store.head()!)
  return { database, store, writer, published }
}

function replacement(device: number, key: number): DeviceKey {
  return { device: deviceOf(device), publicKey: keyOf(key) }
}

t.test('before the first checkpoint there is no size and no head', async t => {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const published = new PublishedLog(new LogStore(database), SIGNER)
  t.equal(published.size, undefined)
  t.throws(() => published.head, { code: 'LOG_UNAVAILABLE' })
  t.throws(() => published.verifiedHead(), { code: 'LOG_UNAVAILABLE' })
})

t.test('a key that is being replaced answers until its successor is published', async t => {
  const { store, writer, published } = await openLog(t, 300)
  const { vrfHash } = deviceOf(7)
  const size = published.head.treeSize
  const answers: (string | undefined)[] = []
  const note = () => answers.push(published.newestKey(vrfHash, published.head.treeSize)?.publicKey)

  const first = writer.append([...freshKeys(300, 40), replacement(7, 1_000)])
  note()
  const second = writer.append([replacement(7, 1_001)])
  note()
  t.equal(store.newestIndex(vrfHash), 341, 'the appender sees the newest of all')
  await first
  note()
  await second
  note()
  t.same(answers, Array(4).fill(keyOf(7)), 'at the size that is published')
  t.equal(published.newestKey(vrfHash, size)?.index, 7)
  published.publish(store.head()!)
  t.equal(published.newestKey(vrfHash, size)?.publicKey, keyOf(7), 'the old size keeps its answer')
  t.equal(published.newestKey(vrfHash, 341)?.publicKey, keyOf(1_000))
  t.equal(published.newestKey(vrfHash, 342)?.publicKey, keyOf(1_001))
})

t.test('a first key that is being written is not found yet', async t => {
  const { store, writer, published } = await openLog(t, 10)
  const { vrfHash } = deviceOf(500)
  const writing = writer.append([replacement(500, 500), replacement(500, 501)])
  t.equal(published.newestKey(vrfHash, 10), undefined)
  await writing
  t.equal(published.newestKey(vrfHash, 10), undefined, 'nor when it is written and not published')
  published.publish(store.head()!)
  t.match(published.newestKey(vrfHash, 12), { index: 11, publicKey: keyOf(501) })
})

t.test('a hash that was never logged has no key', async t => {
  const { published } = await openLog(t, 300)
  t.equal(published.newestKey(deviceOf(300).vrfHash, 300), undefined)
})

t.test('a history has every key of the device and no other’s, oldest first', async t => {
  const { store, writer, published } = await openLog(t, 200)
  for (let key = 1_000; key < 1_009; key++) {
    await writer.append([replacement(9, key), replacement(key % 8, key + 500), ...freshKeys(key * 10, 60)])
  }
  published.publish(store.head()!)
  const newest = published.newestKey(deviceOf(9).vrfHash, published.head.treeSize)!
  const history = published.history(newest)
  t.same(
    history.map(({ publicKey }) => publicKey),
    [keyOf(9), ...Array.from({ length: 9 }, (_, at) => keyOf(1_000 + at))],
  )
  t.same(
    history.map(({ identity }) => [identity.userId, identity.deviceId, identity.earlierKeys]),
    history.map((_, at) => [2n, 1n, at]),
  )
  t.same(
    history.map(({ index }) => index),
    [9, ...Array.from({ length: 9 }, (_, at) => 200 + 62 * at)],
  )
})

t.test('tiles reach as far as the published tree, whatever is committed', async t => {
  const { store, writer, published } = await openLog(t, 300)
  await writer.append(freshKeys(300, 300))
  const isThere = (level: number | 'entries', index: number, width: number) =>
    published.tileVolatile({ level, index, width }) !== undefined
  const widths = [
    [0, 0, 256],
    [0, 1, 44],
    [1, 0, 1],
    ['entries', 0, 256],
    ['entries', 1, 44],
  ] as const
  t.ok(widths.every(([level, index, width]) => isThere(level, index, width)))
  t.notOk(widths.some(([level, index, width]) => width < 256 && isThere(level, index, width + 1)))
  t.notOk(isThere(0, 2, 1) || isThere('entries', 2, 1) || isThere(2, 0, 1))
  published.publish(store.head()!)
  t.ok(isThere(0, 1, 256) && isThere(0, 2, 88) && isThere(1, 0, 2) && isThere('entries', 2, 88))
})

t.test('an inclusion path at the published size leads to its root, with more committed', async t => {
  const { writer, published } = await openLog(t, 300)
  const root = Buffer.from(writer.expected.tree.root(0, 300))
  await writer.append(freshKeys(300, 300))
  const head = published.verifiedHead()
  const wrong = Array.from({ length: 300 }, (_, index) => index).filter(index => {
    const leafHash = naiveLeafHash(writer.expected.entry(index)!)
    const key = published.newestKey(deviceOf(index).vrfHash, 300)!
    return !root.equals(rootFromPath(leafHash, index, 300, published.inclusionPath(key, head)))
  })
  t.same(wrong, [])
})

t.test('sizes never decrease', async t => {
  const { store, published } = await openLog(t, 5)
  const head = store.head()!
  published.publish(head)
  t.throws(() => published.publish({ ...head, treeSize: 4 }), /never shrinks/)
  t.equal(published.size, 5)
})

t.test('a checkpoint is verified when it is used', async t => {
  const { store, published } = await openLog(t, 5)
  const head = store.head()!
  t.match(published.verifiedHead(), head)
  const tree = { treeSize: 5, rootHash: new Uint8Array(32) }
  const forged = {
    'another signature': head.checkpoint.replace(/.{8}\n$/, 'AAAAAAA=\n'),
    'another size': head.checkpoint.replace('\n5\n', '\n6\n'),
    'the key of another log': signCheckpoint(
      tree,
      signerKeyFromSeed('log.example/other', new Uint8Array(32)),
    ),
    'the same name and another key': signCheckpoint(tree, signerKeyFromSeed(SIGNER.name, new Uint8Array(32))),
    nothing: '',
  }
  for (const [what, checkpoint] of Object.entries(forged)) {
    published.publish({ treeSize: 5, checkpoint })
    t.throws(() => published.verifiedHead(), { code: 'CHECKPOINT_INVALID' }, what)
  }
  published.publish(head)
  t.match(published.verifiedHead(), head)
})

t.test('a log with short identity records is not opened', async t => {
  const { database, store } = await openLog(t, 300)
  await database.change(change =>
    change.put(IDENTITIES, indexKey(1), Buffer.from(change.get(IDENTITIES, indexKey(1))!).subarray(0, 24)),
  )
  t.equal(store.head()?.treeSize, 300)
  t.equal(
    codeOf(() => new LogStore(database).openTail(300)),
    'CHECKPOINT_INVALID',
  )
})

/** The log appender from inside: its promises one by one, a crash at each of its steps, and a damaged start. */
import t from 'tap'
import { HEAD, type LogBatch } from '../../src/keyserver/log-store.ts'
import { APPENDS_WAITING_MAX, BATCH_ENTRIES_MAX, KEYS_PER_DEVICE_MAX } from '../../src/limits.ts'
import { type LogHead, signCheckpoint } from '../../src/log/checkpoint.ts'
import { signerKeyFromSeed } from '../../src/log/note.ts'
import { indexKey, tileKey } from '../../src/store/engine/keys.ts'
import type { Change } from '../../src/store/engine/store.ts'
import { changedStore } from '../support/appender-bugs.ts'
import { AppenderStage, databaseWith, type WorldChange } from '../support/appender-stage.ts'
import { diskError } from '../support/memory-store.ts'
import {
  type DeviceKey,
  deviceOf,
  ExpectedLog,
  faultsOfStore,
  freshKeys,
  keyOf,
  SIGNER,
} from '../support/stored-log.ts'
import { storedTable } from '../support/stored-table.ts'

const NO_ROOM = 28

function keyFor(device: number, key: number): DeviceKey {
  return { device: deviceOf(device), publicKey: keyOf(key) }
}

t.test('the appender answers and shows nothing before it hears of the commit', async t => {
  const stage = new AppenderStage(databaseWith(freshKeys(0, 3)))
  stage.ask(...freshKeys(3, 2))
  await stage.run()
  t.equal(stage.database.waiting, 1)
  t.same([stage.answers, stage.published], [[undefined, undefined], [3]])
  stage.database.writeNext()
  await stage.run()
  t.same([stage.answers, stage.published], [[undefined, undefined], [3]], 'nor when it can be read')
  stage.database.tellNext()
  await stage.run()
  t.same(
    [stage.answers, stage.published],
    [
      [3, 4],
      [3, 5],
    ],
  )
})

t.test('the newest key again gets its index, whether it is stored or being written', async t => {
  const stage = new AppenderStage(databaseWith(freshKeys(0, 3)))
  const key = keyFor(9, 9)
  stage.ask(keyFor(1, 1), key, key)
  await stage.run()
  t.same(stage.answers, [1, undefined, undefined], 'what is durable is answered at once')
  stage.ask(key)
  await stage.run()
  t.equal(stage.database.waiting, 1, 'no second batch for it')
  await stage.settle()
  stage.ask(key)
  await stage.settle()
  t.same(stage.answers, [1, 3, 3, 3, 3])
  t.equal(stage.store.head()?.treeSize, 4)
})

t.test('a key that was replaced is appended anew', async t => {
  const stage = new AppenderStage(databaseWith([]))
  stage.ask(keyFor(0, 1), keyFor(0, 2), keyFor(0, 1), keyFor(0, 1))
  await stage.settle()
  stage.ask(keyFor(0, 2), keyFor(0, 2), keyFor(0, 3))
  await stage.settle()
  t.same(stage.answers, [0, 1, 2, 2, 3, 3, 4])
  const log = new ExpectedLog([1, 2, 1, 2, 3].map(key => keyFor(0, key)))
  t.same(faultsOfStore(stage.store, log), [])
})

t.test('two devices with hashes that begin alike have separate keys', async t => {
  const first = deviceOf(0)
  // The lookup index tells hashes apart by 16 bytes.
  const vrfHash = Uint8Array.from(first.vrfHash)
  vrfHash[16]! ^= 1
  const second = { userId: 77n, deviceId: 7n, vrfHash }
  const stage = new AppenderStage(databaseWith([keyFor(0, 5)]))
  stage.ask({ device: second, publicKey: keyOf(5) })
  await stage.settle()
  t.same(stage.answers, [1], 'the same key of another device is no repeat')
  t.match(stage.store.identity(1), { userId: 77n, deviceId: 7n, previousIndex: undefined, earlierKeys: 0 })
})

t.test('keys that arrive during a write go into the next batch', async t => {
  const stage = new AppenderStage(databaseWith([]))
  for (let round = 0; round < 4; round++) {
    stage.ask(...freshKeys(round * 10, 10))
    await stage.run()
  }
  t.equal(stage.database.waiting, 2, 'two are written at once, and no more')
  await stage.settle()
  t.same(stage.published, [0, 10, 20, 40])
  t.same(
    stage.answers,
    Array.from({ length: 40 }, (_, index) => index),
  )
})

t.test('when too many registrations wait, the next ones are refused, and the rest are answered', async t => {
  const stage = new AppenderStage(databaseWith([]))
  const inFlight = 2 * BATCH_ENTRIES_MAX
  stage.ask(...freshKeys(0, inFlight))
  await stage.run()
  stage.ask(...freshKeys(inFlight, APPENDS_WAITING_MAX))
  await stage.run()
  t.equal(stage.database.waiting, 2)
  stage.ask(...freshKeys(100_000, 3))
  await stage.run()
  t.same(stage.answers.slice(-3), Array(3).fill('OVERLOADED'), 'by the appender')
  await stage.settle()
  const { length } = stage.answers.slice(0, -3).filter((answer, at) => answer === at)
  t.equal(length, inFlight + APPENDS_WAITING_MAX, 'everyone else has an index of their own, in their order')
  t.ok(stage.published.every((size, at) => at === 0 || size - stage.published[at - 1]! <= BATCH_ENTRIES_MAX))
  t.equal(stage.system.figures().asksOpen, 0)
})

t.test('when the mailbox is full, the next ones are refused at once', async t => {
  const stage = new AppenderStage(databaseWith([]))
  stage.ask(...freshKeys(0, APPENDS_WAITING_MAX + 2))
  await Promise.resolve()
  t.same(stage.answers.slice(-3), [undefined, 'OVERLOADED', 'OVERLOADED'])
  await stage.settle()
  t.equal(stage.answers.filter((answer, at) => answer === at).length, APPENDS_WAITING_MAX)
})

t.test('a batch of repeats only does not keep those behind it waiting', async t => {
  const stage = new AppenderStage(databaseWith([keyFor(0, 1)]))
  stage.ask(...Array.from({ length: BATCH_ENTRIES_MAX }, () => keyFor(0, 1)), ...freshKeys(10, 2))
  await stage.settle()
  t.same(stage.answers.slice(-3), [0, 1, 2])
})

t.test('a device has so many keys and no more, also after a restart', async t => {
  const stage = new AppenderStage(databaseWith([]))
  const keys = Array.from({ length: KEYS_PER_DEVICE_MAX + 1 }, (_, key) => keyFor(7, key))
  stage.ask(...keys.slice(0, 600))
  await stage.settle()
  stage.ask(...keys.slice(600), keyFor(8, 1))
  await stage.settle()
  const last = KEYS_PER_DEVICE_MAX - 1
  t.same(stage.answers.slice(last), [last, 'TOO_MANY_KEYS', last + 1])
  const restarted = new AppenderStage(stage.database.crash(0))
  restarted.ask(keys.at(-1)!, keys[0]!, keys[last]!, keyFor(8, 2))
  await restarted.settle()
  t.same(restarted.answers, ['TOO_MANY_KEYS', 'TOO_MANY_KEYS', last, last + 2])
})

t.test('a batch that finds no room is refused as a whole, and the log goes on from the store', async t => {
  const stage = new AppenderStage(databaseWith(freshKeys(0, 300)))
  stage.ask(keyFor(1, 1_001), ...freshKeys(300, 40))
  await stage.run()
  stage.ask(keyFor(2, 1_002))
  await stage.run()
  // Both are in the transaction that fails.
  stage.database.refuseWaiting(2, diskError(NO_ROOM))
  await stage.settle()
  t.same(stage.answers, Array(42).fill('STORE_UNAVAILABLE'))
  t.same(faultsOfStore(stage.store, new ExpectedLog(freshKeys(0, 300))), [], 'nothing of them is left')
  stage.ask(keyFor(2, 1_002), keyFor(1, 1))
  await stage.settle()
  t.same(stage.answers.slice(42), [300, 1])
  t.same([stage.published, stage.fatal], [[300, 300, 301], []])
  t.equal(stage.system.figures().asksOpen, 0)
})

t.test('a batch behind one that found no room is refused with it, and the log goes on', async t => {
  const stage = new AppenderStage(databaseWith(freshKeys(0, 300)))
  stage.ask(...freshKeys(300, 40))
  await stage.run()
  stage.ask(keyFor(2, 1_002))
  await stage.run()
  // The second one's transaction begins when the first one's has failed, so it meets another tree than it expects.
  stage.database.refuseWaiting(1, diskError(NO_ROOM))
  await stage.settle()
  t.same(stage.answers, Array(41).fill('STORE_UNAVAILABLE'))
  t.same(stage.fatal, [])
  stage.ask(keyFor(2, 1_002))
  await stage.settle()
  t.same(stage.answers.slice(41), [300])
})

/** Delays the news that the first append failed, until the next one's news. */
function heardLate(): WorldChange {
  return world => {
    const { store } = world
    let following: Promise<void> | undefined
    const append = (batch: LogBatch): Promise<void> => {
      const appended = store.append(batch)
      if (following !== undefined) {
        following = appended
        return appended
      }
      following = Promise.resolve()
      return appended.catch(async (error: unknown) => {
        await following?.catch(() => {})
        throw error
      })
    }
    return { ...world, store: changedStore(store, { append }) }
  }
}

t.test(
  // LMDB's reasons come with a delay of their own: about one pair in two thousand is told in this order.
  'a batch behind one that found no room is refused with it, also when it is told first',
  async t => {
    const stage = new AppenderStage(databaseWith(freshKeys(0, 3)), heardLate())
    stage.ask(...freshKeys(3, 1))
    await stage.run()
    stage.ask(...freshKeys(4, 1))
    await stage.run()
    stage.database.refuseWaiting(1, diskError(NO_ROOM))
    stage.database.settleAll()
    await stage.settle()
    t.same([stage.answers, stage.fatal], [['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'], []])
  },
)

t.test('a commit that fails for any other reason stops the process', async t => {
  const stage = new AppenderStage(databaseWith(freshKeys(0, 3)))
  stage.ask(...freshKeys(3, 2))
  await stage.run()
  stage.database.refuseWaiting(1, diskError(13))
  await stage.run()
  t.match(stage.fatal, [{ code: 'STORE_UNAVAILABLE' }])
  t.same(stage.answers, ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
})

t.test('a store that went on though its writer was told of a failure stops the process', async t => {
  const stage = new AppenderStage(databaseWith(freshKeys(0, 3)))
  stage.ask(...freshKeys(3, 2))
  await stage.run()
  stage.database.writeNext()
  stage.database.tellNextFailed(diskError(NO_ROOM))
  await stage.run()
  stage.ask(keyFor(2, 2))
  await stage.settle()
  t.match(stage.fatal, [{ message: /went on without its writer/ }])
  t.same(stage.published, [3], 'the tree that nobody was told of is not shown')
  stage.ask(keyFor(2, 2))
  await stage.settle()
  t.same(stage.answers, ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE', 'INTERNAL', 'INTERNAL'])
})

/** How far the process gets with the two registrations, and what a crash there leaves. */
interface CrashCase {
  readonly step: string
  /** Throws where the process is to end. */
  readonly change?: WorldChange
  /** Lets the store go so far. */
  readonly act?: (stage: AppenderStage) => void | Promise<void>
  /** The written but unreported commits that survive. */
  readonly kept?: number
  /** Size of the log that a new process opens: 3 as before, 5 with the batch. */
  readonly sizeAfter: 3 | 5
  /** Answers to the two callers. */
  readonly heard?: readonly (number | undefined)[]
}

function crash(): never {
  throw new Error('crash')
}

function crashAt(method: 'newestIndex' | 'append', call = 1): WorldChange {
  let calls = 0
  return world => {
    const { store } = world
    const newestIndex = (vrfHash: Uint8Array) => (++calls === call ? crash() : store.newestIndex(vrfHash))
    const changes = method === 'append' ? { append: () => crash() } : { newestIndex }
    return { ...world, store: changedStore(store, changes) }
  }
}

const crashAtSigning: WorldChange = world => ({
  ...world,
  signer: {
    ...world.signer,
    get seed() {
      return crash()
    },
  },
})

const crashAtPublishing: WorldChange = world => ({
  ...world,
  publish: head => (head.treeSize === 5 ? crash() : world.publish(head)),
})

const settle = (stage: AppenderStage) => stage.settle()

const CRASHES: readonly CrashCase[] = [
  { step: '1 collect', sizeAfter: 3 },
  { step: '2 assign, the first', change: crashAt('newestIndex', 1), act: settle, sizeAfter: 3 },
  { step: '2 assign, the second', change: crashAt('newestIndex', 2), act: settle, sizeAfter: 3 },
  { step: '3 integrate, done', change: crashAtSigning, act: settle, sizeAfter: 3 },
  { step: '4 sign, done', change: crashAt('append'), act: settle, sizeAfter: 3 },
  { step: '5 commit, begun', act: stage => stage.run(), sizeAfter: 3 },
  {
    step: '5 commit, written and lost with the power',
    act: async stage => {
      await stage.run()
      stage.database.writeNext()
    },
    kept: 0,
    sizeAfter: 3,
  },
  {
    step: '5 commit, written and kept',
    act: async stage => {
      await stage.run()
      stage.database.writeNext()
    },
    kept: 1,
    sizeAfter: 5,
  },
  {
    step: '5 commit, told and not heard',
    act: async stage => {
      await stage.run()
      stage.database.settleAll()
    },
    sizeAfter: 5,
  },
  { step: '7 publish', change: crashAtPublishing, act: settle, sizeAfter: 5 },
  { step: '8 reply, done', act: settle, sizeAfter: 5, heard: [3, 4] },
]

for (const { step, change, act, kept = 0, sizeAfter, heard = [undefined, undefined] } of CRASHES) {
  t.test(
    `a crash at step ${step} leaves a log of ${sizeAfter}, in which the same keys get one index each`,
    async t => {
      const first = new AppenderStage(databaseWith(freshKeys(0, 3)), change)
      t.equal(await first.open(), 3)
      const keys = [keyFor(0, 100), keyFor(9, 101)]
      first.ask(...keys)
      await act?.(first)
      const isIndex = (answer: number | string | undefined) =>
        typeof answer === 'number' ? answer : undefined
      t.same(first.answers.map(isIndex), heard, 'what was heard before')

      const second = new AppenderStage(first.database.crash(kept))
      t.equal(await second.open(), sizeAfter)
      t.same(second.published, [sizeAfter], 'what is durable is shown, with its own checkpoint')
      second.ask(...keys, ...keys)
      await second.settle()
      t.same(second.answers, [3, 4, 3, 4])
      t.same(faultsOfStore(second.store, new ExpectedLog([...freshKeys(0, 3), ...keys])), [])
    },
  )
}

t.test('a crash after one of two callers was answered leaves the other the index of its key', async t => {
  const first = new AppenderStage(databaseWith(freshKeys(0, 3)))
  let answered = 0
  first.ask(keyFor(9, 100))
  await first.run()
  first.ask(keyFor(9, 100), keyFor(8, 101))
  first.database.settleAll()
  await first.run()
  answered = first.answers.filter(answer => answer !== undefined).length
  t.equal(answered, 2, 'the third is in the next batch')
  const second = new AppenderStage(first.database.crash(0))
  second.ask(keyFor(8, 101), keyFor(9, 100))
  await second.settle()
  t.same(second.answers, [4, 3])
})

/** Puts something else into the store of a log of 300. */
type Damage = (change: Change, head: LogHead) => void

function putHead(changed: (head: LogHead) => LogHead): Damage {
  return (change, head) => change.put(HEAD, 'head', changed(head))
}

function flipBit(table: string, key: Uint8Array, at: number): Damage {
  return change => {
    const rows = storedTable(table)
    const bytes = Uint8Array.from(change.get(rows, key)!)
    bytes[at]! ^= 1
    change.put(rows, key, bytes)
  }
}

const rootOf = (size: number) => new ExpectedLog(freshKeys(0, 300)).tree.root(0, size)
const signed = (treeSize: number, rootHash: Uint8Array, signer = SIGNER) => {
  return { treeSize, checkpoint: signCheckpoint({ treeSize, rootHash }, signer) }
}

const DAMAGES: readonly (readonly [title: string, damage: Damage])[] = [
  ['its checkpoint is of another root', putHead(() => signed(300, rootOf(299)))],
  ['its checkpoint is of a larger tree', putHead(() => signed(301, rootOf(300)))],
  ['its checkpoint is of a smaller tree', putHead(() => signed(299, rootOf(299)))],
  [
    'its checkpoint is of another size than its head',
    putHead(() => ({ ...signed(299, rootOf(299)), treeSize: 300 })),
  ],
  [
    'its checkpoint is signed by another key of the same name',
    putHead(() => signed(300, rootOf(300), signerKeyFromSeed(SIGNER.name, new Uint8Array(32)))),
  ],
  [
    'its checkpoint was altered',
    putHead(head => ({ ...head, checkpoint: head.checkpoint.replace('\n300\n', '\n301\n') })),
  ],
  ['its checkpoint is no note', putHead(head => ({ ...head, checkpoint: '300' }))],
  ['it has no checkpoint', change => change.remove(HEAD, 'head')],
  ['the tile above a full one is another', flipBit('log-tiles', tileKey(1, 0), 3)],
  ['a hash of its last tile is another', flipBit('log-tiles', tileKey(0, 1), 9)],
  ['an entry of its last bundle is another', flipBit('log-bundles', indexKey(1), 100)],
]

for (const [title, damage] of DAMAGES) {
  t.test(`a log is not opened, shown or added to when ${title}`, async t => {
    const database = databaseWith(freshKeys(0, 300))
    void database.change(change => damage(change, change.get(HEAD, 'head')!))
    database.settleAll()
    const stage = new AppenderStage(database)
    stage.ask(keyFor(1, 1))
    t.equal(await stage.open(), 'INTERNAL')
    t.match(stage.fatal, [{ code: 'CHECKPOINT_INVALID' }])
    t.same([stage.published, stage.answers, database.waiting], [[], ['INTERNAL'], 0])
  })
}

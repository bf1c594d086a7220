/** The log appender with witnesses: registrations wait for their quorum, and survive its loss. */

import t from 'tap'
import type { LogHead } from '../../src/log/checkpoint.ts'
import { AppenderStage, databaseWith } from '../support/appender-stage.ts'
import { diskError, type MemoryStore } from '../support/memory-store.ts'
import { deviceOf, ExpectedLog, faultsOfStore, freshKeys, keyOf } from '../support/stored-log.ts'

const NO_ROOM = 28

/** Witnesses that cosign when the test says so. */
class HeldWitnesses {
  readonly submitted: LogHead[] = []
  isQuorumLost = false
  readonly submit = (head: LogHead): void => void this.submitted.push(head)

  get sizes(): number[] {
    return this.submitted.map(({ treeSize }) => treeSize)
  }
}

interface Witnessed {
  readonly stage: AppenderStage
  readonly witnesses: HeldWitnesses
  /** The witnesses cosign the newest head, or an earlier submitted one. */
  cosign(at?: number): Promise<void>
  lose(): Promise<void>
}

/** A server that has shown its log up to `shownSize`, as after a start. */
async function open(database: MemoryStore, shownSize?: number): Promise<Witnessed> {
  const witnesses = new HeldWitnesses()
  const stage = new AppenderStage(database, world => {
    const head = world.store.head()!
    world.publish({ ...head, treeSize: shownSize ?? head.treeSize })
    return { ...world, witnesses }
  })
  await stage.open()
  return {
    stage,
    witnesses,
    async cosign(at = -1) {
      witnesses.isQuorumLost = false
      stage.tell({ kind: 'cosigned', head: witnesses.submitted.at(at)! })
      await stage.run()
    },
    async lose() {
      witnesses.isQuorumLost = true
      stage.tell({ kind: 'quorum-lost' })
      await stage.run()
    },
  }
}

t.test(
  'a durable batch is shown and answered once it is cosigned; a later head covers the ones before',
  async t => {
    const { stage, witnesses, cosign } = await open(databaseWith(freshKeys(0, 3)))
    stage.ask(...freshKeys(3, 2))
    await stage.settle()
    stage.ask(...freshKeys(5, 1), freshKeys(3, 1)[0]!)
    await stage.settle()
    t.same(witnesses.sizes, [3, 5, 6], 'appending goes on')
    t.same([stage.published, stage.answers], [[3], [undefined, undefined, undefined, undefined]])
    await cosign()
    t.same(
      [stage.published, stage.answers],
      [
        [3, 6],
        [3, 4, 5, 3],
      ],
      'a repeated key gets the index it has',
    )
  },
)

t.test('a head that is cosigned when later batches are durable answers those before it alone', async t => {
  const { stage, witnesses, cosign } = await open(databaseWith(freshKeys(0, 3)))
  for (const at of [3, 4, 5]) {
    stage.ask(...freshKeys(at, 1))
    await stage.settle()
  }
  t.same(witnesses.sizes, [3, 4, 5, 6])
  await cosign(2)
  t.same(
    [stage.published, stage.answers],
    [
      [3, 5],
      [3, 4, undefined],
    ],
  )
  await cosign()
  t.same(
    [stage.published, stage.answers],
    [
      [3, 5, 6],
      [3, 4, 5],
    ],
  )
})

t.test(
  'without the quorum callers are refused and nothing is appended; asked again, a key has its index',
  async t => {
    const { stage, witnesses, cosign, lose } = await open(databaseWith(freshKeys(0, 3)))
    const [first, second] = freshKeys(3, 2)
    stage.ask(first!)
    await stage.settle()
    await lose()
    stage.ask(second!, first!)
    await stage.settle()
    t.same(stage.answers, ['LOG_UNAVAILABLE', 'LOG_UNAVAILABLE', 'LOG_UNAVAILABLE'])
    t.same([witnesses.sizes, stage.published], [[3, 4], [3]])
    await cosign()
    stage.ask(first!, second!)
    await stage.settle()
    await cosign()
    t.same(stage.answers.slice(3), [3, 4])
    t.same(faultsOfStore(stage.store, new ExpectedLog(freshKeys(0, 5))), [])
  },
)

t.test('a batch that becomes durable after the quorum was lost is refused, too', async t => {
  const { stage, lose } = await open(databaseWith(freshKeys(0, 3)))
  stage.ask(...freshKeys(3, 1))
  await stage.run()
  await lose()
  await stage.settle()
  t.same(stage.answers, ['LOG_UNAVAILABLE'])
})

t.test('a start with more than was shown answers and appends nothing until that is cosigned', async t => {
  const { stage, witnesses, cosign } = await open(databaseWith(freshKeys(0, 3)), 1)
  stage.ask({ device: deviceOf(2), publicKey: keyOf(2) }, ...freshKeys(3, 1))
  await stage.settle()
  t.same([witnesses.sizes, stage.published, stage.answers], [[3], [1], [undefined, undefined]])
  await cosign()
  t.equal(stage.answers[0], 2, 'the key that was logged has its index')
  await stage.settle()
  await cosign()
  t.same(
    [stage.published, stage.answers],
    [
      [1, 3, 4],
      [2, 3],
    ],
  )
})

t.test('after a failed commit it goes on from the durable entries, shown or not', async t => {
  const { stage, witnesses, cosign } = await open(databaseWith(freshKeys(0, 3)))
  const [first, second] = freshKeys(3, 2)
  stage.ask(first!)
  await stage.settle()
  stage.ask(second!)
  await stage.run()
  stage.database.refuseWaiting(1, diskError(NO_ROOM))
  await stage.settle()
  t.same(stage.answers, ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
  stage.ask(first!)
  await stage.settle()
  t.same([witnesses.sizes, stage.published, stage.fatal], [[3, 4, 4], [3], []])
  await cosign()
  t.same([stage.published, stage.answers[2]], [[3, 4], 3])
})

t.test(
  'a commit that is said to have failed and is there ends the process, though the store may be ahead',
  async t => {
    const { stage } = await open(databaseWith(freshKeys(0, 3)))
    stage.ask(...freshKeys(3, 1))
    await stage.run()
    stage.database.writeNext()
    stage.database.tellNextFailed(diskError(NO_ROOM))
    await stage.run()
    stage.ask(...freshKeys(4, 1))
    await stage.settle()
    t.match(stage.fatal, [{ message: /went on without its writer/ }])
    t.same([stage.published, stage.answers], [[3], ['STORE_UNAVAILABLE', 'INTERNAL']])
  },
)

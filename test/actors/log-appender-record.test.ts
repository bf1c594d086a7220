/**
 * The log appender with a head file: replies wait for it, crashes on either side of it, and a file that can't be
 * written.
 */

import assert from 'node:assert'
import t from 'tap'
import { SignalError } from '../../src/errors.ts'
import type { LogHead } from '../../src/log/checkpoint.ts'
import { AppenderStage, databaseWith } from '../support/appender-stage.ts'
import { diskError, type MemoryStore } from '../support/memory-store.ts'
import { deviceOf, ExpectedLog, faultsOfStore, freshKeys, keyOf } from '../support/stored-log.ts'

const NO_ROOM = 28
/** More than the pause before an actor that was dropped with work under way is built again. */
const PAUSE_MS = 300

/** A head file with writes that end when the test says so; `recorded` is its content. */
class HeldHeadFile {
  recorded: LogHead | undefined
  readonly #writes: { head: LogHead; resolve: () => void; reject: (error: Error) => void }[] = []

  get waiting(): number[] {
    return this.#writes.map(({ head }) => head.treeSize)
  }

  readonly record = (head: LogHead): Promise<void> =>
    new Promise((resolve, reject) => this.#writes.push({ head, resolve, reject }))

  write(): void {
    const { head, resolve } = this.#writes.shift()!
    this.recorded = head
    resolve()
  }

  fail(error: Error = new SignalError('STORE_UNAVAILABLE', 'no room for the head file')): void {
    this.#writes.shift()!.reject(error)
  }
}

function stageWith(database: MemoryStore): { stage: AppenderStage; file: HeldHeadFile } {
  const file = new HeldHeadFile()
  return { stage: new AppenderStage(database, world => ({ ...world, record: file.record })), file }
}

/** A log of three that has recorded and shown what it began with. */
async function openStage(): Promise<{ stage: AppenderStage; file: HeldHeadFile }> {
  const opened = stageWith(databaseWith(freshKeys(0, 3)))
  const size = opened.stage.open()
  await opened.stage.run()
  opened.file.write()
  await opened.stage.run()
  assert.equal(await size, 3)
  return opened
}

t.test('what the store holds at the start is recorded before it is shown', async t => {
  const { stage, file } = stageWith(databaseWith(freshKeys(0, 3)))
  const opened = stage.open()
  stage.ask({ device: deviceOf(1), publicKey: keyOf(1) }, ...freshKeys(3, 1))
  await stage.run()
  t.same([file.waiting, stage.published, stage.answers], [[3], [], [undefined, undefined]])
  t.equal(stage.database.waiting, 0, 'nothing is appended before that')
  file.write()
  await stage.run()
  t.equal(await opened, 3)
  t.same([stage.published, stage.answers], [[3], [1, undefined]])
  t.equal(stage.database.waiting, 1)
})

t.test('a durable batch is neither shown nor answered before it is recorded', async t => {
  const { stage, file } = await openStage()
  stage.ask(...freshKeys(3, 2))
  await stage.settle()
  t.same([file.waiting, stage.published], [[5], [3]])
  t.same(stage.answers, [undefined, undefined])
  file.write()
  await stage.run()
  t.same(
    [stage.published, stage.answers],
    [
      [3, 5],
      [3, 4],
    ],
  )
})

t.test('the next batch is written while the last one is recorded, and order is kept', async t => {
  const { stage, file } = await openStage()
  stage.ask(...freshKeys(3, 2))
  await stage.settle()
  stage.ask(...freshKeys(5, 2))
  await stage.settle()
  t.same([file.waiting, stage.published], [[5, 7], [3]])
  file.write()
  file.write()
  await stage.run()
  t.same(
    [stage.published, stage.answers],
    [
      [3, 5, 7],
      [3, 4, 5, 6],
    ],
  )
})

t.test(
  'a head file that stays broken refuses everyone, shows nothing and lets the tree grow once',
  async t => {
    const { stage, file } = await openStage()
    const [key, ...others] = freshKeys(3, 4)
    stage.ask(key!)
    await stage.settle()
    file.fail()
    await stage.run()
    t.same(stage.answers, ['STORE_UNAVAILABLE'])
    for (const again of [key!, ...others]) {
      stage.ask(again)
      await stage.settle()
      t.same(file.waiting, [4], 'the tree that was made is tried again first')
      file.fail()
      await stage.run()
    }
    t.same(stage.answers, Array(5).fill('STORE_UNAVAILABLE'), 'nor is a stored key answered with its index')
    t.same([stage.published, stage.fatal], [[3], []])
    t.equal(stage.store.head()?.treeSize, 4)

    stage.ask(key!, ...others)
    await stage.run()
    file.write()
    await stage.settle()
    file.write()
    await stage.settle()
    t.same(stage.answers.slice(5), [3, 4, 5, 6], 'once it can be written the log goes on')
    t.same([stage.published, stage.fatal], [[3, 4, 7], []])
    t.same(faultsOfStore(stage.store, new ExpectedLog(freshKeys(0, 7))), [])
  },
)

t.test(
  'when the first of two records fails both batches are refused, and both are there afterwards',
  async t => {
    const { stage, file } = await openStage()
    stage.ask(...freshKeys(3, 1))
    await stage.run()
    stage.ask(...freshKeys(4, 1))
    await stage.settle()
    t.same(file.waiting, [4, 5])
    file.fail()
    await stage.run()
    t.same(stage.answers, ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
    file.write()
    stage.ask(...freshKeys(3, 2))
    await stage.run()
    stage.world.advance(PAUSE_MS)
    await stage.run()
    t.same([stage.published, file.waiting], [[3], [5]])
    file.write()
    await stage.settle()
    t.same([stage.published, stage.answers.slice(2), stage.fatal], [[3, 5], [3, 4], []])
  },
)

t.test(
  'a crash between commit and record leaves a log that is recorded and shown at the next start',
  async t => {
    const { stage, file } = await openStage()
    stage.ask(...freshKeys(3, 2))
    await stage.settle()
    t.equal(file.recorded?.treeSize, 3)
    const next = stageWith(stage.database.crash(0))
    next.stage.ask(...freshKeys(3, 2))
    await next.stage.run()
    t.same([next.file.waiting, next.stage.published], [[5], []])
    next.file.write()
    await next.stage.run()
    t.same([next.stage.published, next.stage.answers], [[5], [3, 4]])
  },
)

t.test('a crash between record and publication leaves nothing to mend', async t => {
  const { stage, file } = await openStage()
  stage.ask(...freshKeys(3, 2))
  await stage.settle()
  file.write()
  const next = stageWith(stage.database.crash(0))
  t.equal(file.recorded?.checkpoint, next.stage.store.head()?.checkpoint)
})

t.test('a head file in other hands stops the process', async t => {
  const { stage, file } = await openStage()
  stage.ask(...freshKeys(3, 1))
  await stage.settle()
  file.fail(new SignalError('CHECKPOINT_INVALID', 'changed by someone else'))
  await stage.run()
  t.match(stage.fatal, [{ code: 'CHECKPOINT_INVALID' }])
  t.same([stage.published, stage.answers], [[3], ['STORE_UNAVAILABLE']])
})

t.test(
  'a store that went on though its commit was told to have failed stops the process here too',
  async t => {
    const { stage } = await openStage()
    stage.ask(...freshKeys(3, 1))
    await stage.run()
    stage.ask(...freshKeys(4, 1))
    await stage.run()
    stage.database.writeNext()
    stage.database.writeNext()
    stage.database.tellNextFailed(diskError(NO_ROOM))
    stage.database.tellNext()
    await stage.run()
    stage.ask(...freshKeys(5, 1))
    await stage.settle()
    t.match(stage.fatal, [{ message: /went on without its writer/ }])
    t.same(stage.published, [3])
  },
)

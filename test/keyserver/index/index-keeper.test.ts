/**
 * The keeper of the index against kills of the process that grows its map, full disks, crashes at any change, witnesses that are
 * away, and damaged rows and wrong leaves. In every durable state the map has the root of the last shown leaf, and no two output
 * checkpoints contradict. `CALLSIGN_SEED` replays a run.
 */

import t from 'tap'
import { INDEX_ROWS, INDEX_STATE, MAP } from '../../../src/keyserver/index/index-tables.ts'
import { openCheckpoint } from '../../../src/log/checkpoint.ts'
import { EMPTY_TREE } from '../../../src/log/patricia.ts'
import type { Ending, Growing, StageChoices } from '../../support/index-stage.ts'
import { IndexStage } from '../../support/index-stage.ts'
import { randomFrom, runsOf, seedOf } from '../../support/seed.ts'
import { sized } from '../../support/size.ts'
import { type DeviceKey, deviceOf, freshKeys, keyOf, SIGNER } from '../../support/stored-log.ts'

const SMALL = { leafEntries: 64, portionEntries: 150, rowsAtOnce: 60 }

function eventsOf(stage: IndexStage): string[] {
  return stage.events.map(({ event }) => event)
}

/** A stage whose index has a leaf over this many entries. */
async function stageOf(entries: number, choices: StageChoices = {}): Promise<IndexStage> {
  const stage = IndexStage.open(choices)
  if (entries > 0) stage.register(freshKeys(0, entries))
  await stage.work()
  return stage
}

t.test('the first leaf is of the log as it is, be it empty; each later one is of what came', async t => {
  const stage = await stageOf(0)
  t.match(stage.index.state, { entries: 0, leaves: 1, isHeld: false })
  t.same(stage.index.leaf(0).root, EMPTY_TREE)
  stage.register(freshKeys(0, 300))
  await stage.work()
  t.match(stage.index.state, { entries: 300, leaves: 2 })
  const { inputCheckpoint, root } = stage.index.leaf(1)
  t.equal(inputCheckpoint, stage.log.head()!.checkpoint)
  t.same(root, stage.rebuiltRoot(300))
  t.equal(openCheckpoint(inputCheckpoint, SIGNER).treeSize, 300)
  t.same(stage.faults(), [])
  t.same(eventsOf(stage), ['index-begun', 'index-checkpoint', 'index-checkpoint'])
})

t.test('without entries a leaf comes after a quarter of an hour', async t => {
  const stage = await stageOf(3)
  for (let minutes = 0; minutes < 14; minutes++) await stage.work()
  t.equal(stage.index.state?.leaves, 1)
  await stage.work()
  t.match(stage.index.state, { leaves: 2, entries: 3 })
})

t.test('a key that is logged again has all its indexes', async t => {
  const stage = await stageOf(5)
  stage.register([1, 2, 3].map(number => ({ device: deviceOf(4), publicKey: keyOf(100 + number) })))
  await stage.work()
  t.same(stage.faults(), [])
  t.same(stage.index.leaf(1).root, stage.rebuiltRoot(8))
})

t.test('many entries at once are several leaves, over checkpoints that the log signs for them', async t => {
  const stage = await stageOf(10, { sizes: SMALL })
  stage.register(freshKeys(10, 200))
  await stage.work()
  const inputs = [1, 2, 3, 4].map(
    leaf => openCheckpoint(stage.index.leaf(leaf).inputCheckpoint, SIGNER).treeSize,
  )
  t.same(inputs, [74, 138, 202, 210])
  t.same(stage.faults(), [])
})

t.test(
  'an index over a large log is built in portions, and has its first leaf behind the last of them',
  async t => {
    const stage = await stageOf(1_000, { sizes: SMALL })
    t.match(stage.index.state, { leaves: 1, entries: 1_000 })
    t.ok(eventsOf(stage).includes('index-building'))
    t.same(stage.faults(), [])
  },
)

t.test('a process that is killed costs an attempt, whenever that is', async t => {
  for (const how of ['killed before', 'killed between', 'killed behind'] as const) {
    const stage = await stageOf(100)
    stage.register(freshKeys(100, 400))
    stage.growing = () => how
    await stage.work()
    t.match(stage.index.state, { leaves: 1, entries: 100 }, how)
    t.equal(eventsOf(stage).at(-1), 'index-failed')
    stage.growing = () => 'done'
    await stage.work()
    t.match(stage.index.state, { leaves: 2, entries: 500 }, how)
    t.same(stage.faults(), [])
  }
})

t.test('while the witness is away the index stands still, and goes on with the same leaf', async t => {
  const stage = await stageOf(20, { hasWitness: true })
  stage.register(freshKeys(20, 30))
  let asked = 0
  stage.outside.isAway = () => ++asked < 5
  await stage.work()
  t.equal(asked, 5)
  t.match(stage.index.state, { leaves: 2, entries: 50 })
  t.match(stage.index.shownHead()?.checkpoint, /w\.example/)
  t.same(stage.faults(), [])
})

t.test('where a witness has cosigned leaves that the store lacks, no first leaf is signed', async t => {
  const stage = IndexStage.open({ hasWitness: true })
  stage.outside.cosigned = { size: 5, root: EMPTY_TREE }
  stage.register(freshKeys(0, 20))
  await stage.work()
  t.match(stage.keeper.figures.held, /witness w: it has cosigned size 5/)
  t.equal(stage.index.head(), undefined)
})

t.test(
  'two servers with one key of the index: the second one to sign is held, and shows no other leaf',
  async t => {
    const byRecord = await stageOf(20, { hasRecord: true })
    byRecord.outside.isRecordForeign = true
    const byWitness = await stageOf(20, { hasWitness: true })
    byWitness.outside.cosigned = { size: 5, root: EMPTY_TREE }
    for (const [stage, reason] of [
      [byRecord, /changed by someone else/],
      [byWitness, /another output log/],
    ] as const) {
      stage.register(freshKeys(20, 30))
      await stage.work()
      t.match(stage.keeper.figures.held, reason)
      t.equal(stage.index.shownHead()?.treeSize, 1)
      t.ok(stage.index.state?.isHeld)
    }
  },
)

t.test('without its state the index is held, and its leaves stay', async t => {
  const stage = await stageOf(20)
  const removed = stage.database.change(change => change.remove(INDEX_STATE, MAP))
  stage.database.settleAll()
  await removed
  stage.restart()
  await stage.work()
  t.match(stage.keeper.figures.held, /has leaves, and no state/)
  t.equal(stage.index.head()?.treeSize, 1)
})

/** Changes one row of the map: its `at`th, where some octet in the middle is another. */
async function damageRow(stage: IndexStage, at: number): Promise<void> {
  const { database } = stage
  const rows = database.view(view => [...view.range(INDEX_ROWS)])
  const { key, value } = rows.at(at)!
  const damaged = Uint8Array.from(value)
  damaged[Math.floor(damaged.length / 2)]! ^= 1
  const changed = database.change(change => change.put(INDEX_ROWS, key, damaged))
  database.settleAll()
  await changed
}

t.test('a wrong row is found, and the map is built again from the entries', async t => {
  // A start looks at the first one; a step finds the rest on its way.
  for (const at of [0, 1, -1]) {
    const stage = await stageOf(2_000, { sizes: SMALL })
    await damageRow(stage, at)
    stage.restart()
    stage.register(freshKeys(2_000, 600))
    await stage.work()
    t.match(stage.index.state, { entries: 2_600, isHeld: false }, `row ${at}`)
    t.ok(eventsOf(stage).includes('index-damaged') && eventsOf(stage).includes('index-rebuilt'))
    t.same(stage.faults(), [])
  }
})

t.test('a leaf with a wrong root is never gone on from', async t => {
  for (const hasWitness of [false, true]) {
    const stage = await stageOf(40, { hasWitness })
    stage.register(freshKeys(40, 10))
    stage.wrongRoots = true
    await stage.work()
    stage.wrongRoots = false
    stage.restart()
    await stage.work()
    t.match(stage.index.state, { isHeld: true })
    const { leaves } = { leaves: stage.index.head()!.treeSize }
    stage.register(freshKeys(50, 10))
    await stage.work()
    t.equal(stage.index.head()?.treeSize, leaves, 'nothing is appended')
    t.match(stage.keeper.figures.held, /another root/)
  }
})

interface Chances {
  readonly random: () => number
  readonly below: (bound: number) => number
}

function chancesOf(seed: number): Chances {
  const random = randomFrom(seed)
  return { random, below: bound => Math.floor(random() * bound) }
}

/** Keys of new devices, and now and then one more of an earlier one. */
function someKeys(stage: IndexStage, { below }: Chances): DeviceKey[] {
  const first = stage.log.head()!.treeSize
  return Array.from({ length: 1 + below(below(3) === 0 ? 400 : 30) }, (_, at) => ({
    device: deviceOf(below(4) === 0 ? below(first + at + 1) : first + at),
    publicKey: keyOf(first + at),
  }))
}

/** One run: entries in any batches, and harm at any moment. Returns the faults of the first state that has any. */
async function run(seed: number): Promise<string[]> {
  const chances = chancesOf(seed)
  const { random, below } = chances
  const stage = IndexStage.open({ hasRecord: below(2) === 0, hasWitness: below(2) === 0, sizes: SMALL })
  for (let round = 0; round < 25; round++) {
    const harm = below(3) === 0 ? 0 : random() * 0.5
    const draw = <Kind>(usual: Kind, others: readonly Kind[]) =>
      random() < harm ? others[below(others.length)]! : usual
    stage.ending = () => draw<Ending>('durable', ['no room', 'crash before', 'crash behind'])
    stage.growing = () => draw<Growing>('done', ['killed before', 'killed between', 'killed behind'])
    stage.outside.isAway = () => random() < harm
    if (below(3) > 0) stage.register(someKeys(stage, chances))
    const lives = await stage.work()
    const faults = stage.faults()
    if (faults.length > 0) return [`round ${round}`, ...faults]
    if (lives && below(4) === 0) stage.restart()
  }
  stage.ending = () => 'durable'
  stage.growing = () => 'done'
  stage.outside.isAway = () => false
  stage.restart()
  // A leaf that waited, then one of what came since.
  for (let ticks = 0; ticks < 2; ticks++) await stage.work()
  const { entries, isHeld } = stage.index.state!
  const behind =
    entries === stage.log.head()!.treeSize
      ? []
      : [
          `the map has ${entries} entries at the end: ${JSON.stringify(stage.events.slice(-6))} ${JSON.stringify(stage.keeper.figures)}`,
        ]
  return [...stage.faults(), ...behind, ...(isHeld ? ['held', stage.keeper.figures.held!] : [])]
}

const RUNS = runsOf('CALLSIGN_INDEX_RUNS', { short: 6, long: 60 })

t.test(`${RUNS} seeded runs`, sized(), async t => {
  for (let at = 0; at < RUNS; at++) {
    const seed = seedOf()
    const faults = await run(seed).catch(error => [String(error?.stack ?? error)])
    if (faults.length > 0) return void t.fail(`CALLSIGN_SEED=${seed}: ${faults.join('; ')}`)
  }
  t.pass('no state had a fault')
})

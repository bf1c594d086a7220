/** The process that grows the map, over a store on disk: what it gives, when it ends, and what a kill at any moment costs. */

import t, { type Test } from 'tap'
import type { GrowRequest } from '../../../src/keyserver/index/index-growth.ts'
import { IndexProcess, type IndexProcessTimes } from '../../../src/keyserver/index/index-process.ts'
import { IndexStore, type MapRows } from '../../../src/keyserver/index/index-store.ts'
import { LogStore } from '../../../src/keyserver/log-store.ts'
import { rootHash } from '../../../src/log/tree.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { INDEX_SIGNER } from '../../support/filled-index.ts'
import { RebuiltMap } from '../../support/index-faults.ts'
import { createLog, ExpectedLog, freshKeys, LogWriter } from '../../support/stored-log.ts'

const ENTRIES = 8_000

interface Stage {
  readonly log: LogStore
  readonly index: IndexStore
  readonly indexer: IndexProcess
  readonly request: (from: number, to: number) => GrowRequest
  readonly killed: () => number
}

/** A log, an index without a map, and the process. */
async function stageOf(t: Test, times: Partial<IndexProcessTimes> = {}): Promise<Stage> {
  const folder = t.testdir()
  const database = LmdbStore.open(folder)
  const log = new LogStore(database)
  await createLog(log)
  await new LogWriter(log, new ExpectedLog()).append(freshKeys(0, ENTRIES))
  const index = new IndexStore(database)
  await index.begin(INDEX_SIGNER.name, [], [])
  let killed = 0
  const onKilled = () => {
    killed += 1
    database.dropDeadReaders()
  }
  const indexer = new IndexProcess(folder, onKilled, times)
  t.teardown(async () => {
    await indexer.close()
    await database.close()
  })
  const request = (from: number, to: number): GrowRequest => ({
    ...{ from, to, mapRoot: undefined },
    logRoot: rootHash(to, log.readHashes),
  })
  return { log, index, indexer, request, killed: () => killed }
}

/** Resolves when that process is no more. */
async function gone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0)
    } catch {
      return
    }
    await new Promise(resolve => setImmediate(resolve))
  }
}

t.test(
  'a step gives the root and all rows, in portions, and the next one sees the rows that were written',
  async t => {
    const { log, index, indexer, request } = await stageOf(t)
    const rebuilt = new RebuiltMap()
    for (const [from, to] of [
      [0, 6_000],
      [6_000, ENTRIES],
    ] as const) {
      const portions: MapRows[] = []
      const end = await indexer.grow(request(from, to), async rows => void portions.push(rows))
      const root = rebuilt.rootAt(to, at => log.entryVolatile(at))
      t.match(end, { kind: 'grown' })
      t.same(end.kind === 'grown' && Buffer.from(end.root), Buffer.from(root))
      t.ok(portions.length > 1)
      await index.build(portions.flat(), to)
      t.same(Buffer.from(index.mapRoot()), Buffer.from(root))
    }
    await t.rejects(
      indexer.grow(request(0, 10), () => undefined),
      { message: /8000 entries, not 0/ },
    )
  },
)

t.test('entries that are not those of the signed tree are never grown', async t => {
  const { indexer, request } = await stageOf(t)
  const { logRoot } = request(0, 999)
  const end = await indexer.grow({ ...request(0, 1_000), logRoot }, () => undefined)
  t.match(end, { kind: 'log damaged', reason: /entries 0 to 999 are not those of its signed tree/ })
})

t.test('a kill between two portions costs the step, and the next one has a new process', async t => {
  const { indexer, request, killed } = await stageOf(t)
  await t.rejects(
    indexer.grow(request(0, ENTRIES), async () => {
      const { pid } = indexer
      if (pid === undefined) return
      process.kill(pid, 'SIGKILL')
      await gone(pid)
    }),
    { code: 'STORE_UNAVAILABLE' },
  )
  t.equal(killed(), 1)
  t.match(await indexer.grow(request(0, ENTRIES), () => undefined), { kind: 'grown' })
})

t.test('a process that hangs is killed', async t => {
  const { indexer, request } = await stageOf(t, { answerMs: 300 })
  const stuck = indexer.grow(request(0, ENTRIES), () => undefined)
  process.kill(indexer.pid!, 'SIGSTOP')
  await t.rejects(stuck, { code: 'STORE_UNAVAILABLE', message: /SIGKILL/ })
})

t.test('a process without work ends, and takes no memory', async t => {
  const { indexer, request, killed } = await stageOf(t, { idleMs: 1 })
  await indexer.grow(request(0, 10), () => undefined)
  const { pid } = indexer
  if (pid !== undefined) await gone(pid)
  t.equal(killed(), 0, 'by itself')
  t.match(await indexer.grow(request(0, ENTRIES), () => undefined), { kind: 'grown' })
})

t.test('rows that can not be written end the step', async t => {
  const { indexer, request } = await stageOf(t)
  const full = new Error('no room')
  await t.rejects(
    indexer.grow(request(0, ENTRIES), () => Promise.reject(full)),
    full,
  )
  t.match(await indexer.grow(request(0, ENTRIES), () => undefined), { kind: 'grown' })
})

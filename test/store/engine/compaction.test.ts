/** Compaction: when it happens, that nothing removed is left and nothing else is lost, and what each failure leaves. */

import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { askForCompaction, compactStore } from '../../../src/store/engine/compaction.ts'
import { indexKey } from '../../../src/store/engine/keys.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { readSpace, type StoreSpace, walkPages } from '../../../src/store/engine/page-walk.ts'
import { cannotTrace } from '../../support/disk-trace.ts'
import { plainBytesTable } from '../../support/plain-tables.ts'
import { builtProgram, runProgram } from '../../support/programs.ts'

const VALUES = plainBytesTable('values')
const [ROWS, KEPT_EVERY] = [3_000, 20]
const REMOVED = 'removed-value-'
const KEPT = 'kept-value-'

const isKept = (at: number) => at % KEPT_EVERY === 0
const contentOf = (at: number) => Buffer.from(`${isKept(at) ? KEPT : REMOVED}${at}.`.padEnd(400, 'x'))

interface Filled {
  readonly folder: string
  readonly file: string
}

/** Most rows were removed again, so that most pages are free; `isOdd` says what the last transaction's number is. */
async function fill(t: Test, { isFree = true, isOdd = false } = {}): Promise<Filled> {
  const folder = t.testdir()
  const file = join(folder, 'store', 'data.mdb')
  const database = LmdbStore.open(folder)
  await database.change(change => {
    for (let at = 0; at < ROWS; at++) change.put(VALUES, indexKey(at), contentOf(at))
  })
  if (isFree) {
    await database.change(change => {
      for (let at = 0; at < ROWS; at++) if (!isKept(at)) change.remove(VALUES, indexKey(at))
    })
  }
  while ((readSpace(file).transaction % 2 === 1) !== isOdd)
    await database.change(change => change.put(VALUES, indexKey(0), contentOf(0)))
  await database.close()
  return { folder, file }
}

/** Undefined where the store has each row that was kept, and no other. */
async function faultOf({ folder, file }: Filled): Promise<string | undefined> {
  walkPages(file)
  const database = LmdbStore.open(folder)
  try {
    return database.view(view => {
      for (let at = 0; at < ROWS; at += KEPT_EVERY) {
        if (!contentOf(at).equals(view.get(VALUES, indexKey(at)) ?? Buffer.alloc(0))) return `row ${at}`
      }
      const count = view.count(VALUES)
      return count === ROWS / KEPT_EVERY ? undefined : `${count} rows`
    })
  } finally {
    await database.close()
  }
}

const has = (file: string, text: string) => readFileSync(file).includes(text)

function isSpace(file: string, space: StoreSpace): boolean {
  try {
    return isDeepStrictEqual(readSpace(file), space)
  } catch {
    return false
  }
}

const program = (...args: readonly string[]) => [builtProgram('test/support/compaction-program'), ...args]

/** The answer of the other process. */
async function saidBy(...args: readonly string[]): Promise<unknown> {
  const { stdout } = await runProgram(process.execPath, program(...args))
  return JSON.parse(stdout)
}

t.test('a store that is mostly free becomes small, and has no octets of removed rows', async t => {
  for (const isOdd of [false, true]) {
    const filled = await fill(t, { isOdd })
    const bytesBefore = statSync(filled.file).size
    t.ok(has(filled.file, REMOVED), 'it had')
    const compaction = await compactStore(filled.folder)
    const bytesAfter = statSync(filled.file).size
    t.same(compaction, { kind: 'compacted', bytesBefore, bytesAfter })
    t.ok(bytesAfter < bytesBefore / 5, `${bytesBefore} to ${bytesAfter}`)
    t.equal(await faultOf(filled), undefined)
    t.notOk(has(filled.file, REMOVED))
    t.equal(statSync(filled.file).mode & 0o777, 0o600)
    t.same(readdirSync(join(filled.folder, 'store')).toSorted(), ['data.mdb', 'lock.mdb'])
    t.equal(await compactStore(filled.folder), undefined, 'once is enough')
  }
})

t.test('one that is mostly in use stays, unless that was asked for, once', async t => {
  const filled = await fill(t, { isFree: false })
  t.equal(await compactStore(filled.folder), undefined)
  const database = LmdbStore.open(filled.folder)
  await database.change(change => {
    for (let at = 0; at < ROWS / 4; at++) change.remove(VALUES, indexKey(at))
  })
  await database.close()
  const { pages, freePages } = readSpace(filled.file)
  t.ok(freePages > 0 && freePages * 2 < pages, `${freePages} of ${pages} are free`)
  t.equal(await compactStore(filled.folder), undefined)
  await askForCompaction(filled.folder)
  t.ok(has(filled.file, `${REMOVED}501.`))
  t.match(await compactStore(filled.folder), { kind: 'compacted' })
  t.notOk(has(filled.file, `${REMOVED}501.`))
  t.equal(await compactStore(filled.folder), undefined)
})

t.test('where there is no store, or an empty one, there is nothing to do', async t => {
  const folder = t.testdir()
  t.equal(await compactStore(join(folder, 'none')), undefined)
  const database = LmdbStore.open(folder)
  await database.close()
  await askForCompaction(folder)
  t.match(await compactStore(folder), { kind: 'compacted' })
  const again = LmdbStore.open(folder)
  t.notOk(again.hasRows)
  await again.close()
})

t.test(
  'a kill at any step leaves a whole store; the next start leaves it so, and the one after goes on',
  async t => {
    for (const step of ['walked', 'copying', 'copied', 'synced', 'compared', 'renamed']) {
      const filled = await fill(t)
      t.match(
        await runProgram(process.execPath, program(filled.folder, 'compact', step)),
        { code: 'SIGKILL' },
        step,
      )
      t.equal(await faultOf(filled), undefined, step)
      const isThere = existsSync(join(filled.folder, 'store', 'compacting'))
      if (isThere)
        t.match(await compactStore(filled.folder), { kind: 'left', reason: /next one tries again/ }, step)
      t.equal(isThere, step !== 'walked')
      const isDone = step === 'renamed'
      t.match((await compactStore(filled.folder))?.kind, isDone ? undefined : 'compacted', step)
      t.equal(await faultOf(filled), undefined, step)
      t.notOk(has(filled.file, REMOVED), step)
    }
  },
)

t.test(
  'the copy is on disk before it takes the store’s place, and the place before it is used',
  { skip: cannotTrace() },
  async t => {
    const { folder } = await fill(t)
    const trace = join(folder, 'trace')
    const options = ['-f', '-y', '-e', 'trace=fsync,rename', '-e', 'signal=none', '-o', trace]
    execFileSync('strace', [...options, process.execPath, ...program(folder, 'compact')])
    const calls = readFileSync(trace, 'utf8')
      .split('\n')
      .flatMap(line => /(fsync|rename)\((?:\d+<|")([^>"]*)/.exec(line)?.slice(1).join(' ') ?? [])
    const order = [
      `fsync ${folder}/store/compacting/data.mdb`,
      `rename ${folder}/store/compacting/data.mdb`,
      `fsync ${folder}/store`,
    ]
    t.same(
      calls.filter(call => order.includes(call)),
      order,
    )
  },
)

t.test('without room for the copy the store stays, with a reason', async t => {
  const filled = await fill(t, { isOdd: true })
  const before = readFileSync(filled.file)
  const small = ['-c', 'ulimit -f 40; exec "$@"', '-', process.execPath]
  const { stdout } = await runProgram('/bin/bash', [...small, ...program(filled.folder, 'compact')])
  t.match(JSON.parse(stdout), { kind: 'left', reason: /./ })
  t.ok(readFileSync(filled.file).equals(before))
  t.notOk(existsSync(join(filled.folder, 'store', 'compacting')))
  t.equal(await faultOf(filled), undefined)
})

t.test('a damaged store stays as it is', async t => {
  const filled = await fill(t)
  const bytes = readFileSync(filled.file)
  const space = readSpace(filled.file)
  const descriptor = openSync(filled.file, 'r+')
  for (let page = 8_192; page < bytes.length; page += 4_096) {
    writeSync(descriptor, Buffer.alloc(8, 0xff), 0, 8, page)
    // The list of free pages says that there is something to do.
    if (!isSpace(filled.file, space)) writeSync(descriptor, bytes, page, 8, page)
  }
  closeSync(descriptor)
  const before = readFileSync(filled.file)
  t.match(await compactStore(filled.folder), { kind: 'left', reason: /page \d+ .* is damaged/ })
  t.ok(readFileSync(filled.file).equals(before))
})

t.test('while another process writes to the store it is refused', async t => {
  const filled = await fill(t)
  const database = LmdbStore.open(filled.folder)
  t.same(await saidBy(filled.folder, 'compact'), { code: 'STORE_UNAVAILABLE' })
  await database.close()
  t.equal(await faultOf(filled), undefined)
})

t.test('a process that reads the store keeps what it sees, and the next writer has every row', async t => {
  for (const isOdd of [false, true]) {
    const filled = await fill(t, { isOdd })
    const reader = LmdbStore.openReadOnly(filled.folder)
    reader.openTables()
    const kept = () => reader.view(view => view.count(VALUES))
    t.equal(kept(), ROWS / KEPT_EVERY)
    t.match(await saidBy(filled.folder, 'compact'), { kind: 'compacted' })
    t.same(await saidBy(filled.folder, 'add'), { rows: ROWS / KEPT_EVERY })
    t.same(await saidBy(filled.folder, 'add'), { rows: ROWS / KEPT_EVERY + 1 })
    t.equal(kept(), ROWS / KEPT_EVERY, 'of the old file')
    await reader.close()
  }
})

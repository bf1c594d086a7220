/** The store itself: its changes and its lock between processes. A disk without room: `flows/disk-full.test.ts`. */

import { type ChildProcess, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Happening } from '../../../src/domain/happening.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { SignalError } from '../../../src/errors.ts'
import { readChangedRows } from '../../../src/store/engine/changed-rows.ts'
import { LmdbChange } from '../../../src/store/engine/lmdb-change.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import type { Change } from '../../../src/store/engine/store.ts'
import type { Table } from '../../../src/store/engine/table.ts'
import { WatchedCache } from '../../../src/store/engine/watched-cache.ts'
import { hasRoom, isEchoOfFailedCommit, isOutOfSpace } from '../../../src/store/engine/write-failure.ts'
import { plainBytesTable, plainTable, plainTextKeyTable } from '../../support/plain-tables.ts'
import { builtProgram, spawnBound } from '../../support/programs.ts'

const NAMES = plainTextKeyTable<number>('names')
const ROWS = plainTable<unknown>('rows', [['a', 'b']])
const BYTES = plainBytesTable('bytes')
/** The holder of a store counts there. */
const COUNTERS = plainTextKeyTable<number>('counter')
const FEW_SHAPES = plainTable<object>('shaped', [['a', 'b']])
const MORE_SHAPES = plainTable<object>('shaped', [['a', 'b'], ['c'], ['d']])
const WATCHED = plainTable<number>('watched')
const UNWATCHED = plainTable<number>('unwatched')

function readAll<Value>(database: LmdbStore, table: Table<Value>, keys: readonly Uint8Array[]): unknown[] {
  return database.view(view => keys.map(key => view.get(table, key)))
}

function countOf(database: LmdbStore, name: string): number | undefined {
  return database.view(view => view.get(COUNTERS, name))
}

function openStore(t: Test, folder = t.testdir()): LmdbStore {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  return database
}

t.test('a file that was cut short as it was made is refused, and left as it is', async t => {
  for (const name of ['store', 'lock']) {
    const folder = t.testdir({ [name]: { 'data.mdb': 'x'.repeat(1_024) } })
    const path = join(folder, name, 'data.mdb')
    const advice =
      name === 'store' ? 'restore a backup' : `nothing is kept there: remove ${join(folder, name)} while`
    const refusal = {
      code: 'STORE_UNAVAILABLE',
      message: new RegExp(`^${path} has 1024 bytes.*${advice}`),
    }
    t.throws(() => LmdbStore.open(folder), refusal)
    if (name === 'store') t.throws(() => LmdbStore.openReadOnly(folder), refusal)
    t.equal(statSync(path).size, 1_024)
  }
})

t.test('a file without LMDB’s beginning is refused, and left as it is', async t => {
  const made = t.testdir()
  await LmdbStore.open(made).close()
  const whole = readFileSync(join(made, 'store', 'data.mdb'))
  const pageBytes = whole.readUInt32LE(48)
  const changed = (at: number, ...bytes: number[]) =>
    Buffer.from(whole).fill(Buffer.from(bytes), at, at + bytes.length)
  const broken = {
    text: Buffer.from('not a store'.repeat(1_000)),
    zeros: Buffer.alloc(whole.length),
    'first page': changed(0, ...Buffer.alloc(pageBytes, 7)),
    'second page': changed(pageBytes, ...Buffer.alloc(pageBytes, 7)),
    flags: changed(18, 0),
    magic: changed(24, 0xdf),
    version: changed(28, 1),
    'page size': changed(48, 7, 7, 7, 7),
    'no page size': changed(48, 0, 0, 0, 0),
    'no page size in the second page': changed(pageBytes + 48, 0, 0, 0, 0),
  }
  for (const [what, bytes] of Object.entries(broken)) {
    const folder = t.testdir({ store: { 'data.mdb': bytes } })
    const path = join(folder, 'store', 'data.mdb')
    const refusal = {
      code: 'CHECKPOINT_INVALID',
      message: new RegExp(`^${path} does not begin as a store does.*restore a backup`),
    }
    t.throws(() => LmdbStore.open(folder), refusal, what)
    t.throws(() => LmdbStore.openReadOnly(folder), refusal, what)
    t.ok(readFileSync(path).equals(bytes), what)
  }
  const folder = t.testdir({ lock: { 'data.mdb': broken.text } })
  const message = /nothing is kept there: remove .*lock while/
  t.throws(() => LmdbStore.open(folder), { code: 'STORE_UNAVAILABLE', message })
})

t.test(
  'nobody else on the machine reads the store, also in a folder that everybody may look into',
  async t => {
    const folder = t.testdir()
    chmodSync(folder, 0o755)
    openStore(t, folder)
    t.equal(statSync(join(folder, 'store')).mode & 0o077, 0)
  },
)

t.test('a change is read after it and there when the store is opened again', async t => {
  const folder = t.testdir()
  const database = LmdbStore.open(folder)
  const key = Uint8Array.of(1)
  const read = (from: LmdbStore) =>
    from.view(view => [view.get(BYTES, key), view.get(ROWS, key), view.get(NAMES, 'name')])
  const writing = database.change(change => {
    change.put(BYTES, key, Uint8Array.of(2, 3))
    change.put(ROWS, key, { size: 4 })
    change.put(NAMES, 'name', 5)
  })
  t.same(read(database), [undefined, undefined, undefined], 'nothing is read before it')
  await writing
  t.same(read(database), [Buffer.of(2, 3), { size: 4 }, 5])
  await database.close()
  t.same(read(openStore(t, folder)), [Buffer.of(2, 3), { size: 4 }, 5])
})

t.test('changes end in the order of their calls, and each sees the ones before it', async t => {
  const database = openStore(t)
  const seen: (number | undefined)[] = []
  const ended: number[] = []
  const changes = Array.from({ length: 50 }, async (_, n) => {
    if (n % 7 === 6) await setImmediate()
    await database.change(change => {
      seen.push(change.get(COUNTERS, 'n') ?? 0)
      change.put(COUNTERS, 'n', seen.length)
    })
    ended.push(seen.length)
  })
  await Promise.all(changes)
  t.same(
    seen,
    seen.map((_, at) => at),
  )
  t.same(
    ended,
    ended.toSorted((a, b) => a - b),
  )
})

t.test(
  'what waits for the changes so far hears when they have ended, though more come all the time',
  async t => {
    const database = openStore(t)
    await database.settled()
    const ended: string[] = []
    const count = (change: Change) => change.put(NAMES, 'count', 1)
    const refuse = () => {
      throw new Error('no')
    }
    let isOver = false
    const again = (): Promise<void> => database.change(count).then(() => (isOver ? undefined : again()))
    const more = again()
    const written = database.change(count).then(() => ended.push('written'))
    const refused = database.change(refuse).catch(() => ended.push('refused'))
    await database.settled()
    t.same(ended, ['written', 'refused'])
    isOver = true
    await Promise.all([more, written, refused])
  },
)

t.test('what a change throws before it writes is its reason, and nothing is written', async t => {
  const database = openStore(t)
  const reason = new Error('not this one')
  const results = await Promise.allSettled([
    database.change(change => change.put(COUNTERS, 'a', 1)),
    database.change(() => {
      throw reason
    }),
    database.change(change => change.put(COUNTERS, 'b', 2)),
  ])
  t.same(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  t.equal(results[1]!.status === 'rejected' && results[1]!.reason, reason)
  t.same([countOf(database, 'a'), countOf(database, 'b')], [1, 2])
})

t.test('a full disk is distinguished from other failures, however deep its reason is', async t => {
  const errno = (code: unknown) => Object.assign(new Error('reason'), { code })
  const wrapped = (cause: unknown) =>
    new SignalError('STORE_UNAVAILABLE', 'the store could not write', { cause })
  const isRoom = (error: unknown) => isOutOfSpace(error)
  t.ok([28, 122, 27, 5, -30_792].map(errno).every(isRoom), 'ENOSPC, EDQUOT, EFBIG, EIO, MDB_MAP_FULL')
  t.ok(isOutOfSpace(wrapped(wrapped(errno(28)))))
  const withLostReason = Object.assign(new Error('Commit failed'), { commitError: new Promise(() => {}) })
  t.ok(isOutOfSpace(wrapped(withLostReason)), 'what lmdb-js gives no reason for')
  const others = [
    undefined,
    null,
    'ENOSPC',
    { code: 28 },
    new Error('x'),
    errno('ENOSPC'),
    errno(13),
    errno(-30_796),
  ]
  t.notOk(others.some(isRoom))
  t.notOk(others.map(wrapped).some(isRoom))
})

t.test('a failed write is distinguished from a full disk by trying whether the disk takes more', async t => {
  const folder = t.testdir()
  openStore(t, folder)
  const store = join(folder, 'store')
  t.ok(hasRoom(store))
  t.same(readdirSync(store).sort(), ['data.mdb', 'lock.mdb'], 'nothing is left behind')
  const program = builtProgram('src/store/engine/write-failure')
  const look = `const { hasRoom } = await import('${program}'); console.log(hasRoom('${store}'))`
  const limited = ['-c', 'ulimit -f 100; exec "$@"', '-', process.execPath, '-e', look]
  t.equal(String(execFileSync('bash', limited)), 'false\n')
  t.same(readdirSync(store).sort(), ['data.mdb', 'lock.mdb'])
})

t.test('only what lmdb-js rejects beside a failed commit is taken for its echo', async t => {
  t.ok(isEchoOfFailedCommit(Object.assign(new Error('Commit failed'), { commitError: Promise.resolve() })))
  t.ok(isEchoOfFailedCommit(Object.assign(new Error('no space'), { code: 28 })))
  for (const error of [new Error('x'), undefined, { commitError: 1 }, new TypeError('y')]) {
    t.notOk(isEchoOfFailedCommit(error))
  }
})

interface Holder {
  readonly process: ChildProcess
  /** Its next line. */
  next(): Promise<string>
}

/** Starts a process that opens the store on command. */
async function startHolder(t: Test, folder: string): Promise<Holder> {
  const child = spawnBound(process.execPath, [builtProgram('test/support/store-holder'), folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => (await lines.next()).value ?? 'ended'
  await next()
  return { process: child, next }
}

async function openIn({ process, next }: Holder): Promise<string> {
  process.stdin!.write('go\n')
  return next()
}

t.test('a second process is refused, and let in when the first has ended', async t => {
  const folder = t.testdir()
  const holder = await startHolder(t, folder)
  t.equal(await openIn(holder), 'open')
  t.throws(() => LmdbStore.open(folder), { code: 'STORE_UNAVAILABLE', message: `${holder.process.pid}` })
  const second = await startHolder(t, folder)
  t.match(
    await openIn(second),
    new RegExp(`^refused STORE_UNAVAILABLE: .*process ${holder.process.pid} on host`),
  )
  holder.process.stdin!.end()
  await once(holder.process, 'exit')
  const database = openStore(t, folder)
  t.ok(countOf(database, 'count')! > 0, 'with all that the first wrote')
})

t.test('a second process is let in only when a killed one writes no more', async t => {
  const folder = t.testdir()
  const refused: number[] = []
  const written: [number | undefined, number | undefined][] = []
  for (let round = 0; round < 5; round++) {
    const holder = await startHolder(t, folder)
    t.equal(await openIn(holder), 'open')
    const exit = once(holder.process, 'exit')
    holder.process.kill('SIGKILL')
    const { database, refusals } = await openAsSoonAsPossible(folder)
    const atOnce = countOf(database, 'count')
    await exit
    await setImmediate()
    written.push([atOnce, countOf(database, 'count')])
    refused.push(refusals)
    await database.close()
  }
  t.same(
    written.map(([atOnce]) => atOnce),
    written.map(([, later]) => later),
  )
  t.comment(`refused ${refused} times before`)
})

async function openAsSoonAsPossible(folder: string): Promise<{ database: LmdbStore; refusals: number }> {
  for (let refusals = 0; ; refusals++) {
    try {
      return { database: LmdbStore.open(folder), refusals }
    } catch (error) {
      if ((error as SignalError).code !== 'STORE_UNAVAILABLE' || refusals === REFUSALS_MAX) throw error
      await setImmediate()
    }
  }
}

/** A killed process is gone after a few of them. */
const REFUSALS_MAX = 10_000

t.test('of two processes that start together at most one gets in', async t => {
  const folder = t.testdir()
  const answers: string[][] = []
  for (let round = 0; round < 4; round++) {
    const holders = await Promise.all([startHolder(t, folder), startHolder(t, folder)])
    answers.push(await Promise.all(holders.map(openIn)))
    for (const { process } of holders) process.kill('SIGKILL')
    await Promise.all(
      holders.map(({ process }) => process.exitCode ?? process.signalCode ?? once(process, 'exit')),
    )
  }
  t.notOk(answers.some(([a, b]) => a === 'open' && b === 'open'))
  t.comment(answers)
})

t.test('records of any shape come back, also after one with names in the position of a shape', async t => {
  const folder = t.testdir()
  const records = [{ a: 1, b: 2n }, { c: 'x' }, { b: 2n, a: 1 }, { d: [{ a: 3, b: 4n }] }, { c: 'y' }]
  const keys = records.map((_, at) => Uint8Array.of(at))
  const first = LmdbStore.open(folder)
  await first.change(change => {
    for (const [at, record] of records.entries()) change.put(FEW_SHAPES, keys[at]!, record)
  })
  t.same(readAll(first, FEW_SHAPES, keys), records)
  await first.close()
  const second = LmdbStore.open(folder)
  t.same(readAll(second, MORE_SHAPES, keys), records)
  const added = records.map((_, at) => Uint8Array.of(100 + at))
  await second.change(change => {
    for (const [at, key] of added.entries()) change.put(MORE_SHAPES, key, records[at]!)
  })
  await second.close()
  const third = openStore(t, folder)
  t.same(readAll(third, MORE_SHAPES, keys), records)
  t.same(
    readAll(
      third,
      MORE_SHAPES,
      keys.flatMap(key => [key, ...added]),
    ),
    records.flatMap(record => [record, ...records]),
    'after each with a definition of its own those by shapes',
  )
})

t.test(
  'whoever watches a table hears of its rows before the change settles, also when it is refused',
  async t => {
    const database = LmdbStore.open(t.testdir())
    t.teardown(() => database.close())
    const heard: string[] = []
    const begun: string[] = []
    database.watch(WATCHED, {
      onWriting: key => begun.push(Buffer.from(key).toString()),
      onSettled: key => heard.push(Buffer.from(key).toString()),
      onReplaced: () => undefined,
    })
    const key = (text: string) => Buffer.from(text)
    const written = database.change(change => {
      change.put(WATCHED, key('a'), 1)
      change.put(UNWATCHED, key('b'), 1)
      change.remove(WATCHED, key('c'))
      t.same([begun, heard], [['a', 'c'], []])
    })
    t.same(heard, [], 'nobody hears of what is not durable')
    await written
    t.same(heard, ['a', 'c'])
    const refused = database.change(change => {
      change.put(WATCHED, key('d'), 1)
      throw new Error('refused')
    })
    await t.rejects(refused, { message: 'refused' })
    t.same(new Set(begun), new Set(['a', 'c', 'd']))
    t.same(heard, begun, 'a change that is taken back settles, too')
  },
)

t.test(
  'a change that throws leaves every row as it was, and its neighbours in the same transaction',
  async t => {
    const database = openStore(t)
    const key = (text: string) => Buffer.from(text)
    await database.change(change => {
      change.put(ROWS, key('kept'), { a: 1, b: 'two' })
      change.put(ROWS, key('odd'), { c: [1n, 2n] })
      change.put(BYTES, key('kept'), Buffer.from('bytes'))
      change.put(NAMES, 'kept', 1)
    })
    const before = contentOf(database)
    const heard: Happening[] = []
    for (const kind of ['inbox-dropped', 'outbox-news', 'codes-guessed'] as const) {
      database.subscribe(kind, happening => heard.push(happening))
    }
    const reason = new Error('in the middle')
    const results = await Promise.allSettled([
      database.change(change => change.put(NAMES, 'before', 1)),
      database.change(change => {
        change.put(ROWS, key('kept'), { a: 2, b: 'three' })
        change.put(ROWS, key('kept'), { a: 3, b: 'four' })
        change.remove(ROWS, key('odd'))
        change.put(ROWS, key('new'), { b: 1 })
        change.remove(ROWS, key('new'))
        change.remove(BYTES, key('kept'))
        change.put(BYTES, key('new'), Buffer.from('new'))
        change.put(NAMES, 'kept', 2)
        change.happened({ kind: 'outbox-news', lane: 'mail', firstKey: key('x') })
        change.atEnd(() => {
          change.put(NAMES, 'at the end', 1)
          throw reason
        })
      }),
      database.change(change => {
        t.equal(change.get(NAMES, 'kept'), 1, 'the next change does not see it')
        change.remove(NAMES, 'before')
      }),
    ])
    t.same(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    t.equal(results[1]!.status === 'rejected' && results[1]!.reason, reason)
    t.same(contentOf(database), before)
    t.same(heard, [])
    t.equal(database.lastChange, 3, 'what was taken back has no number')
  },
)

t.test('commits are counted, and rows that are put, removed and read', async t => {
  const database = openStore(t)
  await Promise.all([
    database.change(change => change.put(NAMES, 'a', 1)),
    database.change(change => change.put(NAMES, 'b', change.get(NAMES, 'a') ?? 0)),
  ])
  await database.change(change => change.remove(NAMES, 'a'))
  database.view(view => [...view.range(NAMES)])
  t.same(database.figures, { commits: 2, puts: 2, removes: 1, reads: 2 })
})

t.test(
  'a change reads its own writes, in one instant, and tells what happened once it is durable',
  async t => {
    let clockMs = 5
    const database = LmdbStore.open(t.testdir(), { nowMs: () => clockMs++ })
    t.teardown(() => database.close())
    const heard: string[] = []
    const faults: unknown[] = []
    const hear = (happening: Happening) => {
      t.equal(
        database.view(view => view.get(NAMES, 'a')),
        1,
        'it is there when it is told',
      )
      heard.push(happening.kind)
    }
    database.subscribe('inbox-dropped', hear)
    database.subscribe('outbox-news', hear)
    const done = database.change(change => {
      change.put(NAMES, 'a', 1)
      change.put(NAMES, 'b', 2)
      change.happened({ kind: 'outbox-news', lane: 'mail', firstKey: Buffer.of(1) })
      change.happened({ kind: 'inbox-dropped', reason: 'full' })
      t.same([...change.keys(NAMES, { start: 'a' })], ['a', 'b'])
      t.equal(change.count(NAMES), 2)
      t.equal(change.nowMs, change.nowMs)
      t.throws(() => database.view(() => undefined), /a change reads by itself/)
      return change
    })
    t.same(heard, [])
    const ended = await done
    t.same(heard, ['outbox-news', 'inbox-dropped'])
    t.equal(ended.nowMs, 5)
    t.equal(await database.change(({ nowMs }) => nowMs, 77), 77)
    t.throws(() => ended.put(NAMES, 'late', 1), /a change is written by its own function/)
    t.same(faults, [])
  },
)

t.test(
  'news of a kind are told once for each id; those of an attempt that failed may be told again',
  async t => {
    const database = openStore(t)
    const heard: string[] = []
    database.subscribe('badge-changed', ({ userId }) => heard.push(`badge ${userId}`))
    database.subscribe('webhook-news', ({ endpointId }) => heard.push(`webhook ${endpointId}`))
    const badge = { kind: 'badge-changed', userId: 1n as UserId } as const
    await database.change(change => {
      t.throws(() =>
        change.attempt(() => {
          change.happened(badge)
          throw new Error('in the middle')
        }),
      )
      change.happened(badge)
      change.happened({ kind: 'webhook-news', endpointId: 1n })
      change.happened(badge)
      change.happened({ ...badge, userId: 2n as UserId })
      change.happened({ kind: 'webhook-news', endpointId: 1n })
    })
    t.same(heard, ['badge 1', 'webhook 1', 'badge 2'])
  },
)

t.test('a subscriber that throws keeps no other from hearing, and the change stands', async t => {
  const faults: unknown[] = []
  const database = LmdbStore.open(t.testdir(), { onFault: error => faults.push(error) })
  t.teardown(() => database.close())
  const heard: string[] = []
  const fault = new Error('subscriber')
  database.subscribe('inbox-dropped', () => {
    throw fault
  })
  database.subscribe('inbox-dropped', ({ kind }) => heard.push(kind))
  await database.change(change => change.happened({ kind: 'inbox-dropped', reason: 'full' }))
  t.same([heard, faults], [['inbox-dropped'], [fault]])
})

t.test(
  'a follower hears of each durable change that writes before its subscribers and its caller do',
  async t => {
    const database = openStore(t)
    const heard: unknown[] = []
    for (const table of [WATCHED, WATCHED, ROWS]) {
      database.watch(table, {
        onWriting: () => undefined,
        onSettled: () => heard.push('settled'),
        onReplaced: () => undefined,
      })
    }
    database.subscribe('inbox-dropped', () => heard.push('told'))
    const end = database.follow(({ first, number, rows }) => {
      const names: string[] = []
      readChangedRows(rows, (table, key) => names.push(`${table} ${Buffer.from(key)}`))
      heard.push([first, number, names])
    })
    const write = (change: Change, keys: readonly string[]) => {
      for (const key of keys) change.put(WATCHED, Buffer.from(key), 1)
      change.put(UNWATCHED, Buffer.from('a'), 1)
    }
    const refused = new Error('refused')
    await Promise.allSettled([
      database
        .change(change => {
          write(change, ['a'])
          const key = Buffer.from('b')
          change.remove(WATCHED, key)
          change.remove(ROWS, key)
          change.happened({ kind: 'inbox-dropped', reason: 'full' })
        })
        .then(() => heard.push('resolved')),
      database.change(change => {
        write(change, ['refused'])
        throw refused
      }),
      database.change(change => write(change, [])),
      database.change(() => undefined),
    ])
    const settled = (times: number) => Array.from({ length: times }, () => 'settled')
    t.same(
      // Runs that are taken back settle before it.
      heard.slice(heard.findIndex(item => item !== 'settled')),
      [[1, 2, ['watched a', 'watched b', 'rows b']], ...settled(5), 'told', ...settled(2), 'resolved'],
    )
    heard.length = 0
    end()
    await database.change(change => write(change, ['a']))
    t.same(heard, settled(2), 'it hears nothing more')
  },
)

t.test('where nobody follows, no list of rows is made of a change', async t => {
  const watchedRows = t.capture(LmdbChange.prototype, 'watchedRows', LmdbChange.prototype.watchedRows)
  const database = openStore(t)
  database.watch(WATCHED, {
    onWriting: () => undefined,
    onSettled: () => undefined,
    onReplaced: () => undefined,
  })
  const write = () => database.change(change => change.put(WATCHED, Buffer.from('a'), 1))
  await write()
  t.equal(watchedRows().length, 0)
  database.follow(() => undefined)
  await write()
  t.equal(watchedRows().length, 1)
})

t.test('a follower that throws keeps no other from hearing, and the change stands', async t => {
  const faults: unknown[] = []
  const database = LmdbStore.open(t.testdir(), { onFault: error => faults.push(error) })
  t.teardown(() => database.close())
  const fault = new Error('follower')
  const heard: number[] = []
  database.follow(() => {
    throw fault
  })
  database.follow(({ number }) => heard.push(number))
  await database.change(change => change.put(COUNTERS, 'a', 1))
  t.same([heard, faults], [[1], [fault]])
})

t.test('where LMDB fails as a batch runs again, nothing of the batch is there', async t => {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const key = (text: string) => Buffer.from(text)
  const cache = new WatchedCache(database, [ROWS], rowKey => Buffer.from(rowKey).toString(), 10)
  const read = () => cache.of('b', () => database.view(view => view.get(ROWS, key('b'))))
  await database.change(change => change.put(ROWS, key('b'), { a: 1 }))
  const told: string[] = []
  database.subscribe('badge-changed', ({ kind }) => told.push(kind))
  let runs = 0
  const outcomes = await Promise.allSettled([
    database.change(change => {
      change.put(ROWS, key('b'), { a: 2 })
      change.happened({ kind: 'badge-changed', userId: 1n as UserId })
    }),
    database.change(change => {
      change.put(ROWS, key('new'), { a: 3 })
      throw new Error('refused')
    }),
    database.change(change => {
      runs++
      change.put(ROWS, key('other'), { a: 4 })
      // As LMDB says that the disk is full.
      throw Object.assign(new Error('no space left'), { code: 28 })
    }),
  ])
  t.same(
    outcomes.map(outcome => outcome.status === 'rejected' && outcome.reason.code),
    ['STORE_UNAVAILABLE', undefined, 'STORE_UNAVAILABLE'],
  )
  t.same([runs, told], [1, []])
  t.same(
    database.view(view => [
      view.get(ROWS, key('b')),
      view.has(ROWS, key('new')),
      view.has(ROWS, key('other')),
    ]),
    [{ a: 1 }, false, false],
  )
  t.same(read(), { a: 1 })
  await database.change(change => change.put(ROWS, key('b'), { a: 5 }))
  t.same(read(), { a: 5 }, 'what is kept of rows follows them again')
})

t.test('an error of the runtime with a number is none of LMDB, and the store goes on', async t => {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  await t.rejects(
    database.change(() => structuredClone(() => undefined)),
    { name: 'DataCloneError' },
  )
  await database.change(change => change.put(NAMES, 'after', 1))
})

/** Every row of every table, as bytes. */
function contentOf(database: LmdbStore): unknown {
  return database.tableNames().map(name => {
    const rows = [...database.storedRows(name).getRange({})]
    return [name, rows.map(({ key, value }) => [String(key), Buffer.from(value)])]
  })
}

/** A process that follows another's store reads its writes, in views and through caches. */

import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { formatChangedRows } from '../../../src/store/engine/changed-rows.ts'
import { FollowedStore } from '../../../src/store/engine/followed-store.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { RowCache } from '../../../src/store/engine/row-cache.ts'
import type { Change, Happening, Store, View } from '../../../src/store/engine/store.ts'
import { WatchedCache } from '../../../src/store/engine/watched-cache.ts'
import { FOLLOWED_ROWS, LOGGED_ROWS, ROW_KEYS } from '../../support/followed-rows.ts'
import type { Seen, ToFollower } from '../../support/follower-program.ts'
import { plainTable } from '../../support/plain-tables.ts'
import { spawnBound, startedProgram } from '../../support/programs.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'

const ROWS = plainTable<number>('followed-store-test')
const KEY = Buffer.from('a')
const NO_ROWS = formatChangedRows([])

/** A follower of a writer that has one row, whose views stay as they are until they are refreshed. */
function openFollower(
  lastChange = 0,
  newsOf?: ConstructorParameters<typeof FollowedStore>[2],
  onFault?: (error: unknown) => void,
) {
  let [row, seen] = [0, 0]
  const view = { get: () => seen } as unknown as View
  const database: ConstructorParameters<typeof FollowedStore>[0] = {
    view: read => read(view),
    refresh: () => {
      seen = row
    },
    openTables: () => undefined,
  }
  const store = new FollowedStore(database, lastChange, newsOf, onFault)
  return {
    store,
    write: (value: number) => {
      row = value
    },
  }
}

t.test('a change that is applied is in the next view, and out of all caches', async t => {
  const { store, write } = openFollower()
  const rowCache = new RowCache(store, ROWS, row => row ?? null, 10)
  const watchedCache = new WatchedCache(store, [ROWS], key => Buffer.from(key).toString(), 10)
  const read = () =>
    store.view(view => [rowCache.of(view, KEY), watchedCache.of('a', () => view.get(ROWS, KEY))])
  t.same(read(), [0, 0])
  write(1)
  t.same(read(), [0, 0])
  store.apply({ first: 1, number: 1, rows: formatChangedRows([{ table: 'another', key: KEY }]) })
  t.same(read(), [0, 0], 'kept for as long as nothing is said of the row')
  store.apply({ first: 2, number: 2, rows: formatChangedRows([{ table: ROWS.name, key: KEY }]) })
  t.same(read(), [1, 1])
})

t.test('subscribers hear once of each news in a change, and find it in their views', async t => {
  const news = (deviceId: bigint): Happening => ({
    kind: 'inbox-news',
    userId: 7n as UserId,
    deviceId: deviceId as DeviceId,
  })
  const faults: unknown[] = []
  const { store, write } = openFollower(
    0,
    (_, table, key) => (table === ROWS.name ? [news(BigInt(key[0]!))] : []),
    error => faults.push(error),
  )
  const rowCache = new RowCache(store, ROWS, row => row ?? null, 10)
  const read = () => store.view(view => rowCache.of(view, KEY))
  const heard: unknown[] = []
  const fault = new Error('a subscriber')
  store.subscribe('inbox-news', () => {
    throw fault
  })
  store.subscribe('inbox-news', ({ deviceId }) => heard.push([deviceId, read()]))
  store.subscribe('badge-changed', () => heard.push('badge'))
  write(1)
  const row = (table: string, octet: number) => ({ table, key: Buffer.from([octet]) })
  const rows = [row(ROWS.name, 1), row('another', 2), row(ROWS.name, 3), row(ROWS.name, 1)]
  store.apply({ first: 1, number: 1, rows: formatChangedRows(rows) })
  t.same(heard, [
    [1n, 1],
    [3n, 1],
  ])
  t.same(faults, [fault, fault])
})

t.test('who waits for a number goes on when it is applied, in the order of the numbers', async t => {
  const { store } = openFollower(1)
  const heard: string[] = []
  const waits = [3, 2, 1, 3].map(async (number, at) => {
    await store.applied(number)
    heard.push(`${at}: ${number}`)
  })
  for (const number of [2, 3]) {
    store.apply({ first: number, number, rows: NO_ROWS })
    t.equal(store.lastChange, number)
  }
  await Promise.all(waits)
  t.same(heard, ['2: 1', '1: 2', '0: 3', '3: 3'])
})

t.test('a change that is left out, or told twice, is a fault', async t => {
  const { store } = openFollower(7)
  for (const first of [7, 9])
    t.throws(() => store.apply({ first, number: 10, rows: NO_ROWS }), { message: /each change/ })
})

t.test('it is for reading alone', async t => {
  const { store } = openFollower()
  // @ts-expect-error: the writer alone changes
  const { change } = store
  // @ts-expect-error: nor is it a store for what the writer alone has
  const whole: Store = store
  t.same([change, whole], [undefined, store])
})

/** The rows' history: for each key the changes that wrote it, and the number it has had since, 0 where removed. */
type History = readonly { readonly change: number; readonly number: number }[][]

async function writeAtRandom(database: LmdbStore, history: History, random: () => number): Promise<void> {
  const draw = (below: number) => Math.floor(random() * below)
  const write = (change: Change) => {
    const written = new Map<number, number>()
    for (let left = 1 + draw(3); left > 0; left--) {
      const at = draw(ROW_KEYS.length)
      const isRemoved = random() < 0.2
      const row = { number: change.number, padding: Buffer.alloc(draw(2_000)) }
      if (isRemoved) change.remove(FOLLOWED_ROWS, ROW_KEYS[at]!)
      else change.put(FOLLOWED_ROWS, ROW_KEYS[at]!, row)
      written.set(at, isRemoved ? 0 : change.number)
    }
    change.put(LOGGED_ROWS, Buffer.from(String(change.number)), Buffer.alloc(2_000))
    if (random() < 0.1) throw new Error('refused')
    return { change: change.number, written }
  }
  const together = Array.from({ length: 1 + draw(6) }, () => database.change(write))
  for (const outcome of await Promise.allSettled(together)) {
    if (outcome.status === 'rejected') continue
    const { change, written } = outcome.value
    for (const [at, number] of written) history[at]!.push({ change, number })
  }
}

/** Whether the row had this number after the change, or has had it since. */
function hasHad(writings: History[number], change: number, number: number): boolean {
  const since = writings.findLastIndex(writing => writing.change <= change)
  return writings.slice(Math.max(since, 0)).some(writing => writing.number === number)
}

function startFollower(t: Test, folder: string) {
  const child = spawnBound(process.execPath, [startedProgram('test/support/follower-program'), folder], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  })
  t.teardown(() => child.kill('SIGKILL'))
  return { child, tell: (message: ToFollower) => void child.send(message) }
}

t.test('another process sees each change once it hears of it, and never an older row', async t => {
  const seed = seedOf()
  t.comment(`CALLSIGN_SEED=${seed}`)
  const random = randomFrom(seed)
  const folder = t.testdir()
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  database.watch(FOLLOWED_ROWS, {
    onWriting: () => undefined,
    onSettled: () => undefined,
    onReplaced: () => undefined,
  })
  const history: History = ROW_KEYS.map(() => [{ change: 0, number: 0 }])
  await writeAtRandom(database, history, random)

  const { child, tell } = startFollower(t, folder)
  await once(child, 'message')
  const first = database.lastChange
  tell({ lastChange: first })
  database.follow(tell)
  const seen: Seen[] = []
  const end = new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('the follower has ended')))
    child.on('message', (message: Seen) => {
      seen.push(message)
      if (database.lastChange >= CHANGES && message.number === database.lastChange) resolve()
    })
  })
  while (database.lastChange < CHANGES) await writeAtRandom(database, history, random)
  await end

  const last = database.lastChange
  const heard = seen.flatMap(({ first, number }) =>
    Array.from({ length: number - first + 1 }, (_, at) => first + at),
  )
  t.same(
    heard,
    Array.from({ length: last - first }, (_, at) => first + 1 + at),
  )
  const faults = seen.flatMap(({ number, isLogged, rows }) => [
    ...(isLogged ? [] : [`change ${number} is not in the view`]),
    ...rows.flatMap((row, at) =>
      row.every(kept => hasHad(history[at]!, number, kept)) ? [] : [`row ${at} after ${number}: ${row}`],
    ),
  ])
  t.same(faults.slice(0, 5), [])
  const now = history.map(writings => writings.at(-1)!.number)
  t.same(
    seen.at(-1)!.rows,
    now.map(number => [number, number, number]),
  )
  const applied = seen.flatMap(({ applied }) => applied)
  t.same(
    applied,
    applied.toSorted((a, b) => a - b),
    'and waits end in order',
  )
  t.ok(applied.length > seen.length)
})

t.test('the file does not grow for a follower that was killed in a view', async t => {
  const folder = t.testdir()
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const rewrite = async (times: number) => {
    for (let left = times; left > 0; left--) {
      await database.change(change => change.put(LOGGED_ROWS, KEY, Buffer.alloc(100_000)))
    }
    return statSync(join(folder, 'store', 'data.mdb')).size
  }
  await rewrite(10)
  const { child, tell } = startFollower(t, folder)
  await once(child, 'message')
  tell('view')
  await once(child, 'message')
  child.kill('SIGKILL')
  await once(child, 'exit')
  database.dropDeadReaders()
  const before = await rewrite(10)
  t.equal(await rewrite(100), before)
})

const CHANGES = 3_000

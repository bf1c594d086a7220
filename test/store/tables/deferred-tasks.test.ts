/** Deferred tasks: done once, in their order, behind the change that left them, and lost by no new start. */

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import type { DeferredTask } from '../../../src/domain/contacts/deferred-task.ts'
import type { RequestId } from '../../../src/domain/ids.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { DeferredTasks } from '../../../src/store/tables/deferred-tasks.ts'
import { storedTable } from '../../support/stored-table.ts'

function open(t: Test, folder = t.testdir(), secretByte = 1) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const expiries = new Expiries()
  const secrets = deriveSecrets(Buffer.alloc(32, secretByte))
  const deferredTasks = new DeferredTasks({ expiries, secrets, randomBytes })
  const done: bigint[] = []
  deferredTasks.define('request_made', (_, { requestId }) => void done.push(requestId))
  const rows = () => ['errands', 'expiries'].map(name => database.rowCount(database.storedRows(name)))
  const sweep = () => expiries.sweep(database, 100, 1_000)
  return { folder, database, deferredTasks, done, rows, sweep }
}

function made(requestId: number): DeferredTask {
  return { kind: 'request_made', requestId: BigInt(requestId) as RequestId }
}

t.test('tasks of one moment are done in the order in which they were left, once', async t => {
  const { database, deferredTasks, done, rows, sweep } = open(t)
  const order = Array.from({ length: 300 }, (_, at) => at)
  for (const at of order) await database.change(change => deferredTasks.leave(change, made(at)), 100)
  t.same(done, [], 'by the sweep alone')
  await sweep()
  t.same(done, order.map(BigInt))
  t.same(rows(), [0, 0])
  t.equal(await sweep(), 0)
})

t.test('an task that leaves another at its own moment does not take it along', async t => {
  const { database, deferredTasks, done, rows, sweep } = open(t)
  deferredTasks.define('search', (change, { requestId }) =>
    deferredTasks.leave(change, { kind: 'request_made', requestId }),
  )
  const search = {
    kind: 'search',
    requestId: 7n,
    senderId: 1n,
    address: { kind: 'email', key: 'a@b.co' },
    message: undefined,
  } as DeferredTask
  await database.change(change => deferredTasks.leave(change, search), 100)
  t.equal(await sweep(), 1)
  t.same(rows(), [1, 1])
  t.equal(await sweep(), 1)
  t.same([done, rows()], [[7n], [0, 0]])
})

t.test('tasks are there after a new start', async t => {
  const before = open(t)
  await before.database.change(change => before.deferredTasks.leave(change, made(5)), 100)
  await before.database.close()
  const { done, sweep } = open(t, before.folder)
  await sweep()
  t.same(done, [5n])
})

t.test('an task of another secret is dropped, and shows nothing as it lies there', async t => {
  const before = open(t)
  const key = `${randomBytes(8).toString('hex')}@example.org`
  const search = {
    kind: 'search',
    requestId: 7n,
    senderId: 1n,
    address: { kind: 'email', key },
  } as DeferredTask
  await before.database.change(change => before.deferredTasks.leave(change, search), 100)
  const [row] = before.database.view(view => [...view.range(storedTable('errands'))])
  t.notOk(Buffer.from(row!.value).includes(key))
  await before.database.close()
  const { done, rows, sweep } = open(t, before.folder, 2)
  t.equal(await sweep(), 1)
  t.same([done, rows()], [[], [0, 0]])
})

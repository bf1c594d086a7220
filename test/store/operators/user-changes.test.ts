/** The changes of users: the latest of each, once, in an order without gaps that a reader could miss something in. */
import t, { type Test } from 'tap'
import { checkRows } from '../../../src/check/rows/row-check.ts'
import { DEFAULT_SETTINGS, type User } from '../../../src/domain/accounts/account.ts'
import type { MethodId, UserId } from '../../../src/domain/ids.ts'
import type { Change } from '../../../src/store/engine/store.ts'
import { newUser, openWorld } from '../../support/application.ts'
import { storedTable } from '../../support/stored-table.ts'

const USER: User = { displayName: 'Ann', createdAtMs: 0, settings: DEFAULT_SETTINGS, acceptLanguage: '' }
const ANN = 4_294_967_297n as UserId
const BOB = 4_294_967_298n as UserId
const CID = 4_294_967_299n as UserId
const DAY_MS = 86_400_000

function openChanges(t: Test) {
  const world = openWorld(t.testdir())
  t.teardown(() => world.database.close())
  const { accounts, database, userChanges } = world
  const write = (put: (change: Change) => void) => database.change(put)
  const put = (userId: UserId, members: Partial<User> = {}) =>
    write(change => accounts.put(change, userId, { ...USER, ...members }))
  const remove = (userId: UserId) => write(change => accounts.remove(change, userId))
  const list = (since = 0, limit = 100) => database.view(view => userChanges.list(view, since, limit))
  /** Without the times. */
  const told = (since = 0) =>
    list(since).map(({ number, userId, isErased }) => [number, userId, isErased ? 'erased' : 'here'])
  return { ...world, write, put, remove, list, told }
}

t.test('the latest change of each user, by rising numbers', async t => {
  const { put, told, list } = openChanges(t)
  await put(ANN)
  await put(BOB)
  await put(ANN, { displayName: 'Ann Lee' })
  t.same(told(), [
    [2, BOB, 'here'],
    [3, ANN, 'here'],
  ])
  t.same(told(2), [[3, ANN, 'here']])
  t.same(told(3), [])
  t.equal(list(0, 1).length, 1)
})

t.test('what a backend would see is a change, the language of a request is none', async t => {
  const { accounts, put, write, told } = openChanges(t)
  await put(ANN)
  await put(ANN, { acceptLanguage: 'vi' })
  t.same(told(), [[1, ANN, 'here']])
  const address = { kind: 'email', key: 'ann@example.org', shown: 'ann@example.org' } as const
  const method = { ...address, id: 4_294_967_300n as MethodId, addedAtMs: 0, lastUsedAtMs: 0 }
  await write(change => accounts.putMethod(change, ANN, method))
  t.same(told(), [[2, ANN, 'here']])
  await write(change => accounts.putMethod(change, ANN, { ...method, lastUsedAtMs: 1 }))
  t.same(told(), [[2, ANN, 'here']], 'that a method was used is no change')
  await write(change => accounts.removeMethod(change, ANN, method))
  t.same(told(), [[3, ANN, 'here']])
})

t.test('several writes of one change are one, and one that was taken back is none', async t => {
  const { accounts, put, write, told } = openChanges(t)
  await put(ANN)
  await write(change => {
    accounts.put(change, BOB, USER)
    accounts.put(change, BOB, { ...USER, displayName: 'Bob' })
    t.throws(() =>
      change.attempt(() => {
        accounts.put(change, ANN, { ...USER, displayName: 'nobody' })
        throw new Error('ordered by a test')
      }),
    )
    change.attempt(() => accounts.put(change, CID, USER))
  })
  t.same(told(), [
    [1, ANN, 'here'],
    [2, BOB, 'here'],
    [3, CID, 'here'],
  ])
})

t.test(
  'an erased user stays in the list for thirty days, by the id alone, and no number comes twice',
  async t => {
    const world = openChanges(t)
    const { put, remove, told, advance, database } = world
    await put(ANN, { externalId: 'ann', contactData: { email: 'Ann@Example.org', phone: '+84912345678' } })
    await put(BOB)
    await remove(ANN)
    t.same(told(), [
      [2, BOB, 'here'],
      [3, ANN, 'erased'],
    ])
    for (const name of ['external-ids', 'contact-addresses'])
      t.equal(
        database.view(view => view.count(storedTable(name))),
        0,
        name,
      )
    await advance(30 * DAY_MS - 1)
    t.equal(told().length, 2)
    t.same(checkRows(database).told, [])
    await advance(2)
    t.same(told(), [[2, BOB, 'here']])
    t.same(checkRows(database).told, [])
    await put(CID)
    t.same(told(3), [[4, CID, 'here']], 'one who has seen the third sees the fourth')
    t.equal(
      database.view(view => view.count(storedTable('user-changes'))),
      2,
    )
    await remove(CID)
    await put(BOB, { displayName: 'Bob' })
    await advance(31 * DAY_MS)
    t.same(told(), [[6, BOB, 'here']])
    t.equal(
      database.view(view => view.count(storedTable('user-changes'))),
      1,
    )
    t.equal(
      database.view(view => view.count(storedTable('user-changes-by-user'))),
      1,
    )
  },
)

t.test('one who signs up is one change', async t => {
  const world = openChanges(t)
  const { userId } = await newUser(world)
  t.same(world.told(), [[1, userId, 'here']])
})

/** Users found by references: by the server's id and by the backend's, during the days before an erasure, and after it. */
import t, { type Test } from 'tap'
import { checkRows } from '../../../src/check/rows/row-check.ts'
import type { User } from '../../../src/domain/accounts/account.ts'
import { DEFAULT_SETTINGS } from '../../../src/domain/accounts/account.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { readUserRef } from '../../../src/domain/operators/user-ref.ts'
import { openWorld } from '../../support/application.ts'
import { storedTable } from '../../support/stored-table.ts'

const USER: User = { displayName: 'Ann', createdAtMs: 0, settings: DEFAULT_SETTINGS, acceptLanguage: '' }
const ANN = 4_294_967_297n as UserId
const BOB = 4_294_967_298n as UserId

function openUsers(t: Test) {
  const world = openWorld(t.testdir())
  t.teardown(() => world.database.close())
  const { accounts, database, serverUsers } = world
  const put = (userId: UserId, members: Partial<User>) =>
    database.change(change => accounts.put(change, userId, { ...USER, ...members }))
  const find = (text: string) => {
    try {
      return database.view(view => serverUsers.userOf(view, readUserRef(text)))
    } catch (error) {
      t.match(error, { code: 'USER_NOT_FOUND' })
      return undefined
    }
  }
  return { ...world, put, find }
}

t.test('by either id, octet by octet', async t => {
  const { put, find } = openUsers(t)
  await put(ANN, { externalId: 'é' })
  await put(BOB, { externalId: 'e\u0301' })
  t.equal(find(`id:${ANN}`), ANN)
  t.equal(find('ext:é'), ANN)
  t.equal(find('ext:e\u0301'), BOB)
  for (const text of ['ext:É', 'ext:é ', 'id:4294967299', `ext:${ANN}`]) t.equal(find(text), undefined, text)
})

t.test('an external id that changes leaves nothing of the old one, and is never two users’', async t => {
  const { put, find } = openUsers(t)
  await put(ANN, { externalId: 'old' })
  await put(ANN, { externalId: 'new', displayName: 'Ann Lee' })
  t.equal(find('ext:old'), undefined)
  t.equal(find('ext:new'), ANN)
  await put(BOB, { externalId: 'old' })
  t.equal(find('ext:old'), BOB)
  await t.rejects(put(BOB, { externalId: 'new' }), /belongs to one user/)
  await put(ANN, {})
  t.equal(find('ext:new'), undefined)
})

t.test('an account in its last days is found, and erased it leaves no external id', async t => {
  const { put, find, database, accounts } = openUsers(t)
  await put(ANN, { externalId: 'ann', erasesAtMs: 1 })
  t.equal(find('ext:ann'), ANN)
  await database.change(change => accounts.remove(change, ANN))
  t.equal(find('ext:ann'), undefined)
  t.equal(find(`id:${ANN}`), undefined)
  t.equal(
    database.view(view => view.count(storedTable('external-ids'))),
    0,
  )
})

t.test('a contact address finds all whom the backend says it of, and follows it', async t => {
  const { put, accounts, database } = openUsers(t)
  const at = (identifier: string, after?: UserId, limit = 10) =>
    database.view(view => accounts.usersWithContact(view, identifier, { after, limit }))
  await put(ANN, { contactData: { email: 'Home@Example.org', phone: '+84912345678' } })
  await put(BOB, { contactData: { email: 'home@example.org' } })
  t.same(at('email:home@example.org'), [ANN, BOB])
  t.same(at('email:home@example.org', ANN), [BOB])
  t.same(at('email:home@example.org', undefined, 1), [ANN])
  t.same(at('phone:+84912345678'), [ANN])
  await put(ANN, { contactData: { email: 'ann@example.org' } })
  t.same(at('email:home@example.org'), [BOB])
  t.same(at('phone:+84912345678'), [])
  t.same(checkRows(database).told, [])
})

t.test('a row that is lost is named', async t => {
  const { put, database } = openUsers(t)
  await put(ANN, { externalId: 'ann', contactData: { email: 'ann@example.org', phone: '+84912345678' } })
  for (const [name, table] of [
    ['external-ids', 'users'],
    ['contact-addresses', 'users'],
    ['user-changes-by-user', 'users'],
    ['user-changes', 'user-changes-by-user'],
    ['users', 'user-changes'],
  ] as const) {
    const rows = storedTable(name)
    const [row] = database.view(view => [...view.range(rows)])
    await database.change(change => change.remove(rows, row!.key))
    const { told } = checkRows(database)
    t.ok(
      told.some(fault => fault.table === table),
      `${name}: ${JSON.stringify(told)}`,
    )
    t.notMatch(JSON.stringify(told), /example|8491/)
    await database.change(change => change.put(rows, row!.key, row!.value))
  }
  t.same(checkRows(database).told, [])
})

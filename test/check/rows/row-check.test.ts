/**
 * The check of all tables but the log's, on a store that people have filled through the API: whole it is clean, and a row
 * that is gone, added or overwritten is named, whichever table it is in.
 */

import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CHECKED_TABLES } from '../../../src/check/rows/checked-tables.ts'
import { checkRows, type RowFault } from '../../../src/check/rows/row-check.ts'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { INDEX_TABLES } from '../../../src/keyserver/index/index-tables.ts'
import { LOG_TABLES } from '../../../src/keyserver/log-store.ts'
import { USERS } from '../../../src/store/accounts/account-tables.ts'
import { EXPIRY, Expiries, endingKey, TIME_BYTES } from '../../../src/store/engine/expiries.ts'
import { lengthsOf } from '../../../src/store/engine/key-parts.ts'
import { idInKey, idsKey } from '../../../src/store/engine/keys.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import type { Change } from '../../../src/store/engine/store.ts'
import { InboxStore } from '../../../src/store/messages/inbox-store.ts'
import { INBOX_HEADS } from '../../../src/store/messages/message-tables.ts'
import { fillStore, LEFT_EMPTY } from '../../support/filled-store.ts'
import { itemOf } from '../../support/notice-item.ts'
import { storedTable } from '../../support/stored-table.ts'
import { PROJECT_ROOT } from '../../support/vectors.ts'

/**
 * Tables that no other row refers to: missing or surplus rows can't be noticed. The participants of a surplus live
 * call can't be known either: it is sealed.
 */
const UNRELATED: ReadonlySet<string> = new Set([
  'outbox',
  'inbox-groups',
  'inbox-live',
  'errands',
  'idempotency',
  'identity-tokens',
  'passkey-challenges',
  'known-sign-ins',
  'call-history-marks',
  'call-changes',
  'device-lists',
  'code-counts',
  'code-tries',
  'sms-tallies',
  'sms-dial-codes',
  'rates',
  'refused-sign-ins',
  'webhook-batches',
  'webhook-dead',
  ...LEFT_EMPTY,
])
/** No row is of this length. */
const GARBAGE = Buffer.from('c1ffdeadbeefc1ffdeadbeefc1ffdead', 'hex')

const folder = t.testdir()
await fillStore(folder)
const database = LmdbStore.open(folder)
t.teardown(() => database.close())
await fillAnInbox()

/**
 * Enough messages that the oldest have rows, and some that are live. One of each kind is settled, so that its group has a row
 * that says so.
 */
async function fillAnInbox(): Promise<void> {
  const secrets = deriveSecrets(randomBytes(32))
  let isThere = false
  const isConnected = () => isThere
  const inbox = new InboxStore({ database, expiries: new Expiries(), secrets, randomBytes, isConnected })
  const key = database.view(view => [...view.keys(INBOX_HEADS)])[0]!
  const [userId, deviceId] = [idInKey(key, 0) as UserId, idInKey(key, 1) as DeviceId]
  const notice = { kind: 'profile_changed', eventId: 'e'.repeat(22), sentAtMs: Date.now() } as const
  await database.change(change => {
    const offsets = Array.from({ length: 17 }, () =>
      inbox.append(change, userId, deviceId, { item: itemOf(notice) }),
    )
    inbox.settle(change, userId, deviceId, offsets.slice(-1))
  })
  isThere = true
  const add = (change: Change) => inbox.append(change, userId, deviceId, { item: itemOf(notice) })
  const [first] = await database.change(change => [add(change), add(change)])
  await database.change(change => inbox.settle(change, userId, deviceId, [first!]))
}

/** Binary tables only; the two under texts are never filled here. */
const tableOf = (name: string) => (CHECKED_TABLES.get(name)!.keys === 'text' ? undefined : storedTable(name))

/** The faults found after `change`, which is then undone. */
async function faultsAfter(
  name: string,
  key: Uint8Array,
  value: Uint8Array | undefined,
): Promise<RowFault[]> {
  const before = database.view(view => view.get(tableOf(name)!, key))
  await put(name, key, value)
  const { told } = checkRows(database)
  await put(name, key, before)
  return [...told]
}

async function put(name: string, key: Uint8Array, value: Uint8Array | undefined): Promise<void> {
  const table = tableOf(name)!
  await database.change(change =>
    value === undefined ? change.remove(table, key) : change.put(table, key, value),
  )
}

function rowsOf(name: string): { key: Uint8Array; value: Uint8Array }[] {
  const table = tableOf(name)
  const rows = table && database.view(view => [...view.range(table)])
  return (rows ?? []).map(({ key, value }) => ({
    key: Buffer.from(key),
    value: Buffer.from(value),
  }))
}

t.test('every table of the source is checked', async t => {
  const source = join(PROJECT_ROOT, 'src')
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.ts'),
  )
  const named = files.flatMap(name =>
    [
      ...readFileSync(join(source, name), 'utf8').matchAll(
        /\b(?:rowTable|textKeyTable|bytesTable)\(\s*'([^']+)'/g,
      ),
    ].map(([, table]) => table!),
  )
  t.ok(named.length >= 35, `${named.length} are opened by name`)
  t.same([...new Set(named)].sort(), [...CHECKED_TABLES.keys()].sort())
})

t.test('every table of a store is checked, and a whole store is clean', async t => {
  const checked = new Set([
    ...[...CHECKED_TABLES.keys()],
    ...Object.values(LOG_TABLES),
    ...Object.values(INDEX_TABLES),
  ])
  t.same(
    database.tableNames().filter(name => !checked.has(name)),
    [],
  )
  const { faults, told, unread, rows } = checkRows(database)
  t.same([faults, told, unread], [0, [], []])
  t.ok(rows > 100, `${rows} rows`)
  const empty = [...CHECKED_TABLES.keys()].filter(name => tableOf(name) && rowsOf(name).length === 0)
  t.same(
    empty.filter(name => !LEFT_EMPTY.has(name)),
    [],
    'people have filled the others',
  )
})

for (const name of [...CHECKED_TABLES.keys()]) {
  if (tableOf(name) === undefined) continue
  const rows = rowsOf(name)

  t.test(`garbage in ${name} is named`, async t => {
    const [length] = lengthsOf(CHECKED_TABLES.get(name)!.key)
    const key = rows[0]?.key ?? Buffer.alloc(length, 7)
    const faults = await faultsAfter(name, key, GARBAGE)
    const [fault] = faults.filter(({ table }) => table === name)
    t.match(fault?.detail, /^the row is not one of its table; \S+/)
  })

  if (UNRELATED.has(name)) continue

  t.test(`a row that is gone from ${name} is missed`, async t => {
    // An ending without a row, an empty inbox, and a message that comes again, lose nothing.
    if (name === 'inbox-settled' || name === 'inbox-live-settled') return
    const missed = new Map<string, number>()
    for (const { key } of rows) {
      const group = groupOf(name, key)
      const { length } = await faultsAfter(name, key, undefined)
      missed.set(group, (missed.get(group) ?? 0) + length)
    }
    for (const [group, faults] of missed) t.not(faults, 0, group)
  })

  if (name === 'calls') continue

  t.test(`a row too many in ${name} is named`, async t => {
    const { key, value } = rows[0]!
    const other = Buffer.from(key)
    other[name === 'expiries' ? TIME_BYTES : 3]! ^= 0x55
    const tables = (await faultsAfter(name, other, value)).map(({ table }) => table)
    t.ok(tables.includes(name), tables.join())
  })
}

t.test('both ways: what an index lacks is said of the row that it should lead to', async t => {
  const lost = async (name: string) => (await faultsAfter(name, rowsOf(name)[0]!.key, undefined))[0]
  t.match(await lost('login-method-owners'), {
    table: 'login-methods',
    detail: /^login-method-owners does not name/,
  })
  t.match(await lost('sessions-by-user'), { table: 'sessions', detail: /^sessions-by-user does not have it/ })
  t.match(await lost('push-tokens'), {
    table: 'devices',
    detail: /^push-tokens does not name it for its \w+Token;/,
  })
  t.match(await lost('share-tokens-by-hash'), {
    table: 'share-tokens',
    detail: /^share-tokens-by-hash does not have it/,
  })
  t.match(await lost('calls'), { table: 'call-changes', detail: /^calls does not have its call/ })
})

t.test('a device with another key than the logged one is named', async t => {
  const [first, second] = rowsOf('devices')
  const faults = await faultsAfter('devices', first!.key, second!.value)
  t.ok(faults.some(({ detail }) => /^it says that it is \d+\/\d+;/.test(detail)))
  t.ok(faults.some(({ detail }) => /^entry \d+ of the log is not its key;/.test(detail)))
})

t.test('a row with a number that fits into no key is named, and the check goes on', async t => {
  const { key, value } = database.view(view => [...view.range(USERS, { limit: 1 })])[0]!
  await database.change(change => change.put(USERS, key, { ...value, erasesAtMs: 2 ** 60 }))
  const { told, unread } = checkRows(database)
  await database.change(change => change.put(USERS, key, value))
  t.match(told, [{ table: 'users', key: `${idInKey(key, 0)}`, detail: /^the row is not one of its table;/ }])
  t.equal(told.length, 1)
  t.same(unread, [])
})

t.test('a report holds no address, token or key of a row that was hashed', async t => {
  const said: string[] = []
  for (const name of [...CHECKED_TABLES.keys()]) {
    for (const { key } of rowsOf(name)) {
      for (const fault of await faultsAfter(name, key, GARBAGE)) said.push(`${fault.key} ${fault.detail}`)
    }
  }
  t.ok(said.length > 120, `${said.length} sentences`)
  t.same(
    said.filter(each => /@|person\d|[0-9a-f]{20}|Hello|fair/i.test(each)),
    [],
  )
})

t.test('what rows left behind as they went is no fault', async t => {
  const key = endingKey(EXPIRY.session, Date.now(), Buffer.alloc(16, 9))
  t.same(await faultsAfter('expiries', key, Buffer.of(0)), [])
  const user = idsKey(12_345n)
  t.same(await faultsAfter('expiries', endingKey(EXPIRY.erasure, Date.now(), user), Buffer.of(0)), [])
})

t.test('without time it says which tables were not read', async t => {
  const expiries = new Expiries()
  // It asks for time after 256 rows.
  await database.change(change => {
    for (let at = 0; at < 256; at++) expiries.add(change, EXPIRY.session, Date.now(), randomBytes(16))
  })
  const { unread, faults } = checkRows(database, { mayGoOn: () => false })
  t.equal(faults, 0)
  t.equal(unread.at(-1), 'expiries', 'the largest, which comes last')
})

function groupOf(name: string, key: Uint8Array): string {
  if (name === 'expiries') return `kind ${key[TIME_BYTES]}`
  // Each of a call's people may delete it; a mark misses the one that it is at.
  return name === 'inbox-heads' || name === 'call-history' ? name : hexOf(key)
}

function hexOf(key: Uint8Array): string {
  return Buffer.from(key).toString('hex')
}

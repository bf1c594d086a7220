/** Share tokens on a real store: rows kept, ends, rows forgotten. */

import t, { type Test } from 'tap'
import type { TokenId, UserId } from '../../../src/domain/ids.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { isLive, ShareTokenStore } from '../../../src/store/contacts/share-token-store.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { IdLists } from '../../../src/store/tables/id-lists.ts'
import { storedTable } from '../../support/stored-table.ts'

const NOW = 1_800_000_000_000
const DAY_MS = 86_400_000
const ANN = (2n ** 40n) as UserId
const ALL = { limit: 100 }
const TABLES = ['share-tokens', 'share-tokens-by-hash', 'id-lists', 'expiries']

function openTokens(t: Test, folder = t.testdir(), secret = 7) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const expiries = new Expiries()
  const secrets = deriveSecrets(Buffer.alloc(32, secret))
  const tokens = new ShareTokenStore(expiries, new IdLists(), secrets)
  const create = (id: bigint, changes: object = {}) => {
    const terms = { userId: ANN, tokenId: id as TokenId, createdAtMs: NOW, expiresAtMs: NOW + 7 * DAY_MS }
    return database.change(change => tokens.create(change, { ...terms, usesMax: 3, ...changes }))
  }
  const sweep = async (nowMs: number) => {
    while ((await expiries.sweep(database, nowMs, 100)) > 0);
  }
  const find = (text: string) => database.view(view => tokens.find(view, text))
  const read = (id: bigint) => database.view(view => tokens.read(view, ANN, id))
  const rows = () => TABLES.map(name => database.rowCount(database.storedRows(name)))
  return { database, tokens, create, sweep, find, read, rows }
}

t.test('a token is found by its text and drawn again, and is not stored', async t => {
  const { database, tokens, create, find } = openTokens(t)
  const { token, text } = await create(5n, { label: 'card' })
  t.match(text, /^c_[\w-]{22}$/)
  t.match(find(text), { userId: ANN, tokenId: 5n, label: 'card', uses: 0, usesMax: 3 })
  t.equal(tokens.textOf(token), text)
  t.equal(token.lastCharacters, text.slice(-4))
  t.not((await create(6n)).text, text)
  const stored = database.view(view => TABLES.flatMap(name => [...view.range(storedTable(name))]))
  const bytes = Buffer.from(text.slice(2), 'base64url')
  const rows = stored.map(({ key, value }) => Buffer.concat([key, value]))
  t.notOk(rows.some(row => row.includes(bytes) || row.includes(text)))
})

t.test('texts that are no token find none', async t => {
  const { create, find } = openTokens(t)
  const { text } = await create(5n)
  const others = ['', 'c_', `${text}A`, text.slice(1), `c_${'A'.repeat(22)}`, '5', ` ${text}`]
  t.same(
    others.filter(other => find(other) !== undefined),
    [],
  )
})

t.test('a token of an earlier secret still leads to its owner, but can not be drawn', async t => {
  const folder = t.testdir()
  const first = openTokens(t, folder)
  const { text } = await first.create(5n)
  await first.database.close()
  const { tokens, find } = openTokens(t, folder, 8)
  const found = find(text)!
  t.equal(found.userId, ANN)
  t.equal(tokens.textOf(found), undefined)
})

t.test('a token ends when it is used up, revoked or expired, to the millisecond', async t => {
  const { database, tokens, create, read } = openTokens(t)
  for (const id of [1n, 2n, 3n]) await create(id)
  const live = (id: bigint, nowMs = NOW) => isLive(read(id)!, nowMs)
  const listed = (nowMs: number) => database.view(view => tokens.readLive(view, ANN, ALL, nowMs))
  await database.change(change => {
    for (let uses = 0; uses < 3; uses++) {
      const token = tokens.read(change, ANN, 1n)!
      t.ok(isLive(token, NOW))
      tokens.use(change, token)
    }
    tokens.revoke(change, tokens.read(change, ANN, 2n)!)
  }, NOW)
  t.same([live(1n), live(2n), live(3n)], [false, false, true])
  t.same([live(3n, NOW + 7 * DAY_MS - 1), live(3n, NOW + 7 * DAY_MS)], [true, false])
  t.same(
    listed(NOW).map(({ tokenId }) => tokenId),
    [3n],
  )
  t.same(listed(NOW + 7 * DAY_MS), [], 'before any sweep')
})

t.test('an ended one is kept for 30 days and then forgotten', async t => {
  const { database, tokens, create, find, sweep, rows } = openTokens(t)
  const [expiring, revoked] = [await create(1n), await create(2n, { expiresAtMs: NOW + 300 * DAY_MS })]
  await database.change(change => tokens.revoke(change, revoked.token), NOW + DAY_MS)
  const known = async (nowMs: number) => {
    await sweep(nowMs)
    return [expiring, revoked].map(({ text }) => find(text) !== undefined)
  }
  t.same(await known(NOW + 31 * DAY_MS - 1), [true, true])
  t.same(await known(NOW + 31 * DAY_MS), [true, false])
  t.same(await known(NOW + 37 * DAY_MS - 1), [true, false])
  t.same(await known(NOW + 37 * DAY_MS), [false, false])
  await sweep(NOW + 300 * DAY_MS)
  t.same(rows(), [0, 0, 0, 0])
})

t.test('a token that has expired is in no list any more', async t => {
  const { create, sweep, rows } = openTokens(t)
  await create(1n)
  await sweep(NOW + 7 * DAY_MS)
  t.same(rows(), [1, 1, 0, 1])
})

t.test('an expired token does not end again when it is revoked', async t => {
  const { database, tokens, create, read } = openTokens(t)
  const { token } = await create(1n)
  await database.change(change => tokens.revoke(change, token), NOW + 8 * DAY_MS)
  t.equal(read(1n)?.overAtMs, undefined)
})

t.test('nothing of an erased user is left, and nothing of other users is touched', async t => {
  const { database, tokens, create, find, rows } = openTokens(t)
  await create(1n)
  await create(2n)
  const other = await create(3n, { userId: (ANN + 1n) as UserId })
  await database.change(change => {
    tokens.revoke(change, tokens.read(change, ANN, 2n)!)
    tokens.eraseOf(change, ANN)
  }, NOW)
  t.ok(find(other.text))
  t.same(rows(), [1, 1, 1, 1], 'nor any ending, whose key has the id of the user')
})

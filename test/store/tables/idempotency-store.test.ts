/** Kept replies: sealed, of one scope and key, for a day. */

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { IdempotencyStore, type IdempotentRequest } from '../../../src/store/tables/idempotency-store.ts'

const REQUEST = { scope: 'createThing 7', key: 'k1', hash: Buffer.alloc(32, 1) }
const DAY_MS = 86_400_000

function open(t: Test, { folder = t.testdir(), secret = 7 } = {}) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const expiries = new Expiries()
  const secrets = deriveSecrets(Buffer.alloc(32, secret))
  const store = new IdempotencyStore(expiries, secrets, randomBytes)
  const find = (request: IdempotentRequest) => database.view(view => store.find(view, request))
  return { database, expiries, folder, store, find }
}

t.test('a reply is found again by scope, key and hash', async t => {
  const { database, store, find } = open(t)
  t.equal(find(REQUEST), undefined)
  await database.change(change => store.keep(change, REQUEST, '{"é":1}'), 0)
  t.equal(find(REQUEST), '{"é":1}')
  t.equal(find({ ...REQUEST, scope: 'createThing 8' }), undefined)
  t.equal(find({ ...REQUEST, key: 'k2' }), undefined)
})

t.test('another request under the key is refused', async t => {
  const { database, store, find } = open(t)
  await database.change(change => store.keep(change, REQUEST, 'x'), 0)
  const other = Buffer.from(REQUEST.hash)
  other[31]! ^= 1
  for (const hash of [other, Buffer.alloc(0), Buffer.alloc(31, 1)])
    t.throws(() => find({ ...REQUEST, hash }), { code: 'IDEMPOTENCY_KEY_REUSED' })
})

t.test('it goes after a day, and not before', async t => {
  const { database, expiries, store, find } = open(t)
  await database.change(change => store.keep(change, REQUEST, 'x'), 1_000)
  await expiries.sweep(database, 1_000 + DAY_MS - 1, 10)
  t.equal(find(REQUEST), 'x')
  await expiries.sweep(database, 1_000 + DAY_MS, 10)
  t.equal(find(REQUEST), undefined)
  t.equal(find({ ...REQUEST, hash: Buffer.alloc(32, 2) }), undefined, 'the key is free')
})

t.test('neither key, scope nor reply can be read in the file', async t => {
  const { database, store, folder } = open(t)
  const request = { ...REQUEST, key: 'a-key-of-a-client', scope: 'scope-of-someone' }
  await database.change(change => store.keep(change, request, 'a-token-in-the-reply'), 0)
  const file = readFileSync(join(folder, 'store', 'data.mdb'))
  for (const text of ['a-key-of-a-client', 'scope-of-someone', 'a-token-in-the-reply']) {
    t.notOk(file.includes(text), text)
  }
})

t.test('a reply that another secret sealed is as good as none', async t => {
  const folder = t.testdir()
  const before = LmdbStore.open(folder)
  const secrets = deriveSecrets(Buffer.alloc(32, 1))
  const old = new IdempotencyStore(new Expiries(), secrets, randomBytes)
  await before.change(change => old.keep(change, REQUEST, 'x'), 0)
  await before.close()
  t.equal(open(t, { folder, secret: 2 }).find(REQUEST), undefined)
})

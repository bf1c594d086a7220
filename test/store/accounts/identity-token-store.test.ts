import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { IdentityTokenStore } from '../../../src/store/accounts/identity-token-store.ts'
import { Database } from '../../../src/store/engine/database.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'

const tokenDigest = 'ab'.repeat(32)
const secrets = deriveSecrets(Buffer.alloc(32, 7))

function openStore(t: Test) {
  const database = Database.open(t.testdir())
  t.after(() => database.close())
  const expiries = new Expiries(database)
  const open = (keys = secrets) =>
    new IdentityTokenStore({
      database,
      expiries: keys === secrets ? expiries : new Expiries(database),
      secrets: keys,
      randomBytes,
    })
  return { database, expiries, tokens: open(), open }
}

t.test('a token that was not used is not known, and one that was is', async t => {
  const { database, tokens } = openStore(t)
  t.equal(
    database.view(view => tokens.find(view, { tokenDigest, attempt: undefined })),
    undefined,
  )
  await database.commit(change => tokens.keep(change, { tokenDigest, attempt: undefined }, 'outcome', 1_000))
  t.same(
    database.view(view => tokens.find(view, { tokenDigest, attempt: undefined })),
    {},
    'and without an attempt nothing is kept of it',
  )
  t.same(
    database.view(view => tokens.find(view, { tokenDigest, attempt: 'other' })),
    {},
  )
  t.equal(
    database.view(view => tokens.find(view, { tokenDigest: 'cd'.repeat(32), attempt: undefined })),
    undefined,
  )
})

t.test(
  'the same attempt again gets what came of the first, with its ids whole, and no other attempt does',
  async t => {
    const { database, tokens } = openStore(t)
    const outcome = { status: 200, user: { userId: 2n ** 53n - 1n } }
    await database.commit(change => tokens.keep(change, { tokenDigest, attempt: 'one' }, outcome, 1_000))
    t.same(
      database.view(view => tokens.find(view, { tokenDigest, attempt: 'one' })),
      { outcome },
    )
    t.same(
      database.view(view => tokens.find(view, { tokenDigest, attempt: 'two' })),
      {},
    )
    t.same(
      database.view(view => tokens.find(view, { tokenDigest, attempt: undefined })),
      {},
    )
  },
)

t.test('what is kept is sealed', async t => {
  const { database, tokens, open } = openStore(t)
  await database.commit(change => tokens.keep(change, { tokenDigest, attempt: 'one' }, 'kat_secret', 1_000))
  const [row] = [...database.bytesTable('identity-tokens').getRange({})]
  t.notOk(Buffer.from(row!.value).includes('kat_secret'))
  t.same(
    database.view(view =>
      open(deriveSecrets(Buffer.alloc(32, 8))).find(view, { tokenDigest, attempt: 'one' }),
    ),
    {},
    'the token stays used',
  )
})

t.test('a token is forgotten when no verification accepts it any more', async t => {
  const { database, tokens, expiries } = openStore(t)
  await database.commit(change => tokens.keep(change, { tokenDigest, attempt: undefined }, 0, 10_000))
  await expiries.sweep(10_000, 10)
  t.ok(
    database.view(view => tokens.find(view, { tokenDigest, attempt: undefined })),
    'one accepted in the last moment may still come',
  )
  await expiries.sweep(100_000, 10)
  t.equal(
    database.view(view => tokens.find(view, { tokenDigest, attempt: undefined })),
    undefined,
  )
})

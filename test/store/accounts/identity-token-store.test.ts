import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { IdentityTokenStore } from '../../../src/store/accounts/identity-token-store.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { storedTable } from '../../support/stored-table.ts'

const tokenDigest = 'ab'.repeat(32)
const secrets = deriveSecrets(Buffer.alloc(32, 7))

function openStore(t: Test) {
  const database = LmdbStore.open(t.testdir())
  t.after(() => database.close())
  const expiries = new Expiries()
  const open = (keys = secrets) =>
    new IdentityTokenStore({
      expiries: keys === secrets ? expiries : new Expiries(),
      secrets: keys,
      randomBytes,
    })
  const tokens = open()
  const find = (attempt?: string, digest = tokenDigest, of = tokens) =>
    database.view(view => of.find(view, { tokenDigest: digest, attempt }))
  const keep = (attempt: string | undefined, outcome: unknown, expiresAtMs: number) =>
    database.change(change => tokens.keep(change, { tokenDigest, attempt }, outcome, expiresAtMs))
  return { database, expiries, find, keep, open }
}

t.test('a token that was not used is not known, and one that was is', async t => {
  const { find, keep } = openStore(t)
  t.equal(find(), undefined)
  await keep(undefined, 'outcome', 1_000)
  t.same(find(), {}, 'and without an attempt nothing is kept of it')
  t.same(find('other'), {})
  t.equal(find(undefined, 'cd'.repeat(32)), undefined)
})

t.test(
  'the same attempt again gets what came of the first, with its ids whole, and no other attempt does',
  async t => {
    const { find, keep } = openStore(t)
    const outcome = { status: 200, user: { userId: 2n ** 53n - 1n } }
    await keep('one', outcome, 1_000)
    t.same(find('one'), { outcome })
    t.same(find('two'), {})
    t.same(find(), {})
  },
)

t.test('kept tokens are sealed', async t => {
  const { database, find, keep, open } = openStore(t)
  await keep('one', 'kat_secret', 1_000)
  const [row] = database.view(view => [...view.range(storedTable('identity-tokens'))])
  t.notOk(Buffer.from(row!.value).includes('kat_secret'))
  const ofOtherKeys = open(deriveSecrets(Buffer.alloc(32, 8)))
  t.same(find('one', tokenDigest, ofOtherKeys), {}, 'the token stays used')
})

t.test('a token is forgotten when no verification accepts it any more', async t => {
  const { database, find, keep, expiries } = openStore(t)
  await keep(undefined, 0, 10_000)
  await expiries.sweep(database, 10_000, 10)
  t.ok(find(), 'one accepted in the last moment may still come')
  await expiries.sweep(database, 100_000, 10)
  t.equal(find(), undefined)
})

import t from 'tap'
import { addressIdentifier, socialIdentifier } from '../../../src/domain/accounts/account.ts'
import { decideSocialSignIn, nameOfNewcomer } from '../../../src/domain/accounts/social-sign-in.ts'
import type { UserId } from '../../../src/domain/ids.ts'

const ann = 1n as UserId
const bob = 2n as UserId
const subject = socialIdentifier('https://issuer', 'subject')

function owners(entries: readonly (readonly [string, UserId])[]) {
  const map = new Map(entries)
  return (identifier: string) => map.get(identifier)
}

const byEmail = owners([[addressIdentifier('email', 'ann@example.org'), ann]])

t.test('a known subject opens its account, whatever address it comes with', async t => {
  const ownerOf = owners([
    [subject, bob],
    [addressIdentifier('email', 'ann@example.org'), ann],
  ])
  const vouched = { email: 'ann@example.org', isEmailVerified: true }
  t.same(decideSocialSignIn(subject, vouched, ownerOf), { kind: 'known', userId: bob })
})

t.test('an unknown subject with a user’s verified address has to be confirmed', async t => {
  const expected = { kind: 'confirm', userId: ann, email: 'ann@example.org' }
  for (const email of ['ann@example.org', 'ANN@Example.ORG', ' ann@example.org ']) {
    t.same(decideSocialSignIn(subject, { email, isEmailVerified: true }, byEmail), expected, email)
  }
})

t.test('an address that the provider has not verified means nothing', async t => {
  const vouched = { email: 'ann@example.org', isEmailVerified: false }
  t.same(decideSocialSignIn(subject, vouched, byEmail), { kind: 'new' })
})

t.test('no address, an invalid one and an unused one make a new account', async t => {
  t.same(decideSocialSignIn(subject, { isEmailVerified: true }, byEmail), { kind: 'new' })
  for (const email of ['', 'ann@example.org(comment)', 'bob@example.org']) {
    t.same(decideSocialSignIn(subject, { email, isEmailVerified: true }, byEmail), { kind: 'new' }, email)
  }
})

t.test('a subject that spells an address finds no address', async t => {
  t.same(
    decideSocialSignIn(socialIdentifier('email:ann@example.org', ''), { isEmailVerified: true }, byEmail),
    {
      kind: 'new',
    },
  )
})

t.test('a newcomer is called as the app says, as the provider says, or by the address', async t => {
  const vouched = { name: ' Ann  Lee ', email: 'ann.lee@example.org', isEmailVerified: false }
  t.equal(nameOfNewcomer('Annie', vouched), 'Annie')
  t.equal(nameOfNewcomer(undefined, vouched), 'Ann Lee')
  t.equal(nameOfNewcomer(undefined, { ...vouched, name: '\u202e' }), 'ann.lee')
  t.equal(nameOfNewcomer(undefined, { isEmailVerified: false }), 'User')
})

import t, { type Test } from 'tap'
import type { SocialIdentity } from '../../../src/domain/accounts/challenge.ts'
import { AccountLetters } from '../../../src/store/accounts/account-letters.ts'
import { AppleConsents } from '../../../src/store/accounts/apple-consents.ts'
import { LoginMethods } from '../../../src/store/accounts/login-methods.ts'
import { newDevice, newUser, openWorld, type TestWorld } from '../../support/application.ts'
import { storedTable } from '../../support/stored-table.ts'

function open(t: Test) {
  const world = openWorld(t.testdir())
  t.after(() => world.database.close())
  const letters = new AccountLetters(world.accounts, world.outbox, key => key === '+15550100')
  const appleConsents = new AppleConsents(world)
  return { world, appleConsents, methods: new LoginMethods({ ...world, letters, appleConsents }) }
}

function email(key: string) {
  return { kind: 'email', key, shown: key } as const
}

function apple(appleConsents: AppleConsents): SocialIdentity {
  const subject = { provider: 'apple', issuer: 'https://appleid.apple.com', subject: 's' }
  return { kind: 'social', ...subject, clientId: 'app', sealedRefreshToken: appleConsents.seal('r.1') }
}

/** The sent messages as texts: channel, address, content. */
async function sent(world: TestWorld): Promise<string[]> {
  const messages = await world.takeSent()
  return messages
    .map(message => {
      if (message.channel === 'push') return `push ${message.notice.kind}`
      if (message.channel === 'apple') return `apple ${message.clientId} ${message.refreshToken}`
      return `${message.channel} ${message.to} ${message.letter.kind}`
    })
    .sort()
}

t.test('an added method is announced to all others, not to itself', async t => {
  const { world, methods } = open(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const request = { userId: ann.userId, nowMs: world.nowMs() }
  await world.database.change(change =>
    methods.add(change, request, { kind: 'phone', key: '+84912345678', shown: '+84912345678' }),
  )
  t.same(await sent(world), ['mail ann@example.org login-method-added'])
  await world.database.change(change => methods.add(change, request, email('ann@example.com')))
  t.same(await sent(world), [
    'mail ann@example.org login-method-added',
    'sms +84912345678 login-method-added',
  ])
})

t.test('a replaced address hears that it is no longer in force, and opens nothing', async t => {
  const { world, methods } = open(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const request = { userId: ann.userId, nowMs: world.nowMs() + 5 }
  const [old] = world.database.view(view => methods.held(view, ann.userId)).methods
  if (old?.kind !== 'email') throw new Error('Ann has an email address')
  await world.database.change(change => methods.replace(change, request, old, email('ann@example.com')))
  t.same(await sent(world), ['mail ann@example.org address-replaced'])
  t.equal(
    world.database.view(view => world.accounts.ownerOf(view, 'email:ann@example.org')),
    undefined,
  )
  t.match(
    world.database.view(view => world.accounts.ownerOf(view, 'email:ann@example.com')),
    { userId: ann.userId, methodId: old.id },
  )
  t.match(
    world.database.view(view => methods.held(view, ann.userId)),
    { methods: [{ key: 'ann@example.com' }], primaryMethodId: old.id },
  )
})

t.test('a removed address hears of it, the other methods too, and the primary moves on', async t => {
  const { world, methods } = open(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const request = { userId: ann.userId, nowMs: world.nowMs() }
  const added = await world.database.change(change => methods.add(change, request, email('ann@example.com')))
  await world.takeSent()
  const { primaryMethodId } = world.database.view(view => methods.held(view, ann.userId))
  await world.database.change(change => methods.remove(change, request, primaryMethodId!))
  t.same(await sent(world), [
    'mail ann@example.com login-method-removed',
    'mail ann@example.org address-replaced',
  ])
  t.equal(world.database.view(view => methods.held(view, ann.userId)).primaryMethodId, added.id)
  t.equal(
    world.database.view(view => world.accounts.ownerOf(view, 'email:ann@example.org')),
    undefined,
  )
})

t.test('of two removals at once that would leave nothing, one is refused', async t => {
  const { world, methods } = open(t)
  const ann = await newUser(world)
  const request = { userId: ann.userId, nowMs: world.nowMs() }
  const added = await world.database.change(change => methods.add(change, request, email('ann@example.com')))
  const { primaryMethodId } = world.database.view(view => methods.held(view, ann.userId))
  const removals = [primaryMethodId!, added.id].map(id =>
    world.database.change(change => methods.remove(change, request, id)),
  )
  const outcomes = await Promise.allSettled(removals)
  t.match(outcomes, [{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'LAST_LOGIN_METHOD' } }])
  t.equal(world.database.view(view => methods.held(view, ann.userId)).methods.length, 1)
})

t.test('Apple hears of its own removed method', async t => {
  const { world, methods, appleConsents } = open(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const request = { userId: ann.userId, nowMs: world.nowMs() }
  const added = await world.database.change(change => methods.add(change, request, apple(appleConsents)))
  await world.takeSent()
  await world.database.change(change => methods.remove(change, request, added.id))
  t.same(await sent(world), ['apple app r.1', 'mail ann@example.org login-method-removed'])
})

t.test('the refresh token of Apple is not in the store as it is', async t => {
  const { world, methods, appleConsents } = open(t)
  const ann = await newUser(world)
  const request = { userId: ann.userId, nowMs: world.nowMs() }
  await world.database.change(change => methods.add(change, request, apple(appleConsents)))
  const rows = world.database.view(view => [...view.range(storedTable('login-methods'))])
  t.notOk(rows.some(({ value }) => Buffer.from(value).includes('r.1')))
})

t.test('a method of another account is taken, one of their own exists', async t => {
  const { world, methods } = open(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const bob = await newUser(world, 'Bob')
  t.equal(
    world.database.view(view => methods.refusalOf(view, bob.userId, email('ann@example.org'))),
    'taken',
  )
  t.equal(
    world.database.view(view => methods.refusalOf(view, ann.userId, email('ann@example.org'))),
    'METHOD_EXISTS',
  )
  t.equal(
    world.database.view(view => methods.refusalOf(view, bob.userId, email('bob@example.com'))),
    undefined,
  )
})

t.test('a new primary is announced to every method, the same one again to none', async t => {
  const { world, methods } = open(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const request = { userId: ann.userId, nowMs: world.nowMs() }
  const { primaryMethodId } = world.database.view(view => methods.held(view, ann.userId))
  const added = await world.database.change(change => methods.add(change, request, email('ann@example.com')))
  await world.takeSent()
  await world.database.change(change => methods.makePrimary(change, request, primaryMethodId!))
  t.same(await sent(world), [])
  await world.database.change(change => methods.makePrimary(change, request, added.id))
  t.same(await sent(world), [
    'mail ann@example.com primary-method-changed',
    'mail ann@example.org primary-method-changed',
  ])
  const unknown = world.database.change(change => methods.makePrimary(change, request, 5n))
  await t.rejects(unknown, { code: 'LOGIN_METHOD_NOT_FOUND' })
})

t.test('nothing is sent to the identifier of a reviewer', async t => {
  const { world, methods } = open(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const request = { userId: ann.userId, nowMs: world.nowMs() }
  await newDevice(world, ann.userId)
  await world.database.change(change =>
    methods.add(change, request, { kind: 'phone', key: '+15550100', shown: '+15550100' }),
  )
  await world.database.change(change => methods.add(change, request, email('ann@example.com')))
  t.notOk((await sent(world)).some(text => text.includes('+15550100')))
})

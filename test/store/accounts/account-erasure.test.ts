import t, { type Test } from 'tap'
import type { UserId } from '../../../src/domain/ids.ts'
import { AccountErasure, type EraseOf } from '../../../src/store/accounts/account-erasure.ts'
import { AccountLetters } from '../../../src/store/accounts/account-letters.ts'
import { AppleConsents } from '../../../src/store/accounts/apple-consents.ts'
import { LoginMethods } from '../../../src/store/accounts/login-methods.ts'
import { newDevice, newSession, newUser, openWorld } from '../../support/application.ts'

const DAY_MS = 86_400_000

function open(t: Test, erasers: readonly EraseOf[] = []) {
  const world = openWorld(t.testdir())
  t.after(() => world.database.close())
  const letters = new AccountLetters(world.accounts, world.outbox, () => false)
  const appleConsents = new AppleConsents(world)
  const parts = { ...world, letters, appleConsents }
  const erasure = new AccountErasure({ ...parts, erasers })
  const plan = (userId: UserId) =>
    world.database.change(change => erasure.plan(change, userId), world.nowMs())
  const restore = (userId: UserId) => world.database.change(change => erasure.restore(change, userId))
  return { world, appleConsents, plan, restore, methods: new LoginMethods(parts) }
}

t.test(
  'an account that is to be erased has no session any more, and pushes reach no device of it',
  async t => {
    const { world, plan } = open(t)
    const ann = await newUser(world, 'Ann', 'ann@example.org')
    const device = await newDevice(world, ann.userId)
    await newSession(world, ann.userId, device.deviceId)
    await plan(ann.userId)
    for (const id of world.database.view(view => world.sessions.idsOf(view, ann.userId))) {
      t.equal(world.database.view(view => world.sessions.read(view, id))?.revokedBecause, 'account_deleted')
    }
    t.equal(
      world.database.view(view => world.devices.active(view, ann.userId, device.deviceId))?.push,
      undefined,
    )
    t.match(await world.takeSent(), [
      { to: 'ann@example.org', letter: { kind: 'erasure-planned', graceDays: 7 } },
    ])
  },
)

t.test('it is there to the last moment of the seventh day, then gone', async t => {
  const erased = new Set<UserId>()
  const { world, plan } = open(t, [(_, userId) => void erased.add(userId)])
  const ann = await newUser(world)
  await plan(ann.userId)
  await world.advance(7 * DAY_MS - 1)
  t.ok(world.database.view(view => world.accounts.read(view, ann.userId)))
  t.equal(erased.size, 0)
  await world.advance(1)
  t.equal(
    world.database.view(view => world.accounts.read(view, ann.userId)),
    undefined,
  )
  t.same([...erased], [ann.userId])
  t.same(
    world.database.view(view => world.sessions.idsOf(view, ann.userId)),
    [],
  )
})

t.test('one that was restored stays', async t => {
  const { world, plan, restore } = open(t)
  const ann = await newUser(world)
  const before = world.database.view(view => world.accounts.read(view, ann.userId))
  await plan(ann.userId)
  await restore(ann.userId)
  await world.advance(30 * DAY_MS)
  t.same(
    world.database.view(view => world.accounts.read(view, ann.userId)),
    before,
  )
})

t.test('a second wish to be erased counts from its own day', async t => {
  const { world, plan, restore } = open(t)
  const ann = await newUser(world)
  await plan(ann.userId)
  await world.advance(5 * DAY_MS)
  await restore(ann.userId)
  await plan(ann.userId)
  await world.advance(3 * DAY_MS)
  t.ok(
    world.database.view(view => world.accounts.read(view, ann.userId)),
    'the first day has passed',
  )
  await world.advance(4 * DAY_MS)
  t.equal(
    world.database.view(view => world.accounts.read(view, ann.userId)),
    undefined,
  )
})

t.test('no other user is touched', async t => {
  const { world, plan } = open(t)
  const [ann, bob] = [await newUser(world, 'Ann'), await newUser(world, 'Bob')]
  await plan(ann.userId)
  await world.advance(7 * DAY_MS)
  t.ok(world.database.view(view => world.accounts.read(view, bob.userId)))
  t.equal(world.database.view(view => world.accounts.methodsOf(view, bob.userId)).length, 1)
  t.equal(world.database.view(view => world.sessions.idsOf(view, bob.userId)).length, 1)
})

t.test('Apple hears of the erased account’s consent only at its erasure', async t => {
  const { world, plan, methods, appleConsents } = open(t)
  const ann = await newUser(world)
  const request = { userId: ann.userId, nowMs: world.nowMs() }
  const subject = { provider: 'apple', issuer: 'https://appleid.apple.com', subject: 's', clientId: 'app' }
  await world.database.change(change =>
    methods.add(change, request, {
      kind: 'social',
      ...subject,
      sealedRefreshToken: appleConsents.seal('r.1'),
    }),
  )
  await plan(ann.userId)
  t.notOk((await world.takeSent()).some(({ channel }) => channel === 'apple'))
  await world.advance(7 * DAY_MS)
  t.match(await world.takeSent(), [{ channel: 'apple', clientId: 'app', refreshToken: 'r.1' }])
})

t.test('an identifier of an erased account is free for a new one', async t => {
  const { world, plan } = open(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  await plan(ann.userId)
  await world.advance(7 * DAY_MS)
  const again = await newUser(world, 'Ann', 'ann@example.org')
  t.not(again.userId, ann.userId)
})

/** Letters about an account: to whom they go, and what those by SMS cost. */

import t, { type Test } from 'tap'
import type { Address } from '../../../src/domain/accounts/challenge.ts'
import type { MethodId } from '../../../src/domain/ids.ts'
import { AccountLetters } from '../../../src/store/accounts/account-letters.ts'
import { SmsBudget } from '../../../src/store/accounts/sms-budget.ts'
import { newUser, openWorld } from '../../support/application.ts'

const LETTER = { kind: 'primary-method-changed' } as const
const PHONES = ['+84912345601', '+84912345602', '+15550100']

async function openStage(t: Test, dailyMax = 1_000) {
  const world = openWorld(t.testdir())
  t.teardown(() => world.database.close())
  const { database } = world
  const smsBudget = new SmsBudget(
    database,
    world.expiries,
    { rangeHourly: 30, networkHourly: 30, callingCodeHourly: 200, daily: dailyMax },
    () => undefined,
  )
  const letters = new AccountLetters(world.accounts, world.outbox, key => key === '+15550100', smsBudget)
  const { userId } = await newUser(world, 'Ann', 'ann@example.org')
  await database.change(change => {
    for (const [at, key] of PHONES.entries()) {
      const phone: Address = { kind: 'phone', key, shown: key }
      world.accounts.putMethod(change, userId, {
        ...phone,
        id: BigInt(at) as MethodId,
        addedAtMs: at,
        lastUsedAtMs: at,
      })
    }
  })
  return {
    world,
    smsBudget,
    async tellAll(): Promise<string[]> {
      await database.change(change => letters.tellAll(change, userId, LETTER), world.nowMs())
      const sent = await world.takeSent()
      return sent.map(message => `${message.channel} ${'to' in message ? message.to : ''}`)
    },
  }
}

t.test('every address gets the letter but reviewers’', async t => {
  const { tellAll } = await openStage(t)
  t.same(await tellAll(), ['mail ann@example.org', 'sms +84912345601', 'sms +84912345602'])
})

t.test(
  "letters by SMS take from the day's budget; without it the mail goes alone, till the next day",
  async t => {
    const { world, tellAll } = await openStage(t, 3)
    t.equal((await tellAll()).length, 3)
    t.same(await tellAll(), ['mail ann@example.org', 'sms +84912345601'])
    t.same(await tellAll(), ['mail ann@example.org'])
    await world.advance(87_000_000)
    t.equal((await tellAll()).length, 3)
  },
)

t.test('a letter is no unconfirmed code', async t => {
  const { world, smsBudget, tellAll } = await openStage(t)
  for (let count = 0; count < 30; count++) await tellAll()
  await world.advance(300_000)
  t.equal(
    await world.database.change(change => smsBudget.stopOf(change, { number: '+84912345601', network: '' })),
    undefined,
  )
})

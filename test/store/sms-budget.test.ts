/** The budget in the store, and what asking for codes by SMS meets when it is used up. */

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Address } from '../../src/domain/challenge.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { ChallengeStore } from '../../src/store/challenge-store.ts'
import { CodeSender } from '../../src/store/code-sender.ts'
import { Database } from '../../src/store/database.ts'
import { Expiries } from '../../src/store/expiries.ts'
import { SmsBudget } from '../../src/store/sms-budget.ts'

const VIETNAM = 0
const GERMANY = 1
const TEST: Address = { kind: 'phone', key: '+15550100', shown: '+15550100' }

function numberOf(country: number, at: number): Address {
  const start = country === VIETNAM ? '+8491234' : '+4915112345'
  const key = `${start}${String(at).padStart(4, '0')}`
  return { kind: 'phone', key, shown: key }
}

function openStage(t: Test, dailyMax = 1000, folder = t.testdir()) {
  const database = Database.open(folder)
  t.teardown(() => database.close())
  const pumped: string[] = []
  const otps: string[] = []
  const challenges = new ChallengeStore({
    database,
    expiries: new Expiries(database),
    secrets: deriveSecrets(Buffer.alloc(32, 5)),
    randomBytes,
    outbox: {
      add: message =>
        void ('letter' in message && message.letter.kind === 'otp' && otps.push(message.letter.otp)),
    },
    canSend: () => true,
    testCodes: new Map([[TEST.key, '424242']]),
    smsBudget: new SmsBudget({ database, dailyMax, onPumped: dialCode => pumped.push(dialCode) }),
  })
  const stage = {
    database,
    pumped,
    nowMs: Date.UTC(2026, 0, 1),
    begin: (address: Address) =>
      database.commit(() =>
        challenges.begin({ purpose: { kind: 'login' }, address, network: '', language: '' }, stage.nowMs),
      ),
    async accept(address: Address) {
      const { challengeId } = await stage.begin(address)
      const attempt = { challengeId, otp: otps.at(-1) ?? '424242', mayConfirm: () => true }
      return database.commit(() => challenges.confirm(attempt, stage.nowMs))
    },
  }
  return stage
}

t.test('fifty messages an hour go to one calling code, and others have fifty of their own', async t => {
  const stage = openStage(t)
  for (let at = 0; at < 50; at++) await stage.accept(numberOf(VIETNAM, at))
  await t.rejects(stage.begin(numberOf(VIETNAM, 50)), {
    code: 'DELIVERY_UNAVAILABLE',
    members: { retryIn: 3600 },
  })
  t.equal((await stage.begin(numberOf(GERMANY, 0))).channel, 'sms')
  stage.nowMs += 3_600_000
  t.equal((await stage.begin(numberOf(VIETNAM, 50))).channel, 'sms')
})

t.test('a calling code whose codes nobody confirms is stopped, and the operator told once', async t => {
  const stage = openStage(t)
  for (let at = 0; at < 20; at++) await stage.begin(numberOf(VIETNAM, at))
  stage.nowMs += 300_000
  for (let at = 20; at < 30; at++) {
    await t.rejects(stage.begin(numberOf(VIETNAM, at)), { code: 'DELIVERY_UNAVAILABLE' })
  }
  t.same(stage.pumped, ['+84'])
  t.equal((await stage.begin(numberOf(GERMANY, 0))).channel, 'sms')
})

t.test('a calling code whose codes are confirmed goes on', async t => {
  const stage = openStage(t)
  for (let at = 0; at < 20; at++) await (at < 18 ? stage.begin : stage.accept)(numberOf(VIETNAM, at))
  stage.nowMs += 300_000
  t.equal((await stage.begin(numberOf(VIETNAM, 20))).channel, 'sms')
})

t.test('the budget of the day survives a restart', async t => {
  const folder = t.testdir()
  const before = openStage(t, 2, folder)
  await before.accept(numberOf(VIETNAM, 0))
  await before.accept(numberOf(GERMANY, 0))
  await before.database.close()
  const after = openStage(t, 2, folder)
  await t.rejects(after.begin(numberOf(GERMANY, 1)), {
    code: 'DELIVERY_UNAVAILABLE',
    members: { retryIn: 86_400 },
  })
  t.equal((await after.accept(TEST)).kind, 'confirmed', 'to a test number nothing is sent')
})

t.test('a login that shares a code costs nothing', async t => {
  const stage = openStage(t, 1)
  await stage.begin(numberOf(VIETNAM, 0))
  t.equal((await stage.begin(numberOf(VIETNAM, 0))).resendIn, 60)
})

t.test('that codes are stopped is told by SMS as long as the budget of the day lasts', async t => {
  const database = Database.open(t.testdir())
  t.teardown(() => database.close())
  const told: string[] = []
  const sender = new CodeSender({
    secrets: deriveSecrets(Buffer.alloc(32, 5)),
    randomBytes,
    outbox: { add: message => void ('to' in message && told.push(message.to)) },
    canSend: () => true,
    testCodes: new Map(),
    smsBudget: new SmsBudget({ database, dailyMax: 2, onPumped: () => undefined }),
  })
  const mail: Address = { kind: 'email', key: 'ann@example.org', shown: 'ann@example.org' }
  const addresses = [0, 1, 2, 3].map(at => numberOf(VIETNAM, at))
  const nowMs = Date.UTC(2026, 0, 1)
  await database.commit(() => {
    for (const address of [...addresses, mail]) sender.tellStopped(address, nowMs)
  })
  t.same(told, [addresses[0]!.key, addresses[1]!.key, mail.key])
})

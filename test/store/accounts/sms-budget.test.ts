/** The budget of short messages in the store: honest countries, pumped ranges, and what those who ask hear of a stop. */

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { DEFAULT_SETTINGS } from '../../../src/domain/accounts/account.ts'
import type { Address } from '../../../src/domain/accounts/challenge.ts'
import type { SmsStop } from '../../../src/domain/accounts/sms-budget.ts'
import type { MethodId, UserId } from '../../../src/domain/ids.ts'
import type { OutboxMessage } from '../../../src/domain/messages/outbox-message.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { AccountStore } from '../../../src/store/accounts/account-store.ts'
import { ChallengeStore } from '../../../src/store/accounts/challenge-store.ts'
import { CodeSender } from '../../../src/store/accounts/code-sender.ts'
import { SmsBudget } from '../../../src/store/accounts/sms-budget.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { UserChanges } from '../../../src/store/operators/user-changes.ts'
import { atMoment } from '../../support/at-moment.ts'
import { long } from '../../support/size.ts'

const START_MS = Date.UTC(2026, 0, 1)
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const TEST: Address = { kind: 'phone', key: '+15550100', shown: '+15550100' }
const BUDGETS = { rangeHourly: 30, networkHourly: 30, callingCodeHourly: 200, daily: 10_000 }

/** A Vietnamese number; each range has ten thousand of them. */
function numberIn(range: number, at: number): Address {
  const key = `+849${1000 + range}${String(at).padStart(4, '0')}`
  return { kind: 'phone', key, shown: key }
}

interface StageOptions {
  readonly budgets?: Partial<typeof BUDGETS>
  readonly folder?: string
}

function openStage(t: Test, { budgets, folder = t.testdir() }: StageOptions = {}) {
  const database = LmdbStore.open(folder, { nowMs: () => stage.nowMs })
  t.teardown(() => database.close())
  const stops: SmsStop[] = []
  const sent: OutboxMessage[] = []
  const expiries = new Expiries()
  const accounts = new AccountStore(database, new UserChanges(expiries))
  const smsBudget = new SmsBudget(database, expiries, { ...BUDGETS, ...budgets }, stop => stops.push(stop))
  const challenges = new ChallengeStore({
    guessWatch: { missingMs: () => 0, count: () => undefined },
    knownSignIns: { askerOf: () => 'stranger', knowsPrefix: () => false },
    accounts,
    expiries,
    secrets: deriveSecrets(Buffer.alloc(32, 5)),
    randomBytes,
    outbox: { add: (_, message) => void sent.push(message) },
    canSend: () => true,
    testCodes: new Map([[TEST.key, '424242']]),
    smsBudget,
  })
  const stage = {
    database,
    expiries,
    smsBudget,
    stops,
    sent,
    nowMs: START_MS,
    begin: (address: Address, network = '') =>
      database.change(
        change => challenges.begin(change, { purpose: { kind: 'login' }, address, network, language: '' }),
        stage.nowMs,
      ),
    resend: (challengeId: string, channel?: 'email' | 'sms') =>
      database.change(
        change => challenges.resend(change, { challengeId, channel, network: '' }),
        stage.nowMs,
      ),
    async accept(address: Address, network = '') {
      const { challengeId } = await stage.begin(address, network)
      return stage.confirm(challengeId)
    },
    confirm(challengeId: string) {
      const attempt = { challengeId, otp: otpsOf(sent).at(-1) ?? '424242', mayConfirm: () => true }
      return database.change(change => challenges.confirm(change, attempt), stage.nowMs)
    },
    /** An account that signs in with these addresses. */
    addAccount: (...addresses: readonly Address[]) =>
      database.change(change => {
        const userId = BigInt(2 ** 33 + sent.length) as UserId
        const methods = addresses.map((address, at) => ({
          ...address,
          id: BigInt(at + 1) as MethodId,
          addedAtMs: stage.nowMs,
          lastUsedAtMs: stage.nowMs,
        }))
        const primaryMethodId = methods[0]!.id
        const settings = DEFAULT_SETTINGS
        accounts.put(change, userId, {
          displayName: 'Ann',
          createdAtMs: stage.nowMs,
          settings,
          primaryMethodId,
          acceptLanguage: '',
        })
        for (const method of methods) accounts.putMethod(change, userId, method)
      }),
    /** Has a range stopped by thirty requests for made-up numbers of it, from as many networks. */
    async pump(range: number) {
      for (let at = 0; at < 30; at++) await stage.begin(numberIn(range, at), `pump ${range} ${at}`)
    },
  }
  return stage
}

function otpsOf(sent: readonly OutboxMessage[]): string[] {
  return sent.flatMap(message =>
    'letter' in message && message.letter.kind === 'otp' ? [message.letter.otp] : [],
  )
}

t.test(
  'a country of ten thousand honest sign-ins an hour is never stopped, from its first one on',
  long(),
  async t => {
    const { smsBudget, database, stops } = openStage(t)
    // One in twelve never types the code; the rest take 15 to 75 seconds.
    const confirmations: { readonly atMs: number; readonly message: { number: string; network: string } }[] =
      []
    await database.change(change => {
      for (let at = 0; at < 20_000; at++) {
        const nowMs = START_MS + at * 360
        const message = { number: numberIn(at % 100, Math.floor(at / 100)).key, network: `n${at % 1_000}` }
        while (confirmations[0] !== undefined && confirmations[0].atMs <= nowMs) {
          const { atMs, message: confirmed } = confirmations.shift()!
          smsBudget.countConfirmed(atMoment(change, atMs), confirmed)
        }
        const then = atMoment(change, nowMs)
        if (smsBudget.stopOf(then, message) === undefined) smsBudget.countSent(then, message)
        if (at % 12 !== 0) confirmations.push({ atMs: nowMs + 45_000, message })
      }
    })
    t.same(stops, [])
  },
)

t.test(
  'requests for fifty made-up numbers stop neither their country nor the rest of their range',
  async t => {
    const stage = openStage(t)
    for (let at = 0; at < 50; at++) await stage.begin(numberIn(at % 5, at), `n${at}`)
    const reply = await stage.begin(numberIn(0, 5_000), 'home')
    t.equal(reply.smsStop, undefined)
    t.match(stage.sent.at(-1), { to: numberIn(0, 5_000).key })
  },
)

t.test('a pumped range is stopped alone, and the operator hears once which', async t => {
  const stage = openStage(t)
  await stage.pump(7)
  for (let at = 30; at < 60; at++) {
    t.match((await stage.begin(numberIn(7, at), `n${at}`)).smsStop, { scope: 'range', retryIn: 4200 })
  }
  t.equal(stage.sent.length, 30)
  t.match(stage.stops, [{ scope: 'range', name: '+8491007' }])
  t.equal((await stage.begin(numberIn(8, 0))).smsStop, undefined)
  stage.nowMs += 70 * MINUTE_MS
  t.equal((await stage.begin(numberIn(7, 70))).smsStop, undefined)
  t.equal(stage.sent.length, 32)
})

t.test('a range with less than a tenth of its codes confirmed is stopped, one with more is not', async t => {
  for (const [confirmed, isStopped] of [
    [9, true],
    [11, false],
  ] as const) {
    const { smsBudget, database } = openStage(t, { folder: t.testdir({ [confirmed]: {} }) })
    const stop = await database.change(change => {
      for (let at = 0; at < 100; at++) {
        const message = { number: numberIn(3, at).key, network: `n${at}` }
        smsBudget.countSent(change, message)
        if (at < confirmed) smsBudget.countConfirmed(change, message)
      }
      return smsBudget.stopOf(change, { number: numberIn(3, 100).key, network: 'x' })
    }, START_MS)
    t.equal(stop?.scope, isStopped ? 'range' : undefined)
  }
})

t.test('a network that asks for many ranges is stopped before their country is', async t => {
  const stage = openStage(t)
  for (let at = 0; at < 40; at++) await stage.begin(numberIn(at, 0), 'pump')
  t.match(stage.stops, [{ scope: 'network', name: 'pump' }])
  t.equal((await stage.begin(numberIn(50, 0), 'home')).smsStop, undefined)
})

t.test('a calling code stops at two hundred unconfirmed codes an hour, other codes go on', async t => {
  const stage = openStage(t)
  for (let at = 0; at < 250; at++) await stage.begin(numberIn(at, 0), `n${at}`)
  t.match(stage.stops, [{ scope: 'calling-code', name: '+84' }])
  const german: Address = { kind: 'phone', key: '+4915112345678', shown: '+4915112345678' }
  t.equal((await stage.begin(german)).smsStop, undefined)
})

t.test('the numbers of accounts are never stopped', async t => {
  const stage = openStage(t, { budgets: { daily: 40 } })
  const ann = numberIn(7, 9_999)
  await stage.addAccount(ann)
  await stage.pump(7)
  for (let at = 0; at < 40; at++) await stage.begin(numberIn(at, 0), `n${at}`)
  await stage.begin(ann, 'pump 7 0')
  t.match(stage.sent.at(-1), { channel: 'sms', to: ann.key })
  t.equal((await stage.accept(ann)).kind, 'confirmed')
})

t.test('while a range is stopped, a number with an account is answered like one without', async t => {
  const stage = openStage(t)
  const mail: Address = { kind: 'email', key: 'ann@example.org', shown: 'ann@example.org' }
  const [withAccount, without] = [numberIn(7, 1_111), numberIn(7, 2_111)]
  await stage.addAccount(withAccount, mail)
  await stage.pump(7)
  const story = async (address: Address) => {
    const first = await stage.begin(address, `of ${address.key}`)
    const again = await stage.begin(address, `of ${address.key}`)
    stage.nowMs += 5 * MINUTE_MS
    const bySms = await stage.resend(again.challengeId, 'sms')
    stage.nowMs += 10 * MINUTE_MS
    const byMail = await stage.resend(again.challengeId, 'email')
    stage.nowMs -= 15 * MINUTE_MS
    return [first, again, bySms, byMail].map(reply => ({ ...reply, challengeId: '' }))
  }
  const before = stage.sent.length
  const answers = await story(withAccount)
  t.match(answers[3], { channel: 'email', sentTo: '•••', smsStop: { scope: 'range' } })
  t.match(stage.sent.slice(before), [
    { channel: 'sms', to: withAccount.key },
    { channel: 'sms', to: withAccount.key },
    { channel: 'mail', to: mail.key },
  ])
  t.same(answers, await story(without))
  t.equal(stage.sent.length, before + 3, 'nothing goes to the number without an account')
})

t.test('a code that went to the mail address of the number’s account signs in', async t => {
  const stage = openStage(t)
  const ann = numberIn(7, 9_999)
  await stage.addAccount(ann, { kind: 'email', key: 'ann@example.org', shown: 'ann@example.org' })
  await stage.pump(7)
  const { challengeId } = await stage.begin(ann)
  stage.nowMs += MINUTE_MS
  await stage.resend(challengeId, 'email')
  t.match(await stage.confirm(challengeId), { kind: 'confirmed', address: ann })
})

t.test('without a stop, a number’s code goes by no other channel', async t => {
  const stage = openStage(t)
  const ann = numberIn(7, 9_999)
  await stage.addAccount(ann, { kind: 'email', key: 'ann@example.org', shown: 'ann@example.org' })
  const { challengeId } = await stage.begin(ann)
  stage.nowMs += MINUTE_MS
  await t.rejects(stage.resend(challengeId, 'email'), { code: 'VALIDATION_FAILED' })
})

t.test('the budget of the day counts unconfirmed codes, and survives a restart', async t => {
  const folder = t.testdir()
  const budgets = { daily: 2 }
  const before = openStage(t, { budgets, folder })
  await before.begin(numberIn(0, 0))
  await before.begin(numberIn(1, 0))
  await before.database.close()
  const after = openStage(t, { budgets, folder })
  t.match((await after.begin(numberIn(2, 1))).smsStop, { scope: 'all', retryIn: 87_000 })
  t.equal((await after.accept(TEST)).kind, 'confirmed', 'to a test number nothing is sent')
})

t.test('nothing of ranges and networks is left when their day has ended', async t => {
  const stage = openStage(t)
  for (let at = 0; at < 20; at++) await stage.begin(numberIn(at, 0), `n${at}`)
  const rows = () => stage.database.rowCount(stage.database.storedRows('sms-tallies'))
  t.equal(rows(), 40)
  stage.nowMs += 25 * HOUR_MS
  while ((await stage.expiries.sweep(stage.database, stage.nowMs, 500)) > 0);
  t.equal(rows(), 0)
})

t.test('a login that shares a code costs nothing', async t => {
  const stage = openStage(t, { budgets: { rangeHourly: 1 } })
  await stage.begin(numberIn(0, 0))
  await stage.begin(numberIn(0, 0))
  t.equal(stage.sent.length, 1)
})

t.test('a stop of codes is announced by SMS as long as the budget of the day lasts', async t => {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const told: string[] = []
  const sender = new CodeSender({
    accounts: new AccountStore(database, new UserChanges(new Expiries())),
    secrets: deriveSecrets(Buffer.alloc(32, 5)),
    randomBytes,
    outbox: { add: (_, message) => void ('to' in message && told.push(message.to)) },
    canSend: () => true,
    testCodes: new Map(),
    smsBudget: new SmsBudget(database, new Expiries(), { ...BUDGETS, daily: 2 }, () => undefined),
  })
  const mail: Address = { kind: 'email', key: 'ann@example.org', shown: 'ann@example.org' }
  const addresses = [0, 1, 2, 3].map(at => numberIn(0, at))
  await database.change(change => {
    for (const address of [...addresses, mail]) sender.tellStopped(change, address)
  }, START_MS)
  t.same(told, [addresses[0]!.key, addresses[1]!.key, mail.key])
})

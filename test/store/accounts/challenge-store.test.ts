/** Challenges in a real store: races, attacks on an owner's challenge, limits over restarts, traces on the disk. */

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Address, ChallengePurpose } from '../../../src/domain/accounts/challenge.ts'
import type { Asker } from '../../../src/domain/accounts/known-sign-in.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import type { OutboxMessage } from '../../../src/domain/messages/outbox-message.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { AccountStore } from '../../../src/store/accounts/account-store.ts'
import {
  type ChallengeReply,
  ChallengeStore,
  type Confirmation,
} from '../../../src/store/accounts/challenge-store.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { OutboxStore } from '../../../src/store/messages/outbox-store.ts'
import { UserChanges } from '../../../src/store/operators/user-changes.ts'

const START_MS = Date.UTC(2026, 0, 1)
const ANN: Address = { kind: 'email', key: 'ann@example.org', shown: 'Ann@example.org' }
const BOB: Address = { kind: 'phone', key: '+84912345678', shown: '+84912345678' }
const REVIEWER: Address = { kind: 'phone', key: '+15550100', shown: '+15550100' }
const LOGIN: ChallengePurpose = { kind: 'login' }
const IDENTITY = {
  kind: 'social',
  provider: 'google',
  issuer: 'https://accounts.example',
  subject: 's',
} as const
const SECRETS = deriveSecrets(Buffer.alloc(32, 5))
const ANYTHING = () => true

interface Stage {
  readonly folder: string
  readonly database: LmdbStore
  readonly challenges: ChallengeStore
  readonly expiries: Expiries
  readonly rowCount: (table: string) => number
  /** Everything that was put into the outbox. */
  readonly sent: OutboxMessage[]
  readonly channels: Set<string>
  /** The account's knowledge of the asker. */
  asker: Asker
  nowMs: number
  begin(address?: Address, network?: string, purpose?: ChallengePurpose): Promise<ChallengeReply>
  resend(challengeId: string): Promise<ChallengeReply>
  confirm(challengeId: string, otp: string): Promise<Confirmation>
  /** The last code that was sent. */
  lastOtp(): string
  sweep(): Promise<void>
}

function openStage(t: Test, folder = t.testdir(), nowMs = START_MS, secrets = SECRETS): Stage {
  const database = LmdbStore.open(folder, { nowMs: () => stage.nowMs })
  const expiries = new Expiries()
  const outbox = new OutboxStore(database, secrets, randomBytes)
  const sent: OutboxMessage[] = []
  const channels = new Set(['mail', 'sms'])
  const challenges = new ChallengeStore({
    guessWatch: { missingMs: () => 0, count: () => undefined },
    knownSignIns: { askerOf: () => stage.asker, knowsPrefix: () => false },
    accounts: new AccountStore(database, new UserChanges(expiries)),
    expiries,
    secrets,
    randomBytes,
    outbox: {
      add(change, message) {
        sent.push(message)
        outbox.add(change, message)
      },
    },
    canSend: channel => channels.has(channel),
    testCodes: new Map([[REVIEWER.key, '424242']]),
  })
  t.teardown(() => database.close())
  const stage: Stage = {
    folder,
    database,
    challenges,
    expiries,
    sent,
    channels,
    asker: 'stranger',
    nowMs,
    rowCount: table => database.rowCount(database.storedRows(table)),
    begin: (address = ANN, network = 'home', purpose = LOGIN) =>
      database.change(
        change => challenges.begin(change, { purpose, address, network, language: 'en' }),
        stage.nowMs,
      ),
    resend: challengeId =>
      database.change(change => challenges.resend(change, { challengeId, network: 'home' }), stage.nowMs),
    confirm: (challengeId, otp) =>
      database.change(
        change => challenges.confirm(change, { challengeId, otp, mayConfirm: ANYTHING }),
        stage.nowMs,
      ),
    lastOtp: () => otps(sent).at(-1) ?? '',
    async sweep() {
      while ((await expiries.sweep(database, stage.nowMs, 500)) > 0);
    },
  }
  return stage
}

function otps(sent: readonly OutboxMessage[]): string[] {
  return sent.flatMap(message =>
    'letter' in message && message.letter.kind === 'otp' ? [message.letter.otp] : [],
  )
}

/** A code that is not this one. */
function otherThan(otp: string, by = 1): string {
  return String((Number(otp) + by) % 1_000_000).padStart(6, '0')
}

function codeOf(confirmation: Confirmation): string {
  return confirmation.kind === 'refused' ? confirmation.code : confirmation.kind
}

/** Tries as many wrong codes as a challenge takes. */
async function burn(stage: Stage, challengeId: string): Promise<void> {
  for (let by = 1; by <= 5; by++) await stage.confirm(challengeId, otherThan(stage.lastOtp(), by))
}

t.test('a code that was sent is accepted once, by its challenge', async t => {
  const stage = openStage(t)
  const reply = await stage.begin()
  t.match(reply, {
    challengeId: /^[A-Za-z0-9_-]{22}$/,
    channel: 'email',
    sentTo: 'a•••@example.org',
    otpLength: 6,
    expiresIn: 300,
    resendIn: 60,
  })
  t.match(stage.sent, [
    { channel: 'mail', to: 'ann@example.org', letter: { kind: 'otp', otp: /^\d{6}$/, lifetimeS: 300 } },
  ])
  const confirmed = await stage.confirm(reply.challengeId, stage.lastOtp())
  t.match(confirmed, { kind: 'confirmed', purpose: LOGIN, address: ANN })
  t.equal(codeOf(await stage.confirm(reply.challengeId, stage.lastOtp())), 'CHALLENGE_GONE')
})

t.test('of a hundred guesses at once five are compared', async t => {
  const stage = openStage(t)
  const { challengeId } = await stage.begin()
  const guesses = Array.from({ length: 99 }, (_, at) => otherThan(stage.lastOtp(), at + 1))
  const outcomes = await Promise.all(
    [...guesses, stage.lastOtp()].map(otp => stage.confirm(challengeId, otp)),
  )
  const count = (code: string) => outcomes.filter(outcome => codeOf(outcome) === code).length
  t.same([count('OTP_INVALID'), count('CHALLENGE_GONE'), count('confirmed')], [5, 95, 0])
  const left = outcomes.flatMap(each => (each.kind === 'refused' ? (each.attemptsLeft ?? []) : []))
  t.same(left, [4, 3, 2, 1, 0])
})

t.test('of the same code sent a hundred times at once one signs in', async t => {
  const stage = openStage(t)
  const { challengeId } = await stage.begin()
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, () => stage.confirm(challengeId, stage.lastOtp())),
  )
  t.equal(outcomes.filter(({ kind }) => kind === 'confirmed').length, 1)
})

t.test('two logins at once send one code, and each has a challenge of its own', async t => {
  const stage = openStage(t)
  const replies = await Promise.all([stage.begin(), stage.begin()])
  t.equal(stage.sent.length, 1)
  t.not(replies[0].challengeId, replies[1].challengeId)
  t.equal((await stage.confirm(replies[1].challengeId, stage.lastOtp())).kind, 'confirmed')
  t.equal(codeOf(await stage.confirm(replies[0].challengeId, stage.lastOtp())), 'CHALLENGE_GONE')
})

t.test('a login in the cooldown tells the times that are left', async t => {
  const stage = openStage(t)
  await stage.begin()
  stage.nowMs += 59_001
  t.match(await stage.begin(), { expiresIn: 241, resendIn: 1 })
  t.equal(stage.sent.length, 1)
  stage.nowMs += 999
  t.match(await stage.begin(), { expiresIn: 300, resendIn: 120 })
  t.equal(stage.sent.length, 2)
})

t.test('an attacker who knows only the address can not use up the owner’s tries', async t => {
  for (const network of ['elsewhere', 'home']) {
    const stage = openStage(t, t.testdir({ [network]: {} }))
    const owner = await stage.begin()
    for (let login = 0; login < 4; login++) await burn(stage, (await stage.begin(ANN, network)).challengeId)
    t.equal((await stage.confirm(owner.challengeId, stage.lastOtp())).kind, 'confirmed', network)
  }
})

t.test('nor can they displace the challenge of its owner by asking for more', async t => {
  for (const network of ['elsewhere', 'home']) {
    const stage = openStage(t, t.testdir({ [network]: {} }))
    const owner = await stage.begin()
    for (let login = 0; login < 20; login++) await stage.begin(ANN, network)
    t.equal((await stage.confirm(owner.challengeId, stage.lastOtp())).kind, 'confirmed', network)
  }
})

t.test('an owner who comes after an attacker is served, and stays', async t => {
  const stage = openStage(t)
  for (let login = 0; login < 5; login++) await stage.begin(ANN, 'elsewhere')
  const owner = await stage.begin()
  for (let login = 0; login < 5; login++) await stage.begin(ANN, 'elsewhere')
  t.equal((await stage.confirm(owner.challengeId, stage.lastOtp())).kind, 'confirmed')
})

t.test('more than twenty wrong codes in an hour stop new challenges, not the one the owner has', async t => {
  const stage = openStage(t)
  const owner = await stage.begin()
  for (let login = 0; login < 4; login++) await burn(stage, (await stage.begin(ANN, 'x')).challengeId)
  await t.rejects(stage.begin(ANN, 'x'), { code: 'RATE_LIMITED', members: { retryIn: 3600 } })
  t.equal((await stage.confirm(owner.challengeId, stage.lastOtp())).kind, 'confirmed')
})

t.test('at most three challenges of a code work', async t => {
  const stage = openStage(t)
  const ids: string[] = []
  for (let login = 0; login < 6; login++) ids.push((await stage.begin()).challengeId)
  const outcomes: string[] = []
  for (const id of ids) outcomes.push(codeOf(await stage.confirm(id, otherThan(stage.lastOtp()))))
  t.equal(outcomes.filter(code => code === 'OTP_INVALID').length, 3)
  t.equal(outcomes.at(-1), 'OTP_INVALID', 'the newest is one of them')
  t.equal(stage.rowCount('challenges'), 3, 'of the others nothing is left')
})

t.test('a resend replaces the code, begins the lifetime anew and leaves the tries used', async t => {
  const stage = openStage(t)
  const { challengeId } = await stage.begin()
  const first = stage.lastOtp()
  for (let by = 1; by <= 3; by++) await stage.confirm(challengeId, otherThan(first, by))
  await t.rejects(stage.resend(challengeId), { code: 'OTP_COOLDOWN', members: { retryIn: 60 } })
  stage.nowMs += 60_000
  t.match(await stage.resend(challengeId), { challengeId, expiresIn: 300, resendIn: 120 })
  const second = stage.lastOtp()
  if (first !== second)
    t.match(await stage.confirm(challengeId, first), { code: 'OTP_INVALID', attemptsLeft: 1 })
  stage.nowMs += 299_999
  t.equal((await stage.confirm(challengeId, second)).kind, 'confirmed')
})

t.test('a code that was accepted ends the cooldown', async t => {
  const stage = openStage(t)
  await stage.confirm((await stage.begin()).challengeId, stage.lastOtp())
  t.match(await stage.begin(), { resendIn: 60 })
  t.equal(stage.sent.length, 2)
})

t.test('five codes go out in an hour and ten in a day', async t => {
  const stage = openStage(t)
  const accept = async () => stage.confirm((await stage.begin()).challengeId, stage.lastOtp())
  for (let send = 0; send < 5; send++) t.equal((await accept()).kind, 'confirmed')
  await t.rejects(stage.begin(), { code: 'RATE_LIMITED', members: { retryIn: 3600, scope: 'identifier' } })
  stage.nowMs += 3_600_000
  for (let send = 0; send < 5; send++) await accept()
  stage.nowMs += 3_600_000
  await t.rejects(stage.begin(), { code: 'RATE_LIMITED', members: { retryIn: 22 * 3600 } })
  t.equal(stage.sent.length, 10)
})

t.test('messages for all purposes count for one address', async t => {
  const stage = openStage(t)
  for (let user = 1n; user <= 5n; user++) {
    await stage.begin(ANN, 'home', { kind: 'bind', userId: user as UserId })
  }
  await t.rejects(stage.begin(), { code: 'RATE_LIMITED' })
})

t.test('other users who bind the address do not make its owner wait', async t => {
  const stage = openStage(t)
  await stage.begin(ANN, 'x', { kind: 'bind', userId: 1n as UserId })
  const owner = await stage.begin()
  t.equal(stage.sent.length, 2)
  t.equal((await stage.confirm(owner.challengeId, stage.lastOtp())).kind, 'confirmed')
})

t.test('a code is too old after five minutes, and its challenge known for an hour', async t => {
  const stage = openStage(t)
  const { challengeId } = await stage.begin()
  stage.nowMs += 300_000
  t.equal(codeOf(await stage.confirm(challengeId, stage.lastOtp())), 'OTP_EXPIRED')
  t.equal((await stage.resend(challengeId)).challengeId, challengeId)
  stage.nowMs += 3_600_000
  t.equal(codeOf(await stage.confirm(challengeId, stage.lastOtp())), 'CHALLENGE_GONE', 'before any sweep')
})

t.test('after a clock was a day ahead, its codes are over, and its counts keep no code away', async t => {
  const stage = openStage(t)
  stage.nowMs += 86_400_000
  const ahead = await stage.begin()
  const otpAhead = stage.lastOtp()
  for (let by = 1; by < 5; by++) await stage.begin(ANN, 'x', { kind: 'bind', userId: BigInt(by) as UserId })
  stage.nowMs = START_MS
  t.equal(codeOf(await stage.confirm(ahead.challengeId, otpAhead)), 'CHALLENGE_GONE')
  const { challengeId, expiresIn, resendIn } = await stage.begin()
  t.same({ expiresIn, resendIn }, { expiresIn: 300, resendIn: 60 })
  t.equal(codeOf(await stage.confirm(ahead.challengeId, otpAhead)), 'CHALLENGE_GONE')
  t.equal(codeOf(await stage.confirm(challengeId, stage.lastOtp())), 'confirmed')
})

t.test('a clock that is set back by a second makes neither a code old nor a cooldown short', async t => {
  const stage = openStage(t)
  const { challengeId } = await stage.begin()
  stage.nowMs -= 1_000
  t.match(await stage.begin(), { resendIn: 61 })
  t.equal(stage.sent.length, 1)
  t.equal(codeOf(await stage.confirm(challengeId, stage.lastOtp())), 'confirmed')
})

t.test('a challenge that may not be confirmed is as if it were not there, and costs no try', async t => {
  const stage = openStage(t)
  const { challengeId } = await stage.begin(ANN, 'home', { kind: 'step-up', userId: 1n as UserId })
  const attempt = { challengeId, otp: stage.lastOtp(), mayConfirm: () => false }
  const outcome = await stage.database.change(
    change => stage.challenges.confirm(change, attempt),
    stage.nowMs,
  )
  t.equal(codeOf(outcome), 'CHALLENGE_GONE')
  t.match(await stage.confirm(challengeId, otherThan(stage.lastOtp())), { attemptsLeft: 4 })
})

t.test('no other spelling of a challenge id is taken', async t => {
  const stage = openStage(t)
  const { challengeId } = await stage.begin()
  const padded = `${challengeId.slice(0, -1)}${challengeId.endsWith('A') ? 'B' : 'z'}`
  for (const id of ['', 'x', padded, `${challengeId}=`, `${challengeId} `, challengeId.slice(0, -1)]) {
    t.equal(codeOf(await stage.confirm(id, stage.lastOtp())), 'CHALLENGE_GONE', id)
  }
  t.equal((await stage.confirm(challengeId, stage.lastOtp())).kind, 'confirmed')
})

t.test('a login by address has tries of its own', async t => {
  const stage = openStage(t)
  const byAddress = (otp: string) =>
    stage.database.change(change => stage.challenges.confirmLogin(change, ANN, otp, 'home'), stage.nowMs)
  t.equal(codeOf(await byAddress('123456')), 'CHALLENGE_GONE')
  const { challengeId } = await stage.begin()
  for (let by = 1; by <= 5; by++) await byAddress(otherThan(stage.lastOtp(), by))
  t.equal(codeOf(await byAddress(stage.lastOtp())), 'CHALLENGE_GONE')
  t.match(await stage.confirm(challengeId, otherThan(stage.lastOtp())), { attemptsLeft: 4 })
  await stage.begin()
  t.equal((await byAddress(stage.lastOtp())).kind, 'confirmed', 'a new login brings new ones')
})

/** Tries as many wrong codes as strangers may on this day: thirty. */
async function burnDay(stage: Stage): Promise<void> {
  for (const logins of [4, 2]) {
    for (let login = 0; login < logins; login++) await burn(stage, (await stage.begin()).challengeId)
    stage.nowMs += 3_600_000
  }
  stage.nowMs += 22 * 3_600_000
}

t.test('thirty wrong codes of strangers are compared in a day, and no more', async t => {
  const stage = openStage(t)
  for (let login = 0; login < 4; login++) await burn(stage, (await stage.begin()).challengeId)
  stage.nowMs += 3_600_000
  const ids: string[] = []
  for (let login = 0; login < 3; login++) ids.push((await stage.begin()).challengeId)
  for (const id of ids) await burn(stage, id)
  t.match(await stage.confirm(ids[2]!, stage.lastOtp()), { code: 'RATE_LIMITED', waitMs: 23 * 3_600_000 })
  await t.rejects(stage.begin(), { code: 'RATE_LIMITED' })
})

t.test('a hundred wrong codes in a row stop codes for a day, and the owner hears of it once', async t => {
  const stage = openStage(t)
  for (let day = 0; day < 3; day++) await burnDay(stage)
  for (let login = 0; login < 2; login++) await burn(stage, (await stage.begin()).challengeId)
  stage.nowMs += 3_600_000
  const told = stage.sent.filter(each => 'letter' in each && each.letter.kind === 'codes-stopped')
  t.match(told, [{ to: 'ann@example.org' }])
  const sentCount = stage.sent.length
  await t.rejects(stage.begin(), { code: 'RATE_LIMITED', members: { retryIn: 23 * 3600 } })
  stage.nowMs += 23 * 3_600_000
  t.equal((await stage.begin()).resendIn, 60)
  t.equal(stage.sent.length, sentCount + 1)
})

t.test('a restart forgets neither codes nor counts', async t => {
  const folder = t.testdir()
  const before = openStage(t, folder)
  const { challengeId } = await before.begin()
  for (let by = 1; by <= 4; by++) await before.confirm(challengeId, otherThan(before.lastOtp(), by))
  await before.begin(BOB)
  await before.database.close()
  const after = openStage(t, folder, before.nowMs)
  t.match(await after.confirm(challengeId, otherThan(otps(before.sent)[0]!)), { attemptsLeft: 0 })
  t.equal(codeOf(await after.confirm(challengeId, otps(before.sent)[0]!)), 'CHALLENGE_GONE')
  for (let login = 0; login < 3; login++) await burn(after, (await after.begin()).challengeId)
  t.equal(after.sent.length, 0, 'the cooldown goes on')
  await t.rejects(after.begin(), { code: 'RATE_LIMITED' })
})

t.test('to a test address nothing is sent, its code is fixed, and no limit of sending stops it', async t => {
  const stage = openStage(t)
  stage.channels.clear()
  for (let login = 0; login < 30; login++) {
    const { challengeId, resendIn } = await stage.begin(REVIEWER)
    await stage.resend(challengeId)
    if (resendIn !== 60) t.fail(`resendIn ${resendIn}`)
    const outcome = login % 5 === 0 ? await stage.confirm(challengeId, '424242') : undefined
    if (outcome?.kind === 'refused') t.fail(`login ${login}`)
  }
  t.same(stage.sent, [])
})

t.test('tries and failures of a test address are counted like any other', async t => {
  const stage = openStage(t)
  const { challengeId } = await stage.begin(REVIEWER)
  for (let by = 1; by <= 5; by++) await stage.confirm(challengeId, otherThan('424242', by))
  t.equal(codeOf(await stage.confirm(challengeId, '424242')), 'CHALLENGE_GONE')
  for (let login = 0; login < 3; login++) {
    const next = await stage.begin(REVIEWER)
    for (let by = 1; by <= 5; by++) await stage.confirm(next.challengeId, otherThan('424242', by))
  }
  await t.rejects(stage.begin(REVIEWER), { code: 'RATE_LIMITED' })
})

t.test('the owner hears of another user’s attempt to bind the address, and no code is sent', async t => {
  const stage = openStage(t)
  const purpose: ChallengePurpose = { kind: 'bind', userId: 1n as UserId, isTaken: true }
  const taken = await stage.begin(ANN, 'home', purpose)
  const free = await stage.begin({ ...ANN, key: 'amy@example.org' }, 'home', {
    kind: 'bind',
    userId: 1n as UserId,
  })
  t.match(stage.sent, [{ letter: { kind: 'address-tried' } }, { letter: { kind: 'otp' } }])
  t.same({ ...taken, challengeId: '' }, { ...free, challengeId: '' })
  stage.nowMs += 60_000
  await stage.resend(taken.challengeId)
  t.match(stage.sent.at(-1), { letter: { kind: 'address-tried' } })
})

t.test('without a way to send, no challenge is made', async t => {
  const stage = openStage(t)
  stage.channels.delete('sms')
  await t.rejects(stage.begin(BOB), { code: 'DELIVERY_UNAVAILABLE' })
  t.equal((await stage.begin()).channel, 'email')
})

t.test('neither a code nor its hash without the key is in the files of the store', async t => {
  const stage = openStage(t)
  await stage.begin()
  const otp = stage.lastOtp()
  await stage.begin(BOB)
  const bytes = readFileSync(join(stage.folder, 'store', 'data.mdb'))
  t.equal(bytes.indexOf('ann@example.org') >= 0, true, 'the rows are in this file')
  t.equal(bytes.indexOf(otp), -1)
  t.equal(bytes.indexOf(stage.lastOtp()), -1)
})

t.test('of challenges that are over nothing is left', async t => {
  const stage = openStage(t)
  for (let round = 0; round < 20; round++) {
    await stage.database.change(change => {
      for (let at = 0; at < 250; at++) {
        const address: Address = { ...ANN, key: `user${round}-${at}@example.org` }
        stage.challenges.begin(change, { purpose: LOGIN, address, network: 'x', language: '' })
      }
    }, stage.nowMs)
  }
  const rowCounts = () => ['codes', 'challenges', 'code-counts', 'expiries'].map(stage.rowCount)
  t.same(rowCounts(), [5_000, 5_000, 5_000, 10_000])
  stage.nowMs += 3_600_000
  await stage.sweep()
  t.same(rowCounts(), [0, 0, 5_000, 5_000])
  stage.nowMs += 23 * 3_600_000
  await stage.sweep()
  t.same(rowCounts(), [0, 0, 0, 0])
})

t.test('a code that is sent again outlives the ending of the first one', async t => {
  const stage = openStage(t)
  const { challengeId } = await stage.begin()
  stage.nowMs += 3_500_000
  await stage.resend(challengeId)
  stage.nowMs += 200_000
  await stage.sweep()
  t.equal((await stage.confirm(challengeId, stage.lastOtp())).kind, 'confirmed')
})

t.test('a new code after one that was over and not yet swept leaves no challenge behind', async t => {
  const stage = openStage(t)
  await stage.begin()
  stage.nowMs += 3_700_000
  await stage.begin()
  t.equal(stage.rowCount('challenges'), 1)
})

t.test('while codes are stopped, no other code for the address is taken either', async t => {
  const stage = openStage(t)
  for (let day = 0; day < 3; day++) await burnDay(stage)
  const other = await stage.begin(ANN, 'home', { kind: 'link', userId: 1n as UserId, identity: IDENTITY })
  const otp = stage.lastOtp()
  for (let login = 0; login < 2; login++) await burn(stage, (await stage.begin()).challengeId)
  t.equal(codeOf(await stage.confirm(other.challengeId, otp)), 'CHALLENGE_GONE')
})

t.test('an accepted code ends the row of failures', async t => {
  const stage = openStage(t)
  for (let day = 0; day < 6; day++) {
    await burnDay(stage)
    const { challengeId } = await stage.begin()
    if (day === 2) await stage.confirm(challengeId, stage.lastOtp())
    stage.nowMs += 3_600_000
  }
  t.same(
    stage.sent.filter(each => 'letter' in each && each.letter.kind !== 'otp'),
    [],
  )
})

t.test(
  'the limits that strangers have used up leave the owner four codes a day, by network and by token',
  async t => {
    const stage = openStage(t)
    for (let user = 1n; user <= 5n; user++)
      await stage.begin(ANN, 'x', { kind: 'bind', userId: user as UserId })
    await t.rejects(stage.begin(), { code: 'RATE_LIMITED' })
    const refusals: string[] = []
    for (const asker of ['network', 'token'] as const) {
      stage.asker = asker
      for (let send = 0; send < 5; send++) {
        const reply = await stage.begin().catch(({ code }) => code as string)
        if (typeof reply === 'string') refusals.push(`${asker} ${send} ${reply}`)
        else t.equal((await stage.confirm(reply.challengeId, stage.lastOtp())).kind, 'confirmed')
      }
    }
    t.same(refusals, ['network 4 RATE_LIMITED', 'token 4 RATE_LIMITED'])
  },
)

t.test('where no new code may be sent, the living one is sent again, the same for the same time', async t => {
  const stage = openStage(t)
  for (let user = 1n; user <= 4n; user++)
    await stage.begin(ANN, 'x', { kind: 'bind', userId: user as UserId })
  const { challengeId } = await stage.begin()
  const otp = stage.lastOtp()
  stage.nowMs += 60_000
  t.match(await stage.resend(challengeId), { challengeId, expiresIn: 240 })
  t.equal(stage.sent.length, 6)
  t.equal(stage.lastOtp(), otp)
  t.match(stage.sent.at(-1), { letter: { lifetimeS: 240 } })
  await t.rejects(stage.resend(challengeId), { code: 'OTP_COOLDOWN' })
  stage.nowMs += 120_000
  t.match(await stage.resend(challengeId), { expiresIn: 120 })
  t.equal((await stage.confirm(challengeId, otp)).kind, 'confirmed')
})

t.test('a living code that another secret has sealed is not sent again', async t => {
  const folder = t.testdir()
  const before = openStage(t, folder)
  const { challengeId } = await before.begin()
  await before.database.close()
  const after = openStage(t, folder, START_MS + 60_000, deriveSecrets(Buffer.alloc(32, 6)))
  for (let user = 1n; user <= 4n; user++)
    await after.begin(ANN, 'x', { kind: 'bind', userId: user as UserId })
  await t.rejects(after.resend(challengeId), { code: 'RATE_LIMITED' })
})

t.test('who names the address has no tries beyond the twenty of an hour', async t => {
  const stage = openStage(t)
  for (let login = 0; login < 4; login++) await burn(stage, (await stage.begin()).challengeId)
  const outcome = await stage.database.change(
    change => stage.challenges.confirmLogin(change, ANN, stage.lastOtp(), 'home'),
    stage.nowMs,
  )
  t.match(outcome, { code: 'RATE_LIMITED', waitMs: 3_600_000 })
})

/**
 * A week of attacks on one person's address, with every request that a stranger can send, from one network to a thousand,
 * at several paces. The owner comes three times a day, from home or with the app's last refresh token, and signs in each
 * time.
 */

import t, { type Test } from 'tap'
import type { Address, ChallengePurpose } from '../../../src/domain/accounts/challenge.ts'
import type { SmsStop } from '../../../src/domain/accounts/sms-budget.ts'
import { formatRefreshToken } from '../../../src/domain/accounts/token.ts'
import type { MethodId, UserId } from '../../../src/domain/ids.ts'
import type { OutboxMessage } from '../../../src/domain/messages/outbox-message.ts'
import { SignalError } from '../../../src/errors.ts'
import { ChallengeStore } from '../../../src/store/accounts/challenge-store.ts'
import { SmsBudget } from '../../../src/store/accounts/sms-budget.ts'
import type { Change } from '../../../src/store/engine/store.ts'
import { newSession, newUser, openWorld } from '../../support/application.ts'
import { atMoment } from '../../support/at-moment.ts'
import { long } from '../../support/size.ts'

const HOUR_MS = 3_600_000
const WEEK_MS = 7 * 24 * HOUR_MS
const MAIL: Address = { kind: 'email', key: 'ann@example.org', shown: 'ann@example.org' }
const PHONE: Address = { kind: 'phone', key: '+84912345678', shown: '+84912345678' }

async function openStage(t: Test, address = MAIL) {
  const world = openWorld(t.testdir(), undefined, { rehearses: false })
  t.teardown(() => world.database.close())
  const { userId } = await newUser(world, 'Ann', MAIL.key)
  const method = { ...PHONE, id: 1n as MethodId, addedAtMs: 1, lastUsedAtMs: 1 }
  await world.database.change(change => world.accounts.putMethod(change, userId, method))
  const mails: string[] = []
  const outbox = {
    add(_: Change, message: OutboxMessage) {
      const isToAnn = 'to' in message && message.to === address.key
      if (isToAnn && message.letter.kind === 'otp') mails.push(message.letter.otp)
    },
  }
  const stops: SmsStop[] = []
  const smsBudget = new SmsBudget(
    world.database,
    world.expiries,
    { rangeHourly: 30, networkHourly: 30, callingCodeHourly: 200, daily: 10_000 },
    stop => stops.push(stop),
  )
  const parts = { ...world, outbox, smsBudget, canSend: () => true, testCodes: new Map<string, string>() }
  const challenges = new ChallengeStore(parts)
  // The app was signed out: of its session there is only what the account remembers.
  const { sessionId } = await newSession(world, userId)
  await world.database.change(change => {
    world.knownSignIns.note(change, userId, 'home', sessionId)
    world.sessions.remove(change, sessionId)
  }, world.nowMs())
  const refreshToken = formatRefreshToken(world.secrets.refreshToken, { sessionId, generation: 9 })
  return { ...world, address, challenges, mails, stops, refreshToken }
}

type Stage = Awaited<ReturnType<typeof openStage>>

/** One attacker who knows nothing but the address. */
class Attacker {
  readonly #stage: Stage
  readonly #networks: number
  readonly #isAtHome: boolean
  readonly #held: string[] = []
  #requests = 0

  constructor(stage: Stage, networks: number, isAtHome: boolean) {
    this.#stage = stage
    this.#networks = networks
    this.#isAtHome = isAtHome
  }

  /** Each request of those that there are, in turn. */
  act(change: Change): void {
    const { challenges } = this.#stage
    const request = this.#requests++
    const network = this.#isAtHome ? 'home' : `network ${request % this.#networks}`
    if (this.#stage.address.kind === 'phone') {
      this.#begin(change, { kind: 'login' }, network, numberNear(request))
    }
    switch (request % 7) {
      case 0:
      case 1:
        return this.#begin(change, { kind: 'login' }, network)
      case 2:
        return this.#begin(
          change,
          { kind: 'bind', userId: BigInt(request % 50) as UserId, isTaken: true },
          network,
        )
      case 3:
        return attempt(() => challenges.resend(change, { challengeId: this.#held.at(-1) ?? '', network }))
      case 4:
        return attempt(() => challenges.confirmLogin(change, this.#stage.address, '000000', network))
      default:
        return this.#guess(change)
    }
  }

  #begin(change: Change, purpose: ChallengePurpose, network: string, address = this.#stage.address): void {
    const request = { purpose, address, network, language: '' }
    attempt(() => this.#held.push(this.#stage.challenges.begin(change, request).challengeId))
  }

  #guess(change: Change): void {
    for (const challengeId of this.#held.slice(-3)) {
      const guess = { challengeId, otp: '000000', mayConfirm: () => true }
      for (let tries = 0; tries < 5; tries++) {
        const outcome = this.#stage.challenges.confirm(change, guess)
        if (outcome.kind === 'confirmed' || outcome.code !== 'OTP_INVALID') break
      }
    }
  }
}

/** A made-up number of Ann's range. */
function numberNear(at: number): Address {
  const key = `+8491234${String(at % 10_000).padStart(4, '0')}`
  return { kind: 'phone', key, shown: key }
}

/** The attacker expects refusals. */
function attempt(act: () => unknown): void {
  try {
    act()
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
  }
}

interface Siege {
  readonly networks: number
  readonly paceMs: number
  /** From home, or with the last refresh token from a hotel, in turn. */
  readonly visits: readonly ('home' | 'token')[]
  readonly isAtHome?: boolean
}

/** How often the owner came, and signed in. */
function besiege(change: Change, stage: Stage, { networks, paceMs, visits: kinds, isAtHome = false }: Siege) {
  const attacker = new Attacker(stage, networks, isAtHome)
  const startMs = stage.nowMs()
  let [visits, signedIn] = [0, 0]
  let visitAtMs = startMs + 5 * HOUR_MS
  for (let nowMs = startMs; nowMs < startMs + WEEK_MS; nowMs += paceMs) {
    attacker.act(atMoment(change, nowMs))
    if (nowMs < visitAtMs) continue
    const kind = kinds[visits++ % kinds.length]!
    // 8 hours, and some minutes more or less each time.
    visitAtMs += 8 * HOUR_MS + ((visits * 37) % 11) * 60_000
    const then = atMoment(change, nowMs)
    if (signIn(then, stage, kind, atMs => attacker.act(atMoment(change, atMs)))) signedIn++
  }
  return { visits, signedIn }
}

/** Asks, reads the newest code, types it; once more where a newer code has come. */
function signIn(
  change: Change,
  stage: Stage,
  kind: Siege['visits'][number],
  attack: (nowMs: number) => void,
): boolean {
  const { nowMs } = change
  const traits =
    kind === 'home' ? { network: 'home' } : { network: 'hotel', refreshToken: stage.refreshToken }
  const request = { purpose: { kind: 'login' }, address: stage.address, language: '', ...traits } as const
  let challengeId = ''
  attempt(() => {
    challengeId = stage.challenges.begin(change, request).challengeId
  })
  for (const second of [5, 10, 15, 20]) {
    for (let request = 0; request < 7; request++) attack(nowMs + second * 1_000)
    const otp = stage.mails.at(-1) ?? ''
    if (second % 2 === 1) attack(nowMs + second * 1_000 + 500)
    const guess = { challengeId, otp, mayConfirm: () => true }
    const typed = atMoment(change, nowMs + second * 1_000 + 900)
    if (stage.challenges.confirm(typed, guess).kind === 'confirmed') return true
  }
  return false
}

for (const networks of [1, 10, 1_000]) {
  for (const [pace, paceMs] of [
    ['every two minutes', 120_000],
    ['every six minutes', 360_000],
    ['every hour', HOUR_MS],
  ] as const) {
    t.test(`${networks} networks that attack ${pace} for a week never stop the owner`, async t => {
      const stage = await openStage(t)
      const siege = { networks, paceMs, visits: ['home', 'token'] } as const
      const { visits, signedIn } = await stage.database.change(change => besiege(change, stage, siege))
      t.ok(visits >= 20, `${visits} visits`)
      t.equal(signedIn, visits)
    })
  }
}

t.test('nor does an attack on a number and its whole range, which is stopped', long(), async t => {
  const stage = await openStage(t, PHONE)
  const siege = { networks: 1_000, paceMs: 100_000, visits: ['home', 'token'] } as const
  const { visits, signedIn } = await stage.database.change(change => besiege(change, stage, siege))
  t.equal(signedIn, visits)
  t.ok(stage.stops.some(({ scope, name }) => scope === 'range' && name === '+8491234'))
})

t.test('an attacker behind the network of the owner never stops the app with its last token', async t => {
  const stage = await openStage(t)
  const siege = { networks: 1, paceMs: 180_000, visits: ['token'], isAtHome: true } as const
  const { visits, signedIn } = await stage.database.change(change => besiege(change, stage, siege))
  t.equal(signedIn, visits)
})

/** The rules of a session: the table of refreshes (contract 2.3), and which access tokens it accepts. */

import fc from 'fast-check'
import t from 'tap'
import {
  decideRefresh,
  expiryOf,
  refusalOfAccess,
  type Session,
} from '../../../src/domain/accounts/session.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { checkProperty } from '../../support/property.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
const DAY_MS = 86_400_000
const LIFETIMES = { accessS: 3600, refreshS: 60 * 86_400, sessionS: 365 * 86_400 }

function sessionWith(changes: Partial<Session> = {}): Session {
  return {
    userId: 1n as UserId,
    generation: 5,
    rotatedAtMs: NOW_MS,
    isPairUsed: false,
    createdAtMs: NOW_MS,
    lastUsedAtMs: NOW_MS,
    endsAtMs: NOW_MS + 365 * DAY_MS,
    methods: ['otp'],
    userAgent: '',
    ...changes,
  }
}

function refreshed(session: Session | undefined, generation: number, afterMs = 0) {
  return decideRefresh(session, { generation, nowMs: NOW_MS + afterMs, isListed: false }, LIFETIMES)
}

/** The refusal of an access token of this generation; it expires in an hour. */
function refused(session: Session | undefined, generation: number, afterMs = 0) {
  const token = { sessionId: Buffer.alloc(16), generation, expiresAtS: NOW_MS / 1000 + 3600 }
  return refusalOfAccess(session, token, NOW_MS + afterMs)
}

t.test('after a clock was a day ahead, an old token is a reused one all the same', async t => {
  const used = sessionWith({ isPairUsed: true })
  t.equal(refreshed(used, 4, -DAY_MS).kind, 'reused')
  t.equal(refreshed(used, 4, -1_000).kind, 'repeat', 'a second is no reason')
  t.equal(refreshed(sessionWith(), 4, -DAY_MS).kind, 'repeat', 'nor is a reply that was lost')
  t.equal(refreshed(used, 5, -DAY_MS).kind, 'rotate')
})

t.test('the current token rotates the pair', async t => {
  const decision = refreshed(sessionWith({ isPairUsed: true }), 5, 1000)
  t.match(decision, {
    kind: 'rotate',
    session: {
      generation: 6,
      isPairUsed: false,
      rotatedAtMs: NOW_MS + 1000,
      lastUsedAtMs: NOW_MS + 1000,
      endsAtMs: NOW_MS + 365 * DAY_MS,
    },
  })
})

t.test('the previous token repeats the pair as long as it is unused', async t => {
  t.equal(refreshed(sessionWith(), 4, 30 * DAY_MS).kind, 'repeat')
})

t.test('with an access token that lives, when the lost one has expired', async t => {
  const session = sessionWith()
  t.same(refreshed(session, 4, 3_599_999), { kind: 'repeat', session })
  const dates = { rotatedAtMs: NOW_MS + 3_600_000, lastUsedAtMs: NOW_MS + 3_600_000 }
  t.same(refreshed(session, 4, 3_600_000), { kind: 'repeat', session: { ...session, ...dates } })
})

t.test('and for thirty seconds after its first use', async t => {
  const session = sessionWith({ isPairUsed: true })
  t.equal(refreshed(session, 4, 29_999).kind, 'repeat')
  t.match(refreshed(session, 4, 30_000), {
    kind: 'reused',
    session: { revokedBecause: 'refresh_token_reused' },
  })
})

t.test('an older token is one that was used before, however soon it comes', async t => {
  t.equal(refreshed(sessionWith(), 3).kind, 'reused')
  t.equal(refreshed(sessionWith(), 0).kind, 'reused')
})

t.test('an ended or unknown session, and a token of the future, are refused without alarm', async t => {
  t.equal(refreshed(undefined, 5).kind, 'refused')
  t.equal(refreshed(sessionWith({ revokedBecause: 'device_removed' }), 5).kind, 'refused')
  t.equal(refreshed(sessionWith({ revokedBecause: 'device_removed' }), 2).kind, 'refused')
  t.equal(refreshed(sessionWith(), 6).kind, 'refused')
  t.equal(refreshed(sessionWith(), 5, 60 * DAY_MS).kind, 'refused')
  t.equal(refreshed(sessionWith({ endsAtMs: NOW_MS + 1 }), 5, 1).kind, 'refused')
})

t.test(
  'a session ends sixty days after its last refresh, and a year after it began at the latest',
  async t => {
    t.equal(expiryOf(sessionWith(), LIFETIMES), NOW_MS + 60 * DAY_MS)
    const late = sessionWith({ lastUsedAtMs: NOW_MS + 350 * DAY_MS })
    t.equal(expiryOf(late, LIFETIMES), NOW_MS + 365 * DAY_MS)
  },
)

t.test('access tokens of the current and the previous pair are accepted until they expire', async t => {
  t.equal(refused(sessionWith(), 5), undefined)
  t.equal(refused(sessionWith(), 4), undefined)
  t.equal(refused(sessionWith(), 4, 3_599_999), undefined)
  t.equal(refused(sessionWith(), 5, 3_600_000), 'TOKEN_EXPIRED')
})

t.test('an older pair, an ended session and a made-up generation are refused, each by its code', async t => {
  t.equal(refused(sessionWith(), 3), 'TOKEN_EXPIRED')
  t.equal(refused(sessionWith(), 6), 'TOKEN_INVALID')
  t.equal(refused(undefined, 5), 'TOKEN_INVALID')
  t.equal(refused(sessionWith({ revokedBecause: 'device_removed' }), 5), 'SESSION_REVOKED')
  t.equal(refused(sessionWith({ endsAtMs: NOW_MS + 10 }), 5, 10), 'TOKEN_EXPIRED')
})

t.test('whatever is presented in whatever order, nothing but the current token makes a new pair', async t => {
  const steps = fc.array(
    fc.record({
      back: fc.integer({ min: -1, max: 4 }),
      afterMs: fc.integer({ min: 0, max: 60_000 }),
      isUsed: fc.boolean(),
    }),
    { maxLength: 40 },
  )
  checkProperty(t, [steps], sequence => {
    let session = sessionWith()
    let nowMs = NOW_MS
    for (const { back, afterMs, isUsed } of sequence) {
      nowMs += afterMs
      if (isUsed) session = { ...session, isPairUsed: true }
      const before = session
      const decision = decideRefresh(
        before,
        { generation: before.generation - back, nowMs, isListed: false },
        LIFETIMES,
      )
      if ((decision.kind === 'rotate') !== (back === 0 && before.revokedBecause === undefined)) return false
      if (decision.kind === 'repeat' && (decision.session !== before || back !== 1)) return false
      if (before.revokedBecause !== undefined && decision.kind !== 'refused') return false
      if (decision.kind !== 'refused') session = decision.session
    }
    return true
  })
})

t.test(
  'on a listed device each new pair begins the time of the session anew, on another none does',
  async t => {
    const nowMs = NOW_MS + 50 * DAY_MS
    const endOf = (session: Session, generation: number, isListed: boolean) => {
      const decision = decideRefresh(session, { generation, nowMs, isListed }, LIFETIMES)
      return decision.kind === 'refused' ? undefined : (decision.session.endsAtMs - NOW_MS) / DAY_MS
    }
    t.same([endOf(sessionWith(), 5, true), endOf(sessionWith(), 5, false)], [415, 365])
    t.same(
      [endOf(sessionWith(), 4, true), endOf(sessionWith(), 4, false)],
      [415, 365],
      'a reply that was lost',
    )
    t.equal(endOf(sessionWith({ isPairUsed: true }), 4, true), 365, 'a stolen token')
    t.equal(endOf(sessionWith({ endsAtMs: nowMs }), 5, true), undefined, 'what has ended does not go on')
    const listedBefore = sessionWith({ endsAtMs: NOW_MS + 400 * DAY_MS })
    t.equal(endOf(listedBefore, 5, false), 400, 'its time does not grow once the list drops its device')
  },
)

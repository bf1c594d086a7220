/** A guess spread over networks and addresses: seen as a whole, slowed for strangers, never for known askers. */

import t, { type Test } from 'tap'
import type { Address } from '../../../src/domain/accounts/challenge.ts'
import { SignalError } from '../../../src/errors.ts'
import { ChallengeStore } from '../../../src/store/accounts/challenge-store.ts'
import type { CodeTry } from '../../../src/store/accounts/guess-watch.ts'
import { newUser, openWorld } from '../../support/application.ts'

const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2026, 0, 1)

function addressOf(name: string): Address {
  const key = `${name}@example.org`
  return { kind: 'email', key, shown: key }
}

async function openStage(t: Test, folder = t.testdir()) {
  const mails = new Map<string, string>()
  const tries: CodeTry[] = []
  let alarms = 0
  const onCodeTried = (tried: CodeTry) => void tries.push(tried)
  const world = openWorld(folder, START_MS, { onCodeTried, onGuessing: () => alarms++ })
  t.teardown(() => world.database.close())
  const { guessWatch } = world
  const outbox = {
    add(message: object) {
      if ('to' in message && 'letter' in message) {
        mails.set(message.to as string, (message.letter as { otp?: string }).otp ?? '')
      }
    },
  }
  const challenges = new ChallengeStore({
    ...world,
    outbox,
    canSend: () => true,
    testCodes: new Map(),
  })
  const begin = (name: string, network: string, nowMs: number) =>
    challenges.begin(
      world.database.ambient,
      { purpose: { kind: 'login' }, address: addressOf(name), network, language: '' },
      nowMs,
    )
  const confirm = (challengeId: string, otp: string, nowMs: number) =>
    challenges.confirm(world.database.ambient, { challengeId, otp, mayConfirm: () => true }, nowMs)
  return {
    world,
    guessWatch,
    tries,
    alarms: () => alarms,
    /** One guess at the code of an address; what is refused is refused. */
    guess(name: string, network: string, nowMs: number): void {
      try {
        confirm(begin(name, network, nowMs).challengeId, '000000', nowMs)
      } catch (error) {
        if (!(error instanceof SignalError)) throw error
      }
    },
    /** A person who mistypes so often, then types what they were sent; what came of it. */
    signIn(name: string, network: string, typos: number, nowMs: number): string {
      try {
        const { challengeId } = begin(name, network, nowMs)
        for (let typo = 0; typo < typos; typo++) confirm(challengeId, 'x', nowMs)
        const outcome = confirm(challengeId, mails.get(addressOf(name).key) ?? '', nowMs)
        return outcome.kind === 'refused' ? outcome.code : outcome.kind
      } catch (error) {
        if (error instanceof SignalError) return error.code
        throw error
      }
    },
  }
}

t.test('a thousand networks that guess at a thousand addresses are seen, and slowed to a crawl', async t => {
  const stage = await openStage(t)
  const { world, tries, guessWatch } = stage
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  await world.database.commit(change => {
    world.knownSignIns.note(change, ann.userId, 'home', ann.sessionId, START_MS)
    const outcomes = new Set<string>()
    for (let at = 0; at < 7_200; at++) {
      const nowMs = START_MS + at * 4_000
      stage.guess(`person ${(at * 7) % 997}`, `network ${at % 1_000}`, nowMs)
      if (at % 1_800 === 900) outcomes.add(stage.signIn('ann', 'home', 4, nowMs))
      if (at % 1_800 === 901) outcomes.add(stage.signIn(`newcomer ${at}`, `new network ${at}`, 1, nowMs))
    }
    t.same([...outcomes], ['confirmed'], 'who is known, and newcomers in networks that did not guess')
    const guesses = tries.filter(({ network, isAccepted }) => network.startsWith('network') && !isAccepted)
    t.ok(guesses.length < 200 + 2 * 2 * 1_000, `${guesses.length} of 7,200 were compared`)
    t.ok(guessWatch.isGuessed(change, START_MS + HOUR_MS))
    t.equal(stage.alarms() >= 1, true)
  })
})

t.test(
  'a network that guesses is told to wait, also for new codes, as long as the guessing lasts',
  async t => {
    const stage = await openStage(t)
    await stage.world.database.commit(change => {
      for (let at = 0; at < 300; at++) stage.guess(`person ${at}`, `network ${at % 60}`, START_MS)
      t.equal(stage.signIn('newcomer', 'network 3', 0, START_MS), 'RATE_LIMITED')
      t.equal(stage.signIn('newcomer', 'elsewhere', 0, START_MS), 'confirmed')
      t.notOk(stage.guessWatch.isGuessed(change, START_MS + 70 * 60_000))
      t.equal(stage.signIn('other', 'network 3', 0, START_MS + 70 * 60_000), 'confirmed')
    })
  },
)

t.test('people who mistype are no attack, however many they are', async t => {
  const stage = await openStage(t)
  await stage.world.database.commit(change => {
    for (let at = 0; at < 1_000; at++) {
      const typos = at % 5 === 0 ? 2 : 0
      const outcome = stage.signIn(`person ${at}`, `network ${at % 10}`, typos, START_MS + at * 1_000)
      if (outcome !== 'confirmed') t.fail(`${at} ${outcome}`)
    }
    t.notOk(stage.guessWatch.isGuessed(change, START_MS + 1_000_000))
  })
  t.equal(stage.alarms(), 0)
})

t.test('the count of guesses survives a restart, and goes with its day', async t => {
  const folder = t.testdir()
  const before = await openStage(t, folder)
  await before.world.database.commit(() => {
    for (let at = 0; at < 250; at++) before.guess(`person ${at}`, `network ${at}`, START_MS)
  })
  await before.world.database.close()
  const { world, guessWatch } = await openStage(t, folder)
  t.ok(world.database.view(view => guessWatch.isGuessed(view, START_MS)))
  await world.advance(26 * HOUR_MS)
  t.equal([...world.database.table('code-tries').getKeys()].length, 0)
})

/** A guess spread over networks and addresses: seen as a whole, slowed for strangers, never for known askers. */

import t, { type Test } from 'tap'
import type { Address } from '../../../src/domain/accounts/challenge.ts'
import type { CodeTry } from '../../../src/domain/accounts/guessing.ts'
import { SignalError } from '../../../src/errors.ts'
import { ChallengeStore } from '../../../src/store/accounts/challenge-store.ts'
import type { Change } from '../../../src/store/engine/store.ts'
import { newUser, openWorld } from '../../support/application.ts'
import { atMoment } from '../../support/at-moment.ts'

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
  const world = openWorld(folder, START_MS, { rehearses: false })
  world.database.subscribe('code-tried', ({ tried }) => tries.push(tried))
  world.database.subscribe('codes-guessed', () => alarms++)
  t.teardown(() => world.database.close())
  const { guessWatch } = world
  const outbox = {
    add(_: Change, message: object) {
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
  const begin = (change: Change, name: string, network: string) =>
    challenges.begin(change, { purpose: { kind: 'login' }, address: addressOf(name), network, language: '' })
  const confirm = (change: Change, challengeId: string, otp: string) =>
    challenges.confirm(change, { challengeId, otp, mayConfirm: () => true })
  return {
    world,
    guessWatch,
    tries,
    alarms: () => alarms,
    /** One guess at the code of an address; a refusal counts as an outcome. */
    guess(change: Change, name: string, network: string): void {
      try {
        confirm(change, begin(change, name, network).challengeId, '000000')
      } catch (error) {
        if (!(error instanceof SignalError)) throw error
      }
    },
    /** A person who mistypes so often, then types what they were sent; what came of it. */
    signIn(change: Change, name: string, network: string, typos: number): string {
      try {
        const { challengeId } = begin(change, name, network)
        for (let typo = 0; typo < typos; typo++) confirm(change, challengeId, 'x')
        const outcome = confirm(change, challengeId, mails.get(addressOf(name).key) ?? '')
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
  await world.database.change(change => {
    world.knownSignIns.note(change, ann.userId, 'home', ann.sessionId)
    const outcomes = new Set<string>()
    for (let at = 0; at < 7_200; at++) {
      const then = atMoment(change, START_MS + at * 4_000)
      stage.guess(then, `person ${(at * 7) % 997}`, `network ${at % 1_000}`)
      if (at % 1_800 === 900) outcomes.add(stage.signIn(then, 'ann', 'home', 4))
      if (at % 1_800 === 901) outcomes.add(stage.signIn(then, `newcomer ${at}`, `new network ${at}`, 1))
    }
    t.same([...outcomes], ['confirmed'], 'who is known, and newcomers in networks that did not guess')
    t.ok(guessWatch.isGuessed(change, START_MS + HOUR_MS))
  }, START_MS)
  const guesses = tries.filter(({ network, isAccepted }) => network.startsWith('network') && !isAccepted)
  t.ok(guesses.length < 200 + 2 * 2 * 1_000, `${guesses.length} of 7,200 were compared`)
  t.equal(stage.alarms() >= 1, true)
})

t.test(
  'a network that guesses is told to wait, also for new codes, as long as the guessing lasts',
  async t => {
    const stage = await openStage(t)
    await stage.world.database.change(change => {
      for (let at = 0; at < 300; at++) stage.guess(change, `person ${at}`, `network ${at % 60}`)
      t.equal(stage.signIn(change, 'newcomer', 'network 3', 0), 'RATE_LIMITED')
      t.equal(stage.signIn(change, 'newcomer', 'elsewhere', 0), 'confirmed')
      t.notOk(stage.guessWatch.isGuessed(change, START_MS + 70 * 60_000))
      t.equal(stage.signIn(atMoment(change, START_MS + 70 * 60_000), 'other', 'network 3', 0), 'confirmed')
    }, START_MS)
  },
)

t.test('a guess from all of a /48 is slowed as one, and no account that is known from there', async t => {
  const stage = await openStage(t)
  const { world, tries } = stage
  const inside = (at: number) => Buffer.from([0x20, 1, 0xd, 0xb8, 0, 7, at >> 8, at & 255]).toString('latin1')
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  await world.database.change(change => {
    world.knownSignIns.note(change, ann.userId, inside(60_000), ann.sessionId)
    for (let at = 0; at < 800; at++) {
      stage.guess(atMoment(change, START_MS + at * 4_000), `person ${at}`, inside(at))
    }
    const then = atMoment(change, START_MS + 3_300_000)
    t.equal(stage.signIn(then, 'newcomer', inside(3_000), 0), 'RATE_LIMITED')
    t.equal(stage.signIn(then, 'ann', inside(60_001), 0), 'confirmed', 'from another network of the /48')
    t.equal(stage.signIn(then, 'other', 'elsewhere', 0), 'confirmed')
  }, START_MS)
  const compared = tries.filter(({ isAccepted }) => !isAccepted).length
  t.ok(compared < 240, `${compared} of 800 were compared`)
})

t.test('people who mistype are no attack, however many they are', async t => {
  const stage = await openStage(t)
  await stage.world.database.change(change => {
    for (let at = 0; at < 1_000; at++) {
      const typos = at % 5 === 0 ? 2 : 0
      const then = atMoment(change, START_MS + at * 1_000)
      const outcome = stage.signIn(then, `person ${at}`, `network ${at % 10}`, typos)
      if (outcome !== 'confirmed') t.fail(`${at} ${outcome}`)
    }
    t.notOk(stage.guessWatch.isGuessed(change, START_MS + 1_000_000))
  }, START_MS)
  t.equal(stage.alarms(), 0)
})

t.test('the count of guesses survives a restart, and goes with its day', async t => {
  const folder = t.testdir()
  const before = await openStage(t, folder)
  await before.world.database.change(change => {
    for (let at = 0; at < 250; at++) before.guess(change, `person ${at}`, `network ${at}`)
  }, START_MS)
  await before.world.database.close()
  const { world, guessWatch } = await openStage(t, folder)
  t.ok(world.database.view(view => guessWatch.isGuessed(view, START_MS)))
  await world.advance(26 * HOUR_MS)
  t.equal(world.database.rowCount(world.database.storedRows('code-tries')), 0)
})

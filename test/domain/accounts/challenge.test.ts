/** The rules of challenges: who displaces whom, when a code is sent, which tries are left. */

import fc from 'fast-check'
import t from 'tap'
import {
  type Address,
  addChallenge,
  type Challenge,
  type ChallengePurpose,
  type Code,
  codeName,
  cooldownLeftMs,
  countTry,
  decideBegin,
  decideResend,
  findChallenge,
  isAlive,
  purposeByAddress,
  repeatCode,
  replaceCode,
  type Trier,
  triesLeft,
  withoutDead,
} from '../../../src/domain/accounts/challenge.ts'
import { countFailure, countSend, NO_COUNTS } from '../../../src/domain/accounts/code-counts.ts'
import type { MethodId, UserId } from '../../../src/domain/ids.ts'
import { checkProperty } from '../../support/property.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
const ADDRESS: Address = { kind: 'email', key: 'ann@example.org', shown: 'Ann@example.org' }
const SEALED = Buffer.from('sealed')
const HASHED = { codeId: Buffer.alloc(16), hash: Buffer.alloc(32), sealed: SEALED }

const BY_ADDRESS = { kind: 'by-address', asker: 'stranger' } as const

let idCount = 0

function challengeFrom(network: string, purpose: ChallengePurpose = { kind: 'login' }): Challenge {
  const id = Buffer.alloc(16)
  id.writeUInt32BE(++idCount)
  return { id, tries: 0, purpose, address: ADDRESS, network, language: '' }
}

function holderOf({ id }: Challenge): Trier {
  return { kind: 'holder', challengeId: id }
}

function sentCode(sends = 1, sentAtMs = NOW_MS): Code {
  let code: Code | undefined
  for (let send = 0; send < sends; send++) code = replaceCode(code, HASHED, 'stranger', sentAtMs)
  return code!
}

/** The code after challenges were asked for from these networks, and these challenges in order. */
function asked(...networks: readonly string[]): { code: Code; challenges: readonly Challenge[] } {
  const challenges = networks.map(network => challengeFrom(network))
  return { code: challenges.reduce((code, each) => addChallenge(code, each).code, sentCode()), challenges }
}

/** Positions, in the order of asking, of those that are left. */
function left(...networks: readonly string[]): number[] {
  const { code, challenges } = asked(...networks)
  return code.challenges.map(each => challenges.indexOf(each))
}

t.test('up to three challenges refer to a code', async t => {
  t.same(left('a', 'b', 'c'), [0, 1, 2])
  t.same(left('a', 'a', 'a'), [0, 1, 2])
})

t.test('of one network the first and the last stay, however often it asks', async t => {
  t.same(left('a', 'a', 'a', 'a'), [0, 2, 3])
  t.same(left('a', 'a', 'a', 'a', 'a', 'a', 'a'), [0, 5, 6])
})

t.test(
  'an attacker who asks again and again does not displace the owner, who came first or later',
  async t => {
    t.same(left('owner', 'x', 'x', 'x', 'x', 'x').slice(0, 1), [0])
    t.ok(left('x', 'owner', 'x', 'x', 'x', 'x').includes(1))
    t.ok(left('x', 'x', 'x', 'owner', 'x', 'x', 'x').includes(3))
  },
)

t.test('an attacker in the network of the owner does not displace the owner who came first', async t => {
  t.same(left('owner', 'owner', 'owner', 'owner', 'owner', 'owner').slice(0, 1), [0])
})

t.test('an asker in a fourth network gets a challenge too', async t => {
  t.same(left('a', 'b', 'c', 'd'), [0, 2, 3])
})

t.test(
  'a network that holds a challenge displaces no other network, and the newest is always there',
  async t => {
    const networks = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 20 })
    checkProperty(t, [networks], sequence => {
      let code = sentCode()
      for (const network of sequence) {
        const before = code.challenges
        const challenge = challengeFrom(network)
        const added = addChallenge(code, challenge)
        code = added.code
        const { displaced } = added
        if (code.challenges.length > 3 || code.challenges.at(-1) !== challenge) return false
        if ((displaced !== undefined) !== (before.length === 3)) return false
        if (displaced === undefined) continue
        if (findChallenge(code, displaced.id) !== undefined) return false
        if (displaced.network !== network && before.some(each => each.network === network)) return false
        if (before.every(each => each.network !== network) && displaced === before[0]) return false
      }
      return true
    })
  },
)

t.test('each challenge has five tries of its own, those who name the address have five more', async t => {
  const tries = fc.array(fc.integer({ min: -1, max: 2 }), { maxLength: 30 })
  checkProperty(t, [tries], sequence => {
    const { code: start, challenges } = asked('a', 'b', 'c')
    const used = [0, 0, 0, 0]
    let code = start
    for (const at of sequence) {
      const trier = at < 0 ? BY_ADDRESS : holderOf(challenges[at]!)
      if (triesLeft(code, trier) === 0) continue
      code = withoutDead(countTry(code, trier))
      used[at + 1]! += 1
    }
    return [BY_ADDRESS, ...challenges.map(holderOf)].every(
      (trier, at) => triesLeft(code, trier) === 5 - used[at]!,
    )
  })
})

t.test('another code leaves the tries as they are and begins the lifetime anew', async t => {
  const { code, challenges } = asked('a')
  const holder = holderOf(challenges[0]!)
  const resent = replaceCode(countTry(code, holder), HASHED, 'stranger', NOW_MS + 60_000)
  t.equal(triesLeft(resent, holder), 4)
  t.ok(isAlive(resent, NOW_MS + 359_999))
  t.notOk(isAlive(resent, NOW_MS + 360_000))
})

t.test('the cooldown rises with each code', async t => {
  t.equal(cooldownLeftMs(undefined, 'stranger', NOW_MS), 0)
  const steps = [1, 2, 3, 4, 5, 9].map(sends => cooldownLeftMs(sentCode(sends), 'stranger', NOW_MS) / 1000)
  t.same(steps, [60, 120, 300, 600, 600, 600])
  t.equal(cooldownLeftMs(sentCode(2), 'stranger', NOW_MS + 119_999), 1)
  t.equal(cooldownLeftMs(sentCode(2), 'stranger', NOW_MS + 120_000), 0)
})

t.test('a login in the cooldown shares the code, and after it sends one', async t => {
  const state = {
    code: sentCode(),
    counts: countSend(NO_COUNTS, 'stranger', NOW_MS),
    isTest: false,
    asker: 'stranger' as const,
  }
  t.equal(decideBegin({ ...state, code: undefined, counts: NO_COUNTS }, NOW_MS).kind, 'send')
  t.equal(decideBegin(state, NOW_MS).kind, 'share')
  t.equal(decideBegin(state, NOW_MS + 59_999).kind, 'share')
  t.equal(decideBegin(state, NOW_MS + 60_000).kind, 'send')
})

t.test('a login in a cooldown that outlives its code waits for the end of it', async t => {
  const state = { code: sentCode(4), counts: NO_COUNTS, isTest: false, asker: 'stranger' as const }
  t.equal(decideBegin(state, NOW_MS + 299_999).kind, 'share')
  t.same(decideBegin(state, NOW_MS + 300_000), { kind: 'wait', code: 'RATE_LIMITED', waitMs: 300_000 })
})

t.test('when no more may be sent, a living code is shared still, and a dead one refused', async t => {
  let counts = NO_COUNTS
  for (let send = 0; send < 5; send++) counts = countSend(counts, 'stranger', NOW_MS)
  const state = { code: sentCode(), counts, isTest: false, asker: 'stranger' as const }
  t.equal(decideBegin(state, NOW_MS + 120_000).kind, 'share')
  t.same(decideBegin(state, NOW_MS + 300_000), { kind: 'wait', code: 'RATE_LIMITED', waitMs: 3_300_000 })
})

t.test('a resend waits for the cooldown, then for the limits of sending', async t => {
  let counts = NO_COUNTS
  for (let send = 0; send < 5; send++) counts = countSend(counts, 'stranger', NOW_MS)
  const state = { code: sentCode(), counts, isTest: false, asker: 'stranger' as const }
  t.same(decideResend(state, NOW_MS + 1), { kind: 'wait', code: 'OTP_COOLDOWN', waitMs: 59_999 })
  t.same(decideResend(state, NOW_MS + 300_000), { kind: 'wait', code: 'RATE_LIMITED', waitMs: 3_300_000 })
  t.equal(decideResend({ ...state, counts: NO_COUNTS }, NOW_MS + 60_000).kind, 'send')
})

t.test(
  'too many wrong codes keep new challenges from being made, and not a code from being sent again',
  async t => {
    let counts = NO_COUNTS
    for (let failure = 0; failure < 20; failure++) counts = countFailure(counts, 'stranger', NOW_MS)
    const state = { code: sentCode(), counts, isTest: false, asker: 'stranger' as const }
    t.equal(decideBegin(state, NOW_MS).kind, 'wait')
    t.equal(decideResend(state, NOW_MS + 60_000).kind, 'send')
  },
)

t.test('a living code is sent again as it is, where no new one may be sent', async t => {
  let counts = NO_COUNTS
  for (let send = 0; send < 5; send++) counts = countSend(counts, 'stranger', NOW_MS)
  const code = sentCode()
  const state = { code, counts, isTest: false, asker: 'stranger' as const }
  t.match(decideResend(state, NOW_MS + 60_000), { kind: 'again', sealed: SEALED })
  t.equal(decideResend(state, NOW_MS + 300_000).kind, 'wait', 'it is over')
  const again = repeatCode(code, 'stranger', NOW_MS + 60_000)
  t.notOk(isAlive(again, NOW_MS + 300_000), 'it lives no longer for it')
  t.same(decideResend({ ...state, code: again }, NOW_MS + 60_001), {
    kind: 'wait',
    code: 'OTP_COOLDOWN',
    waitMs: 119_999,
  })
})

t.test('who is known waits a minute after strangers, and as long as ever after their own codes', async t => {
  const byStrangers = sentCode(9)
  t.equal(cooldownLeftMs(byStrangers, 'token', NOW_MS), 60_000)
  t.equal(cooldownLeftMs(byStrangers, 'stranger', NOW_MS), 600_000)
  const own = [1, 2, 3, 4].map(sends => {
    let code = byStrangers
    for (let send = 0; send < sends; send++) code = replaceCode(code, HASHED, 'token', NOW_MS)
    return [cooldownLeftMs(code, 'token', NOW_MS), cooldownLeftMs(code, 'network', NOW_MS)]
  })
  t.same(
    own,
    [60, 120, 300, 600].map(seconds => [seconds * 1000, 60_000]),
  )
})

t.test('strangers displace no challenge of one who is known, and have three at most', async t => {
  let { code } = addChallenge(sentCode(), { ...challengeFrom('home'), asker: 'network' })
  code = addChallenge(code, { ...challengeFrom('elsewhere'), asker: 'token' }).code
  for (let at = 0; at < 1_000; at++) code = addChallenge(code, challengeFrom(`network ${at}`)).code
  t.same(
    code.challenges.map(({ asker = 'stranger' }) => asker),
    ['network', 'token', 'stranger', 'stranger', 'stranger'],
  )
})

t.test('in a network that the account knows, those who name the address have tries of their own', async t => {
  let { code } = addChallenge(sentCode(), challengeFrom('x'))
  const known = { kind: 'by-address', asker: 'network' } as const
  for (let at = 0; at < 5; at++) code = countTry(code, BY_ADDRESS)
  t.same([triesLeft(code, BY_ADDRESS), triesLeft(code, known)], [0, 5])
  code = countTry(code, known)
  t.equal(triesLeft(code, known), 4)
})

t.test('to a test address limits of sending do not apply, those of failing do', async t => {
  let counts = NO_COUNTS
  for (let send = 0; send < 10; send++) counts = countSend(counts, 'stranger', NOW_MS)
  const state = { code: sentCode(4), counts, isTest: true, asker: 'stranger' as const }
  t.equal(decideBegin(state, NOW_MS).kind, 'send')
  t.equal(decideResend(state, NOW_MS).kind, 'send')
  for (let failure = 0; failure < 20; failure++) counts = countFailure(counts, 'stranger', NOW_MS)
  t.equal(decideBegin({ ...state, counts }, NOW_MS).kind, 'wait')
  for (let failure = 0; failure < 80; failure++) counts = countFailure(counts, 'stranger', NOW_MS)
  t.equal(decideResend({ ...state, counts }, NOW_MS).kind, 'wait')
})

t.test('codes for other purposes, users or kinds of address have nothing to do with each other', async t => {
  const [ann, bob] = [7n as UserId, 8n as UserId]
  const names = [
    codeName(ADDRESS, { kind: 'login' }),
    codeName(ADDRESS, { kind: 'bind', userId: ann }),
    codeName(ADDRESS, { kind: 'bind', userId: bob }),
    codeName(ADDRESS, { kind: 'step-up', userId: ann }),
    codeName({ ...ADDRESS, kind: 'phone' }, { kind: 'login' }),
  ]
  t.equal(new Set(names).size, names.length)
  const named = codeName(ADDRESS, { kind: 'login', displayName: 'Ann' })
  t.equal(named, names[0], 'what is asked for besides is no other purpose')
  const replacing = codeName(ADDRESS, { kind: 'bind', userId: ann, replaces: 1n as MethodId })
  t.equal(replacing, names[1])
})

t.test(
  'who names the address gets the name that was asked for, unless others may have asked too',
  async t => {
    const named = challengeFrom('a', { kind: 'login', displayName: 'Ann' })
    const { code } = addChallenge(sentCode(), named)
    t.same(purposeByAddress(code), { kind: 'login', displayName: 'Ann' })
    const both = addChallenge(code, challengeFrom('b', { kind: 'login', displayName: 'Mallory' })).code
    t.same(purposeByAddress(both), { kind: 'login' })
    t.same(purposeByAddress(sentCode()), { kind: 'login' })
  },
)

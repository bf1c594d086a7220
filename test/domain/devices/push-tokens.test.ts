/** A device's push tokens: each has its own time, and a provider's answer is about one of them. */

import t from 'tap'
import {
  type PushTokens,
  pushTokensAfter,
  pushTokensJudged,
  type SentPushTokens,
  type TokenVerdict,
} from '../../../src/domain/devices/device.ts'

const DAY_MS = 86_400_000
const BOTH: PushTokens = {
  apnsToken: 'aa',
  apnsVoipToken: 'bb',
  registeredAtMs: { apnsToken: 1_000, apnsVoipToken: 2_000 },
}

function judge(verdict: TokenVerdict['verdict'], atMs: number, push = BOTH, token = 'bb') {
  return pushTokensJudged(push, { name: 'apnsVoipToken', token, verdict, atMs })
}

t.test('a token that is sent anew has a new time, and every other token keeps its own', async t => {
  const sent: SentPushTokens = { apnsToken: 'AA', bundleId: 'org.example' }
  t.same(pushTokensAfter(BOTH, sent, 5_000), {
    ...BOTH,
    bundleId: 'org.example',
    registeredAtMs: { apnsToken: 5_000, apnsVoipToken: 2_000 },
  })
  t.same(pushTokensAfter(BOTH, { apnsEnvironment: 'production' }, 5_000)?.registeredAtMs, BOTH.registeredAtMs)
  t.same(pushTokensAfter(BOTH, { apnsToken: '' }, 5_000), {
    apnsVoipToken: 'bb',
    registeredAtMs: { apnsVoipToken: 2_000 },
  })
  t.equal(pushTokensAfter(BOTH, { apnsToken: '', apnsVoipToken: '' }, 5_000), undefined)
})

t.test('a token that is gone is dropped, unless that very token was sent later', async t => {
  t.equal(judge('gone', 2_000), BOTH, 'the alert’s time is older, and does not count')
  t.equal(judge('gone', 9_000, BOTH, 'of yesterday'), BOTH)
  t.same(judge('gone', 2_001), { apnsToken: 'aa', registeredAtMs: { apnsToken: 1_000 } })
})

t.test('a token that no host knows is doubted, and dropped when that is so a day later', async t => {
  const doubted = judge('unknown', 3_000)
  t.same(doubted, { ...BOTH, doubtedAtMs: { apnsVoipToken: 3_000 } })
  t.equal(judge('unknown', 3_000 + DAY_MS - 1, doubted), doubted)
  t.same(judge('unknown', 3_000 + DAY_MS, doubted), {
    apnsToken: 'aa',
    registeredAtMs: { apnsToken: 1_000 },
  })
  t.same(judge('good', 4_000, doubted), BOTH, 'a push that was taken ends the doubt')
  t.same(pushTokensAfter(doubted, { apnsVoipToken: 'bb' }, 5_000)?.doubtedAtMs, undefined, 'sent anew')
  t.same(pushTokensAfter(doubted, { apnsToken: 'aa' }, 5_000)?.doubtedAtMs, { apnsVoipToken: 3_000 })
  t.equal(judge('good', 4_000), BOTH)
})

t.test('the key of sealed pushes stays when tokens come and go, until the app takes it back', async t => {
  const pushKey = 'k'.repeat(43)
  const alone = pushTokensAfter(undefined, { pushKey }, 1_000)
  t.same(alone, { pushKey, registeredAtMs: {} }, 'before there is a token')
  const both = pushTokensAfter(alone, { fcmToken: 'f' }, 2_000)!
  t.same(both, { pushKey, fcmToken: 'f', registeredAtMs: { fcmToken: 2_000 } })
  const gone = pushTokensJudged(both, { name: 'fcmToken', token: 'f', verdict: 'gone', atMs: 3_000 })
  t.same(gone, alone, 'the token that comes next is not pushed to in the open')
  t.same(pushTokensAfter(both, { pushKey: '' }, 4_000), {
    fcmToken: 'f',
    registeredAtMs: { fcmToken: 2_000 },
  })
  t.equal(pushTokensAfter(alone, { pushKey: '' }, 4_000), undefined)
})

/** The two halves of a ceremony, and changes between them. */

import t, { type Test } from 'tap'
import { PasskeyCeremonies } from '../../../src/api/accounts/passkey-ceremonies.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import * as reader from '../../../src/identity/passkeys.ts'
import { newUser } from '../../support/application.ts'
import { Authenticator } from '../../support/authenticator.ts'
import { addPasskey } from '../../support/passkeys.ts'
import { openTestApi, TEST_CONFIG } from '../../support/test-api.ts'

const METHODS = '/app/api/user/login-methods'

async function setUp(t: Test) {
  // Challenges are in memory here, where a rehearsal would use them up.
  const api = await openTestApi(t, { rehearses: false })
  const [ann, bob] = [await newUser(api.world, 'Ann'), await newUser(api.world, 'Bob')]
  const authenticator = new Authenticator()
  const { body } = await addPasskey(api, ann, authenticator)
  const challenges = new Set<string>()
  const used = {
    use: (_: unknown, challenge: string) => !challenges.has(challenge) && Boolean(challenges.add(challenge)),
  }
  const passkeys = new PasskeyCeremonies(TEST_CONFIG, api.world, used, reader)
  const use = { purpose: 'step-up', sessionId: ann.sessionId } as const
  return {
    ...{ api, ann, bob, authenticator, passkeys, use, methodId: body.id },
    judge() {
      const nowMs = api.world.nowMs()
      const { options } = passkeys.requestOptions(use, ann.userId, nowMs)
      // A passkey that is named need not say whose it is.
      const credential = authenticator.get(options, { userHandle: null })
      return passkeys.judge(credential, use)
    },
    accept: (judged: Parameters<typeof passkeys.accept>[1], ofUser: UserId) =>
      api.world.database.change(change => passkeys.accept(change, judged, ofUser), api.world.nowMs()),
  }
}

t.test('a proof is its user’s, once', async t => {
  const { ann, bob, judge, accept } = await setUp(t)
  const judged = await judge()
  await t.rejects(accept(judged, bob.userId), { code: 'PASSKEY_UNKNOWN' })
  t.match(await accept(judged, ann.userId), { userId: ann.userId })
  await t.rejects(accept(judged, ann.userId), { code: 'PASSKEY_CHALLENGE_GONE' })
})

t.test('a passkey that was removed in between proves nothing', async t => {
  const { api, ann, methodId, judge, accept } = await setUp(t)
  const judged = await judge()
  await api.send(`DELETE ${METHODS}/${methodId}`, { token: ann.token })
  await t.rejects(accept(judged, ann.userId), { code: 'PASSKEY_UNKNOWN' })
})

t.test('nor does one whose id has another key since', async t => {
  const { api, ann, authenticator, methodId, judge, accept } = await setUp(t)
  const judged = await judge()
  await api.send(`DELETE ${METHODS}/${methodId}`, { token: ann.token })
  const credentialId = authenticator.passkeys[0]!.id
  t.equal((await addPasskey(api, ann, new Authenticator(), { credentialId })).status, 201)
  await t.rejects(accept(judged, ann.userId), { code: 'PASSKEY_UNKNOWN' })
})

t.test('a challenge that expires between the halves is gone', async t => {
  const { api, ann, judge, accept } = await setUp(t)
  const judged = await judge()
  api.world.tick(300_000)
  await t.rejects(accept(judged, ann.userId), { code: 'PASSKEY_CHALLENGE_GONE' })
})

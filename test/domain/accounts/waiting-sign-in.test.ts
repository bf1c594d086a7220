/** How long a sign-in waits that takes the place of another. Its rules as a whole: `test/api/accounts/waiting-sign-ins.test.ts`. */

import t from 'tap'
import { nextWait } from '../../../src/domain/accounts/waiting-sign-in.ts'

t.test('a sign-in never ends sooner than the one whose place it takes', async t => {
  const first = nextWait(undefined, 100, 1_000)
  t.same(first, { firstBeganAtMs: 1_000, beganAtMs: 1_000, endsAtMs: 1_100 })
  const second = nextWait(first, 100, 1_099)
  t.same(second, { firstBeganAtMs: 1_000, beganAtMs: 1_099, endsAtMs: 1_199 })
  t.equal(nextWait(second, 100, 1_150).endsAtMs, 1_200, 'twice the time after the first')
  t.equal(nextWait(second, 10, 1_150).endsAtMs, 1_199, 'though waits are shorter by now')
})

/** Credentials for the relay, kept for when the server gives none. */

import t, { type Test } from 'tap'
import { CallsignError } from '../../../src/app/callsign-error.ts'
import { keepRelay } from '../../../src/app/media/relay.ts'

const GOOD = { turnUsername: 'a', turnPassword: 'b', ttl: 600, uris: ['turn:r'], stunUrl: 'stun:r' }
const SERVERS = [{ urls: ['turn:r'], username: 'a', credential: 'b' }, { urls: 'stun:r' }]

/** Asks once for each answer; a string is the code of a refusal. */
async function ask(t: Test, ...answers: readonly (typeof GOOD | string)[]) {
  let nowMs = 0
  t.intercept(performance, 'now', { value: () => nowMs })
  const left = [...answers]
  const errors: string[] = []
  const servers = keepRelay(
    async () => {
      const answer = left.shift()!
      if (typeof answer === 'string') throw new CallsignError(answer, '')
      return answer
    },
    ({ code }) => errors.push(code),
  )
  const given: (typeof SERVERS)[] = []
  for (const _ of answers) {
    given.push((await servers()) as typeof SERVERS)
    nowMs += 400_000
  }
  return { given, errors }
}

t.test('credentials are used again while they last, then none are, and the app hears why', async t => {
  const { given, errors } = await ask(t, GOOD, 'RATE_LIMITED', 'OFFLINE', GOOD)
  t.same(given, [SERVERS, SERVERS, [], SERVERS])
  t.same(errors, ['OFFLINE'])
})

t.test('a refusal before the first answer is an error, and an operator without a relay is none', async t => {
  t.same(await ask(t, 'RATE_LIMITED'), { given: [[]], errors: ['RATE_LIMITED'] })
  t.same(await ask(t, 'TURN_NOT_CONFIGURED'), { given: [[]], errors: [] })
})

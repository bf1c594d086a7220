/** Settings of the one endpoint of webhooks that needs no command. */

import t from 'tap'
import { ConfigError, readConfig } from '../../../src/server/settings/config.ts'
import { WEBHOOK_SECRET } from '../../support/webhooks.ts'

const URL = 'https://app.example.org/hooks'
const OTHER = `whsec_${Buffer.alloc(32, 9).toString('base64')}`

function read(environment: Readonly<Record<string, string>>) {
  return readConfig(environment, { dev: true }).application
}

function problemsOf(environment: Readonly<Record<string, string>>): readonly string[] {
  try {
    read(environment)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

t.test('an endpoint has an address and one secret, or two while the secret changes', async t => {
  t.same(read({}).webhook, undefined)
  t.equal(read({}).webhookWaitingMax, 1_000_000)
  const one = { CALLSIGN_WEBHOOK_URL: URL, CALLSIGN_WEBHOOK_SECRET: WEBHOOK_SECRET }
  t.same(read(one).webhook, { url: URL, secrets: [WEBHOOK_SECRET] })
  for (const between of [' ', ',', '\n', ', '])
    t.same(read({ ...one, CALLSIGN_WEBHOOK_SECRET: `${OTHER}${between}${WEBHOOK_SECRET}` }).webhook, {
      url: URL,
      secrets: [OTHER, WEBHOOK_SECRET],
    })
  t.equal(read({ CALLSIGN_WEBHOOK_WAITING_MAX: '500' }).webhookWaitingMax, 500)
})

t.test('what can’t be an endpoint is refused, and no secret is shown', async t => {
  const secret = { CALLSIGN_WEBHOOK_SECRET: WEBHOOK_SECRET }
  t.match(problemsOf({ CALLSIGN_WEBHOOK_URL: URL }), [/^CALLSIGN_WEBHOOK_SECRET goes with/])
  t.match(problemsOf(secret), [/^CALLSIGN_WEBHOOK_SECRET needs CALLSIGN_WEBHOOK_URL$/])
  for (const bad of ['secret', `${WEBHOOK_SECRET} ${OTHER} ${OTHER}`, `${WEBHOOK_SECRET} x`]) {
    const [problem, ...more] = problemsOf({ CALLSIGN_WEBHOOK_URL: URL, CALLSIGN_WEBHOOK_SECRET: bad })
    t.match(problem, /^CALLSIGN_WEBHOOK_SECRET goes with/)
    t.notOk(problem!.includes(WEBHOOK_SECRET))
    t.same(more, [])
  }
  for (const url of ['app.example.org', 'http://app.example.org/', 'http://169.254.169.254/', `${URL}#x`])
    t.match(problemsOf({ ...secret, CALLSIGN_WEBHOOK_URL: url }), [/^CALLSIGN_WEBHOOK_URL (?:is|has) /], url)
  t.match(problemsOf({ CALLSIGN_WEBHOOK_WAITING_MAX: '5' }), [/^CALLSIGN_WEBHOOK_WAITING_MAX/])
})

/** The app's view of stopped short messages: it reveals nothing about accounts. */

import t from 'tap'
import { openTestApi } from '../../support/test-api.ts'

const LOGIN = 'POST /app/api/login'
const RESEND = 'POST /app/api/resend-otp'
const VERIFY = 'POST /app/api/verify-login'
const [WITH_ACCOUNT, WITHOUT] = ['+84912345678', '+84912340678']

/** A server with this many unconfirmed messages an hour for a range of numbers. */
function openWithBudget(t: Parameters<typeof openTestApi>[0], rangeHourly: number) {
  const smsBudgets = { rangeHourly, networkHourly: 1_000, callingCodeHourly: 1_000, daily: 1_000 }
  return openTestApi(t, { rates: true, config: { smsBudgets } })
}

t.test('a stop is answered alike with an account and without, and the account gets its code', async t => {
  const { send, world } = await openWithBudget(t, 1)
  const first = await send(LOGIN, { body: { phone: WITH_ACCOUNT } })
  t.equal(first.body.smsStop, undefined)
  const otpOf = async () => {
    const [message] = await world.takeSent()
    return message?.channel === 'sms' && message.letter.kind === 'otp' ? message.letter.otp : ''
  }
  await send(VERIFY, { body: { challengeId: first.body.challengeId, otp: await otpOf() } })
  // Unconfirmed codes to other numbers of the range.
  for (let at = 0; at < 10; at++) await send(LOGIN, { body: { phone: `+8491234${1000 + at}` } })
  await world.takeSent()

  const texts: string[] = []
  for (const phone of [WITHOUT, WITH_ACCOUNT]) {
    const login = await send(LOGIN, { body: { phone }, address: [192, 0, 2, 1] })
    t.equal(login.status, 200)
    t.match(login.body.smsStop, { scope: 'range' })
    texts.push(login.text.replace(login.body.challengeId, ''))
    const sent = await world.takeSent()
    t.equal(sent.length, phone === WITH_ACCOUNT ? 1 : 0)
  }
  t.equal(texts[0], texts[1])
})

t.test('the code of a stopped number goes by mail where that is asked for', async t => {
  const { send, world } = await openWithBudget(t, 0)
  const { body } = await send(LOGIN, { body: { phone: WITHOUT } })
  world.tick(60_000)
  const resent = await send(RESEND, { body: { challengeId: body.challengeId, channel: 'email' } })
  t.match([resent.status, resent.body.channel, resent.body.sentTo], [200, 'email', '•••'])
  t.same(await world.takeSent(), [], 'there is no account that has a mail address')
})

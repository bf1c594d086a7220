/** The operator's login check is asked about each code, and a code that it keeps back leaves no trace. */

import t, { type Test } from 'tap'
import type { OutboxMessage } from '../../../src/domain/messages/outbox-message.ts'
import { startSmsGateway } from '../../support/sms-gateway.ts'
import { openTestApi, type TestApiOptions } from '../../support/test-api.ts'

const LOGIN = 'POST /app/api/login'
const RESEND = 'POST /app/api/resend-otp'
const ALLOW = { status: 200, body: { allow: true } }
const DENY = { status: 200, body: { allow: false } }

async function openChecked(t: Test, { config, ...options }: TestApiOptions = {}) {
  const service = await startSmsGateway()
  t.teardown(() => service.close())
  const loginCheck = { url: service.url, timeoutMs: 60_000 }
  // Nothing has to leave for real: in development a message without a sender counts as sent.
  const api = await openTestApi(t, {
    isDevelopment: true,
    rates: true,
    config: { loginCheck, mail: undefined, sms: undefined, ...config } as TestApiOptions['config'] & object,
    ...options,
  })
  return {
    ...api,
    service,
    asked: () => service.requests.map(({ body }) => JSON.parse(body)),
    /** Hands the waiting messages to their senders; resolves with the outcomes. */
    async deliver() {
      const sent: OutboxMessage[] = await api.world.takeSent()
      return Promise.all(sent.map(async message => (await api.application.delivery.send(message)).kind))
    },
  }
}

t.test('a code is asked about by its prefix, network, purpose and attestation', async t => {
  const { send, asked, deliver, service, world } = await openChecked(t)
  service.answerNext(ALLOW, ALLOW, ALLOW)
  const attestation = 'token-of-the-platform'
  const address = [203, 0, 113, 7]
  const { body } = await send(LOGIN, { body: { phone: '+84912345678', attestation }, address })
  await service.received(1)
  t.same(await deliver(), ['sent'])
  world.tick(60_000)
  await send(RESEND, { body: { challengeId: body.challengeId, attestation: 'another' }, address })
  t.same(await deliver(), ['sent'])
  await send(LOGIN, { body: { email: 'ann@mail.example.org' } })
  t.same(await deliver(), ['sent'])
  const sms = {
    ...{ kind: 'sms', prefix: '+8491234', country: 'VN', network: '203.0.113.0/24', purpose: 'login' },
  }
  const [first, second, third] = asked()
  t.same(
    [first, second],
    [
      { ...sms, attestation },
      { ...sms, attestation: 'another' },
    ],
  )
  t.match(third, { kind: 'mail', prefix: 'mail.example.org', purpose: 'login' })
  t.notOk('country' in third || 'attestation' in third)
})

t.test('a code that may not leave is answered as ever, and goes nowhere', async t => {
  const { send, deliver, service } = await openChecked(t)
  service.answerNext(ALLOW, DENY)
  const answers: string[] = []
  for (const phone of ['+84912345678', '+84912345679']) {
    const { status, text, body } = await send(LOGIN, { body: { phone } })
    answers.push(`${status} ${text.replace(body.challengeId, '').replace(body.sentTo, '')}`)
  }
  t.equal(answers[0], answers[1])
  t.same(await deliver(), ['sent', 'skipped'])
})

t.test('codes that were kept back count against no budget', async t => {
  const smsBudgets = { rangeHourly: 1, networkHourly: 1, callingCodeHourly: 1, daily: 1 }
  const { send, deliver, service } = await openChecked(t, { config: { smsBudgets } })
  service.answerNext(DENY, DENY, ALLOW, ALLOW)
  const stopOf = async (at: number) =>
    (await send(LOGIN, { body: { phone: `+8491234567${at}` } })).body.smsStop?.scope
  for (const at of [1, 2]) {
    t.equal(await stopOf(at), undefined)
    t.same(await deliver(), ['skipped'])
  }
  t.equal(await stopOf(3), undefined)
  t.same(await deliver(), ['sent'])
  t.equal(await stopOf(4), 'range')
})

t.test('an attestation waits in memory alone, and is bounded', async t => {
  const { send, world, service } = await openChecked(t)
  service.answerNext('silence')
  await send(LOGIN, { body: { phone: '+84912345678', attestation: 'token-of-the-platform' } })
  const [message] = await world.takeSent()
  t.match(message, { check: { prefix: '+8491234' } })
  t.notMatch(JSON.stringify(message), 'token-of-the-platform')
  const refused = await send(LOGIN, { body: { phone: '+84912345678', attestation: 'x'.repeat(4_097) } })
  t.match([refused.status, refused.body.errors?.[0]?.pointer], [422, '/attestation'])
})

t.test('a message that a restart finds is asked about again', async t => {
  const folder = t.testdir()
  const before = await openChecked(t, { folder })
  before.service.answerNext(ALLOW)
  await before.send(LOGIN, { body: { phone: '+84912345678', attestation: 'lost with the process' } })
  await before.close()
  const after = await openChecked(t, { folder })
  after.service.answerNext(DENY)
  t.same(await after.deliver(), ['skipped'])
  t.match(after.asked(), [{ kind: 'sms', prefix: '+8491234', purpose: 'login' }])
})

t.test('an address of a reviewer is asked nothing about', async t => {
  const testIdentifiers = new Map([['review@example.org', '424242']])
  const { send, deliver, asked } = await openChecked(t, { config: { testIdentifiers } })
  t.equal((await send(LOGIN, { body: { email: 'review@example.org' } })).status, 200)
  t.same([await deliver(), asked()], [[], []])
})

/** The operator's login check, against a service that says yes, no, nothing, too much, and anything but an answer. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import {
  LoginCheck,
  type LoginCheckOutcome,
  type LoginCheckSettings,
} from '../../src/delivery/login-check.ts'
import type { CheckedCode } from '../../src/domain/accounts/code-check.ts'
import { type SmsAct, startSmsGateway } from '../support/sms-gateway.ts'
import { tlsFile } from '../support/tls.ts'

const MINUTE_MS = 60_000
const ALLOW = { status: 200, body: { allow: true } }
const DENY = { status: 200, body: { allow: false } }
let checks = 0

function codeOf(more: Partial<CheckedCode> = {}): CheckedCode {
  const check = {
    id: `check-${++checks}`,
    prefix: '+8491234',
    country: 'VN',
    network: '203.0.113.0/24',
    purpose: 'login',
  } as const
  return { channel: 'sms', check, ...more }
}

async function start(t: Test, settings: Partial<LoginCheckSettings> = {}, isTls = false) {
  const service = await startSmsGateway({ isTls })
  t.teardown(() => service.close())
  const outcomes: LoginCheckOutcome[] = []
  const loginCheck = new LoginCheck({ url: service.url, timeoutMs: MINUTE_MS, ...settings }, outcome =>
    outcomes.push(outcome),
  )
  return { service, loginCheck, outcomes }
}

t.test('it is asked in JSON, with its token, and its answer is obeyed', async t => {
  const { service, loginCheck, outcomes } = await start(t, { token: 's3cret' })
  service.answerNext(ALLOW, DENY)
  const attestation = 'eyJ "\u0000\u{1f600}\\'
  t.equal(await loginCheck.allows(codeOf({ attestation })), true)
  const check = { id: 'mail-check', prefix: 'example.org', purpose: 'bind' } as const
  t.equal(await loginCheck.allows({ channel: 'mail', check }), false)
  const [first, second] = service.requests
  t.match(first, {
    method: 'POST',
    path: '/send',
    headers: { 'content-type': 'application/json', authorization: 'Bearer s3cret' },
  })
  const network = '203.0.113.0/24'
  t.same(JSON.parse(first!.body), {
    ...{ kind: 'sms', prefix: '+8491234', country: 'VN', network, purpose: 'login', attestation },
  })
  t.same(JSON.parse(second!.body), { kind: 'mail', prefix: 'example.org', purpose: 'bind' })
  t.same(outcomes, [{ kind: 'allowed' }, { kind: 'denied' }])
})

t.test('without a token no credentials are sent', async t => {
  const { service, loginCheck } = await start(t)
  await loginCheck.allows(codeOf())
  t.equal(service.requests[0]?.headers.authorization, undefined)
})

t.test('anything but an answer lets the code leave, and counts as failed', async t => {
  const { service, loginCheck, outcomes } = await start(t)
  const elsewhere = await startSmsGateway()
  t.teardown(() => elsewhere.close())
  const page = '<!doctype html><title>Login</title>{"allow":false}'
  const table: readonly (readonly [SmsAct, string])[] = [
    [{ status: 500, body: { allow: false } }, 'http-500'],
    [{ status: 201, body: { allow: false } }, 'http-201'],
    [{ status: 204 }, 'http-204'],
    [{ status: 403, body: { allow: false } }, 'http-403'],
    [{ status: 302, headers: { location: elsewhere.url } }, 'http-302'],
    [{ status: 307, headers: { location: elsewhere.url } }, 'http-307'],
    [{ status: 200, headers: { 'content-type': 'text/html' }, body: page }, 'no-answer'],
    [{ status: 200, body: '' }, 'no-answer'],
    [{ status: 200, body: '{"allow":fal' }, 'no-answer'],
    [{ status: 200, body: {} }, 'no-answer'],
    [{ status: 200, body: { allow: 'false' } }, 'no-answer'],
    [{ status: 200, body: { allow: 0 } }, 'no-answer'],
    [{ status: 200, body: null }, 'no-answer'],
    [{ status: 200, body: [false] }, 'no-answer'],
    [{ status: 200, body: `{"allow":false${' '.repeat(5_000)}}` }, 'no-answer'],
    ['endless', 'no-answer'],
    ['close', 'network'],
  ]
  for (const [act, reason] of table) {
    service.answerNext(act)
    t.equal(await loginCheck.allows(codeOf()), true, JSON.stringify(act).slice(0, 60))
    t.same(outcomes.at(-1), { kind: 'failed', reason })
  }
  t.same(elsewhere.requests, [], 'no redirect is followed')
})

t.test('an answer that breaks off is none', async t => {
  const service = createServer((_, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"allow":false}', () => response.destroy())
  })
  t.teardown(() => service.close())
  await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve))
  const { port } = service.address() as AddressInfo
  const { loginCheck, outcomes } = await start(t, { url: `http://127.0.0.1:${port}/` })
  t.equal(await loginCheck.allows(codeOf()), true)
  t.same(outcomes, [{ kind: 'failed', reason: 'no-answer' }])
})

t.test('two seconds are enough, whether nothing comes or no end', async t => {
  for (const act of ['silence', 'stalled'] as const) {
    const clock = new AbortController()
    const timeouts: number[] = []
    const timeout = (ms: number) => {
      timeouts.push(ms)
      return clock.signal
    }
    t.intercept(AbortSignal, 'timeout', { value: timeout, configurable: true })
    const { service, loginCheck, outcomes } = await start(t, { timeoutMs: undefined } as object)
    service.answerNext(act)
    const allowed = loginCheck.allows(codeOf())
    await service.received(1)
    t.same([timeouts, outcomes], [[2_000], []])
    clock.abort()
    t.equal(await allowed, true)
    t.match(outcomes, [{ kind: 'failed', reason: /^(?:timeout|no-answer)$/ }])
  }
})

t.test('a service that is not there lets the code leave', async t => {
  const closed = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => closed.once('listening', resolve))
  const { port } = closed.address() as AddressInfo
  await new Promise(resolve => closed.close(resolve))
  const { loginCheck, outcomes } = await start(t, { url: `http://127.0.0.1:${port}/` })
  t.equal(await loginCheck.allows(codeOf()), true)
  t.same(outcomes, [{ kind: 'failed', reason: 'network' }])
})

t.test('over TLS its certificate has to be of an authority that is trusted', async t => {
  const trusting = await start(t, { ca: tlsFile('ca.crt') }, true)
  trusting.service.answerNext(DENY)
  t.equal(await trusting.loginCheck.allows(codeOf()), false)
  for (const settings of [{}, { ca: tlsFile('stranger.crt') }]) {
    const { service, loginCheck, outcomes } = await start(t, settings, true)
    service.answerNext(DENY)
    t.equal(await loginCheck.allows(codeOf()), true)
    t.same([outcomes, service.requests], [[{ kind: 'failed', reason: 'network' }], []])
  }
})

t.test('a code is asked about once, however often its message is tried', async t => {
  const { service, loginCheck, outcomes } = await start(t)
  service.answerNext(DENY)
  const code = codeOf()
  const begun = loginCheck.begin(code)
  t.same(await Promise.all([loginCheck.allows(code), loginCheck.allows(code)]), [false, false])
  t.same(await begun, { kind: 'denied' })
  t.equal(await loginCheck.allows(code), false)
  t.equal(service.requests.length, 1)
  t.equal(outcomes.length, 1)
})

t.test('a slow answer about one code holds up no other', async t => {
  const { service, loginCheck } = await start(t)
  service.answerNext('silence', DENY)
  const slow = loginCheck.begin(codeOf())
  await service.received(1)
  t.equal(await loginCheck.allows(codeOf()), false)
  await service.close()
  t.match(await slow, { kind: 'failed' })
})

t.test('beyond a bound of questions under way codes leave unasked', async t => {
  const { service, loginCheck } = await start(t)
  service.answerNext(...Array.from({ length: 513 }, () => DENY))
  const asked = Array.from({ length: 512 }, () => loginCheck.begin(codeOf()))
  t.same(await loginCheck.begin(codeOf()), { kind: 'failed', reason: 'crowded' })
  t.ok((await Promise.all(asked)).every(({ kind }) => kind === 'denied'))
  t.same(await loginCheck.begin(codeOf()), { kind: 'denied' }, 'and then they are asked about again')
})

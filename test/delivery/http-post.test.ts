/** The parts read from another server’s answer: a time to wait, a reason, so many bytes. */

import t from 'tap'
import { post, retryAfterMs } from '../../src/delivery/http-post.ts'
import { reasonWord } from '../../src/delivery/outcome.ts'
import { startSmsGateway } from '../support/sms-gateway.ts'

t.test('a time to wait is read in both of its forms, and bounded', async t => {
  const nowMs = Date.parse('2026-11-20T08:00:00Z')
  const table: [string | null, number | undefined][] = [
    [null, undefined],
    ['', undefined],
    ['soon', undefined],
    ['-1', undefined],
    ['1.5', undefined],
    ['0', 0],
    ['120', 120_000],
    ['999999999', 3_600_000],
    ['Fri, 20 Nov 2026 08:00:30 GMT', 30_000],
    ['Fri, 20 Nov 2026 07:00:00 GMT', 0],
    ['Fri, 20 Nov 2099 07:00:00 GMT', 3_600_000],
  ]
  for (const [header, waitMs] of table) t.equal(retryAfterMs(header, nowMs), waitMs, String(header))
})

t.test('a reason is a plain word, and nothing that could hold an address, a code or a token', async t => {
  for (const word of ['Unregistered', 'INVALID_ARGUMENT', 'invalid_grant'])
    t.equal(reasonWord(word, '-'), word)
  for (const word of ['', '123456', 'a@b', 'to +84912345678', 'ab12', 'x\ny', undefined, 7, {}]) {
    t.equal(reasonWord(word, '-'), '-', String(word))
  }
})

t.test('no more of an answer is kept than was asked for', async t => {
  const gateway = await startSmsGateway()
  t.teardown(() => gateway.close())
  const request = { url: gateway.url, headers: {}, body: '', timeoutMs: 60_000, answerBytesMax: 100_000 }
  gateway.answerNext({ status: 200, body: 'x'.repeat(100_000) }, 'endless')
  t.match(await post(request), { kind: 'answered', status: 200, body: 'x'.repeat(100_000) })
  const cut = await post(request)
  t.equal(cut.kind, 'answered')
  t.ok(cut.kind === 'answered' && cut.body.length <= 100_000)
})

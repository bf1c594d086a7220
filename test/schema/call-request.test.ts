/** Devices' commands to `/app/call/...`, read like their HTTP twins. */

import t from 'tap'
import { parseCallCommand } from '../../src/schema/call-request.ts'

function parse(kind: Parameters<typeof parseCallCommand>[0], body: string) {
  return parseCallCommand(kind, Buffer.from(body))
}

t.test('each command is read into its members, ids whole', async t => {
  const accept = '{"requesterUserId":18446744073709551615,"requesterDeviceId":"7","encryptedAESKey":"a"}'
  t.same(parse('accept-rejoin', accept), {
    kind: 'accept-rejoin',
    requesterUserId: 2n ** 64n - 1n,
    requesterDeviceId: 7n,
    encryptedAESKey: 'a',
    epoch: undefined,
  })
  t.match(parse('accept-rejoin', accept.replace('{', '{"epoch":65535,')), { epoch: 65_535 })
  for (const epoch of [0, 65_536, 1.5, '"1"']) {
    t.throws(() => parse('accept-rejoin', accept.replace('{', `{"epoch":${epoch},`)), {
      code: 'VALIDATION_FAILED',
      errors: [{ pointer: '/epoch' }],
    })
  }
  t.same(parse('keys', '{"epoch":2,"reason":"leave","encryptedAESKeys":{"1_2":"a"},"more":1}'), {
    kind: 'keys',
    epoch: 2,
    reason: 'leave',
    encryptedAESKeys: { '1_2': 'a' },
  })
  const more = '{"epoch":65535,"reason":"leave","encryptedAESKeys":{},"keyMembers":"AAE=","without":["1_2"]}'
  t.match(parse('keys', more), { epoch: 65_535, keyMembers: 'AAE=', without: ['1_2'] })
  t.same(parse('decline', '{"reason":"busy"}'), { kind: 'decline', reason: 'busy' })
  t.same(parse('ringing', '{"eventId":"x"}'), { kind: 'ringing', wasLowered: undefined })
  t.same(parse('ringing', '{"wasLowered":true}'), { kind: 'ringing', wasLowered: true })
  t.same(parse('leave', '{}'), { kind: 'leave' })
})

t.test('an empty body has no members', async t => {
  t.same(parse('leave', ''), { kind: 'leave' })
  t.same(parse('ringing', ''), { kind: 'ringing', wasLowered: undefined })
  t.same(parse('decline', ''), { kind: 'decline', reason: undefined })
  t.throws(() => parse('keys', ''), { code: 'VALIDATION_FAILED' })
})

t.test('a body that does not fit is refused by its fault', async t => {
  t.throws(() => parse('leave', 'no'), { code: 'MALFORMED_JSON' })
  t.throws(() => parse('leave', '[]'), { code: 'VALIDATION_FAILED' })
  t.throws(() => parse('decline', '{"reason":"tired"}'), { code: 'VALIDATION_FAILED' })
  t.throws(() => parse('keys', '{"epoch":2,"reason":"leave","encryptedAESKeys":{"1_2":"a","1_2":"b"}}'), {
    code: 'MALFORMED_JSON',
  })
  const keys = { epoch: 2, reason: 'leave', encryptedAESKeys: {} }
  const wrong = [
    ['/epoch', { epoch: 65_536 }],
    ['/epoch', { epoch: 0 }],
    ['/reason', { reason: 'invite' }],
    ['/keyMembers', { keyMembers: 'A'.repeat(20_549) }],
    ['/without', { without: Array.from({ length: 321 }, (_, at) => `1_${at}`) }],
    ['/without/0', { without: ['1'.repeat(42)] }],
    ['/without/0', { without: [7] }],
  ] as const
  for (const [pointer, members] of wrong) {
    t.throws(() => parse('keys', JSON.stringify({ ...keys, ...members })), {
      code: 'VALIDATION_FAILED',
      errors: [{ pointer }],
    })
  }
  t.throws(() => parse('accept-rejoin', '{"requesterUserId":-1}'), {
    code: 'VALIDATION_FAILED',
    errors: ['/requesterDeviceId', '/encryptedAESKey', '/requesterUserId'].map(pointer => ({ pointer })),
  })
})

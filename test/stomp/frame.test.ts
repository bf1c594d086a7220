/** Headers of a frame, and the version that a CONNECT comes to. */
import t from 'tap'
import { Frame, headerOf, negotiateVersion } from '../../src/stomp/frame.ts'
import { isReservedHeader, userHeaders } from '../../src/stomp/user-headers.ts'

t.test('of repeated headers the first one counts', async t => {
  const frame = new Frame('SEND', ['a', '1', 'b', 'a', 'a', '2'], Buffer.alloc(0))
  t.equal(frame.header('a'), '1')
  t.equal(frame.header('b'), 'a')
  t.equal(frame.header('1'), undefined, 'a value is no name')
  t.equal(headerOf([], 'a'), undefined)
})

t.test('names that an object would know are ordinary names', async t => {
  const frame = new Frame('SEND', ['__proto__', 'x'], Buffer.alloc(0))
  t.equal(frame.header('__proto__'), 'x')
  for (const name of ['constructor', 'toString', 'length']) t.equal(frame.header(name), undefined)
})

t.test('the best common version is chosen, wherever it stands in the list', async t => {
  const cases: [string | undefined, string | undefined][] = [
    [undefined, '1.0'],
    ['1.2', '1.2'],
    ['1.2,1.1,1.0', '1.2'],
    ['1.0,1.1,2.0', '1.1'],
    ['1.0, 1.2 ', '1.2'],
    ['1.0', '1.0'],
    ['2.0,9.9', undefined],
    ['', undefined],
    ['1.20', undefined],
    ['1.2;1.1', undefined],
  ]
  for (const [header, version] of cases) t.equal(negotiateVersion(header), version, String(header))
})

t.test('receivers get the sender’s own headers, and none of ours', async t => {
  const sent = ['destination', '/topic/dev.t', 'x-a', '1', 'x-a', '2', 'receipt', 'r', 'message-id', 'evil']
  t.same(userHeaders([...sent, 'content-type', 'text/plain', '__proto__', 'x']), [
    'x-a',
    '1',
    'x-a',
    '2',
    'content-type',
    'text/plain',
    '__proto__',
    'x',
  ])
})

t.test('credentials stay here in any spelling, and names that a client would trim to ours', async t => {
  const reserved =
    'receipt transaction message-id subscription ack session redelivered content-length destination'
  for (const name of [...reserved.split(' '), 'login', 'passcode', 'Authorization', 'type', 'expires']) {
    t.ok(isReservedHeader(name), name)
    t.ok(isReservedHeader(` ${name}\t`), `padded ${name}`)
  }
  for (const name of ['AUTHORIZATION', 'PassCode', 'Access-Token', 'X-Authorization']) {
    t.ok(isReservedHeader(name), name)
  }
  for (const name of ['Destination', 'priority', 'content-type', 'constructor', '', 'acks']) {
    t.notOk(isReservedHeader(name), name)
  }
})

/** The meaning of destinations, by their names alone. */

import t from 'tap'
import { parseDestination } from '../../src/stomp/destination.ts'

const READER = { userId: '42', hasTestTopics: true }

function parse(text: string, hasTestTopics = true): unknown {
  return parseDestination(text, { ...READER, hasTestTopics })
}

t.test('the own queues have their name, and aliases that clients write', async t => {
  const calls = { kind: 'queue', queue: 'calls' }
  for (const text of [
    '/user/queue/calls',
    '/user/queue/signalling',
    '/queue/calls',
    '/user/42/queue/calls',
    '/topic/user.42',
  ]) {
    t.same(parse(text), calls, text)
  }
  t.same(parse('/user/queue/contacts'), { kind: 'queue', queue: 'contacts' })
  t.same(parse('/user/42/queue/account'), { kind: 'queue', queue: 'account' })
  t.same(parse('/user/queue/errors'), { kind: 'errors' })
})

t.test("a name of another user is theirs, whatever follows that could be one's own", async t => {
  for (const text of [
    '/user/43/queue/calls',
    '/user/042/queue/calls',
    '/user/ann/queue/x',
    '/topic/user.43',
  ]) {
    t.equal(parse(text), 'foreign', text)
  }
})

t.test('calls have a topic, in two spellings, and commands', async t => {
  t.same(parse('/topic/call.7'), { kind: 'call-topic', callId: '7' })
  t.same(parse('/topic/call/7'), { kind: 'call-topic', callId: '7' })
  const largest = '18446744073709551615'
  t.same(parse(`/topic/call.${largest}`), { kind: 'call-topic', callId: largest })
  for (const command of ['accept-rejoin', 'keys', 'ringing', 'decline', 'leave']) {
    t.same(parse(`/app/call/7/${command}`), { kind: 'call-command', callId: '7', command })
  }
})

t.test('a pattern is refused as one, wherever it stands', async t => {
  for (const text of ['/topic/*', '/topic/call.*', '/topic/#', '/user/*/queue/calls', '/topic/>']) {
    t.equal(parse(text), 'wildcard', text)
  }
})

t.test('everything else is unknown, also a near miss', async t => {
  for (const text of [
    '',
    '/',
    'queue/calls',
    '/user',
    '/user/queue',
    '/user/queue/',
    '/user/queue/calls/',
    '/user/queue/calls ',
    '/User/queue/calls',
    '/user/queue/__proto__',
    '/user/42/calls',
    '/queue',
    '/topic',
    '/topic/call.',
    '/topic/call.07',
    '/topic/call.-1',
    '/topic/call.1.2',
    '/topic/call/',
    '/topic/call/7/x',
    '/topic/call.123456789012345678901',
    '/topic/call.18446744073709551616',
    '/app/call/99999999999999999999/leave',
    '/topic/dev.',
    '/topic/dev.a/b',
    '/topic/dev.a\nb',
    '/app/call/7',
    '/app/call/7/join',
    '/app/call/7/keys/',
    '/app/call/x/keys',
    '/app/call/7/toString',
    '/exchange/a/b',
    '/amq/queue/a',
    '/temp-queue/a',
  ]) {
    t.equal(parse(text), 'unknown', JSON.stringify(text))
  }
})

t.test('topics and queues to try things with are there in development alone', async t => {
  t.same(parse('/topic/dev.t'), { kind: 'dev-topic', name: 'dev.t' })
  t.same(parse('/user/queue/dev.t'), { kind: 'queue', queue: 'dev.t' })
  t.same(parse('/topic/dev.grüße 🎥'), { kind: 'dev-topic', name: 'dev.grüße 🎥' })
  t.equal(parse('/topic/dev.t', false), 'unknown')
  t.equal(parse('/user/queue/dev.t', false), 'unknown')
})

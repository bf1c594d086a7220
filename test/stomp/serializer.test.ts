/** Frames as they are sent: octet by octet for one of each kind, and as a client reads them. */
import t from 'tap'
import { STOMP_VERSIONS } from '../../src/stomp/frame.ts'
import {
  encodeFrame,
  isTextBody,
  MessageTemplate,
  SharedMessage,
  SubscriptionHead,
} from '../../src/stomp/serializer.ts'
import { fromUtf8 } from '../support/bytes.ts'
import { NaiveParser, serverRules } from '../support/naive-stomp.ts'

const raw = String.raw
const BODY = fromUtf8('{"type":"x"}')

t.test('a frame ends in NUL with nothing after it, and counts the octets of its body', async t => {
  t.equal(text(encodeFrame('RECEIPT', ['receipt-id', 'r-1'], '1.2')), 'RECEIPT\nreceipt-id:r-1\n\n\0')
  t.equal(
    text(encodeFrame('ERROR', ['message', 'a: b', 'code', '400'], '1.2', fromUtf8('é€'))),
    `ERROR\nmessage:${raw`a\c b`}\ncode:400\ncontent-length:5\n\né€\0`,
  )
})

t.test('CONNECTED is never escaped, so a value that needs it is a mistake of ours', async t => {
  t.equal(
    text(encodeFrame('CONNECTED', ['version', '1.2', 'server', 'a:\\b'], '1.2')),
    'CONNECTED\nversion:1.2\nserver:a:\\b\n\n\0',
  )
  for (const headers of [
    ['server', 'a\nb'],
    ['server', 'a\rb'],
    ['server', 'a\0b'],
    ['a:b', 'c'],
    ['a\nb', 'c'],
  ]) {
    t.throws(() => encodeFrame('CONNECTED', headers, '1.2'))
  }
})

t.test('a template adds each subscription’s own part', async t => {
  const template = new MessageTemplate(['content-type', 'application/json', 'k', 'a:b'], BODY)
  const rest = `content-type:application/json\nk:${raw`a\cb`}\ncontent-length:12\n\n{"type":"x"}\0`
  const auto = new SubscriptionHead('1.2', 'sub-0', '/topic/dev.t', false)
  t.equal(
    text(template.encode(auto, 'e-1')),
    `MESSAGE\nsubscription:sub-0\ndestination:/topic/dev.t\nmessage-id:e-1\n${rest}`,
  )
  const acknowledged = new SubscriptionHead('1.2', 's:2', '/user/queue/calls', true)
  t.equal(
    text(template.encode(acknowledged, 'e-2', true)),
    `MESSAGE\nsubscription:${raw`s\c2`}\ndestination:/user/queue/calls\nmessage-id:e-2\nack:e-2\nredelivered:true\n${rest}`,
  )
})

t.test('the ack header is of 1.2 only, a subscription of 1.0 may have no id', async t => {
  const template = new MessageTemplate([], BODY)
  const in11 = text(template.encode(new SubscriptionHead('1.1', 's', '/q', true), 'e-1'))
  t.equal(
    in11,
    'MESSAGE\nsubscription:s\ndestination:/q\nmessage-id:e-1\ncontent-length:12\n\n{"type":"x"}\0',
  )
  const in10 = text(template.encode(new SubscriptionHead('1.0', undefined, '/q', true), 'e-1'))
  t.equal(in10, 'MESSAGE\ndestination:/q\nmessage-id:e-1\ncontent-length:12\n\n{"type":"x"}\0')
})

t.test('one template speaks to each version in its own way', async t => {
  const template = new MessageTemplate(['k', 'a\nb\r:\\c', 'x:y', 'z'], BODY)
  const lines = {
    '1.0': ['a b :\\c', 'x y'],
    '1.1': ['a\nb :\\c', 'x:y'],
    '1.2': ['a\nb\r:\\c', 'x:y'],
  } as const
  // Twice, because the second time each version finds what the first one left.
  for (const version of ['1.0', '1.1', '1.2', '1.2', '1.1', '1.0'] as const) {
    const octets = template.encode(new SubscriptionHead(version, 's', '/q', false), 'e-1')
    const [frame, ...more] = new NaiveParser(serverRules(version)).read(octets)
    t.same(more, [])
    const [value, name] = lines[version]
    t.same(frame?.headers.slice(3), [
      ['k', value],
      [name, 'z'],
      ['content-length', '12'],
    ])
    t.same(frame?.body, Buffer.from(BODY))
  }
})

t.test('ids beyond ASCII are counted in octets', async t => {
  const head = new SubscriptionHead('1.2', 'grüße 🎥', '/topic/é', true)
  const octets = new MessageTemplate(['k', 'é'], BODY).encode(head, 'e-1', true)
  const [frame] = new NaiveParser(serverRules('1.2')).read(octets)
  t.equal(new Map(frame?.headers).get('subscription'), 'grüße 🎥')
  t.equal(octets.at(-1), 0)
  t.throws(() => new MessageTemplate([], BODY).encode(head, 'é'), 'a message-id is ours, and of ASCII')
})

t.test('frames of one template share no octets', async t => {
  const template = new MessageTemplate([], BODY)
  const head = new SubscriptionHead('1.2', 's', '/q', false)
  const first = template.encode(head, 'e-1')
  const copy = Buffer.from(first)
  template.encode(head, 'e-2').fill(0)
  t.same(first, copy)
})

t.test('text travels as text, unless the platform beneath the client would damage it', async t => {
  t.ok(isTextBody(BODY, 'application/json'))
  t.ok(isTextBody(fromUtf8('grüße'), undefined))
  t.ok(isTextBody(new Uint8Array(0), undefined))
  t.notOk(isTextBody(fromUtf8('a\0b'), 'text/plain'))
  t.notOk(isTextBody(Uint8Array.of(0xff), 'text/plain'))
  t.notOk(isTextBody(BODY, 'application/octet-stream'))
  t.notOk(new MessageTemplate(['content-type', 'application/octet-stream'], BODY).isText)
  t.ok(new MessageTemplate(['content-type', 'application/json'], BODY).isText)
})

function text(octets: Buffer): string {
  return octets.toString('utf8')
}

t.test(
  'a shared message with a subscription’s own parts has the octets of a template with the whole body',
  async t => {
    const headers = ['type', 'call_ended', 'k', 'é']
    for (const version of STOMP_VERSIONS) {
      for (const isAcknowledged of [false, true]) {
        const head = new SubscriptionHead(version, 'sub-é', '/user/queue/calls', isAcknowledged)
        const message = new SharedMessage(headers, ['{"a":', '"grüße \u{1f600}"', '}'])
        for (const isRedelivered of [false, true]) {
          for (const own of [
            ['1,"b":', ''],
            ['"é",', ',"漢":"\u{1f600}"'],
          ]) {
            const body = Buffer.from(`{"a":${own[0]}"grüße \u{1f600}"${own[1]}}`)
            const expected = new MessageTemplate(headers, body).encode(head, '1z-7', isRedelivered)
            const parts = own.map(part => Buffer.from(part).toString('latin1'))
            t.same(message.encode(head, '1z-7', isRedelivered, parts), expected)
          }
        }
      }
    }
    t.throws(() => new SharedMessage(['k', 'a:b'], ['{}']), 'headers are ours, and alike in all versions')
  },
)

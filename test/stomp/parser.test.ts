/** Octets to frames: where one ends and the next begins, refusals and their octet, and memory held between. */
import t from 'tap'
import {
  FRAME_BYTES_BEFORE_CONNECT_MAX,
  FRAME_BYTES_MAX,
  HEADER_LINE_BYTES_MAX,
  HEADERS_MAX,
} from '../../src/limits.ts'
import type { Frame, StompVersion } from '../../src/stomp/frame.ts'
import { StompParser } from '../../src/stomp/parser.ts'
import { FrameRefusal } from '../../src/stomp/refusal.ts'
import { codeOf } from '../support/codes.ts'
import { octetsOf } from '../support/notation.ts'

t.test('a frame has its headers in order and its body in octets', async t => {
  const [frame] = framesOf(
    parserOf('1.2'),
    'SEND⏎destination:/q⏎a:1⏎a:⏎content-length:3⏎⏎⟦ff⟧␀é␀'.replace('é', 'x'),
  )
  t.equal(frame?.command, 'SEND')
  t.same(frame?.headers, ['destination', '/q', 'a', '1', 'a', '', 'content-length', '3'])
  t.same(frame?.body, Buffer.from([0xff, 0, 0x78]))
})

t.test('every command of a client is known, and none of a server', async t => {
  const client = 'CONNECT STOMP SEND SUBSCRIBE UNSUBSCRIBE ACK NACK BEGIN COMMIT ABORT DISCONNECT'
  for (const command of client.split(' ')) {
    t.equal(framesOf(parserOf('1.2'), `${command}⏎⏎␀`)[0]?.command, command)
  }
  const others = [
    'CONNECTED',
    'MESSAGE',
    'RECEIPT',
    'ERROR',
    'SEMD',
    'SENDS',
    'SEN',
    'Send',
    'S',
    'ACKACK',
    ' ACK',
  ]
  for (const command of others)
    t.match(refusalOf(parserOf('1.2'), `${command}⏎`), { reason: 'unknown_command' })
})

t.test('the owner may stop between two frames, and set the version for the second', async t => {
  const parser = new StompParser()
  parser.feed(octetsOf(String.raw`CONNECT⏎k:a\cb⏎⏎␀SEND⏎k:a\cb⏎⏎x␀SEND⏎k:a\cb⏎⏎y␀`))
  t.equal(parser.next()?.header('k'), String.raw`a\cb`)
  parser.version = '1.2'
  t.equal(parser.next()?.header('k'), 'a:b')
  parser.version = '1.0'
  t.equal(parser.next()?.header('k'), String.raw`a\cb`)
  t.equal(parser.next(), undefined)
})

t.test('CONNECT is read without escapes also when a version is known', async t => {
  const [frame] = framesOf(parserOf('1.2'), String.raw`CONNECT⏎k:\t\c.\⏎⏎␀`)
  t.equal(frame?.header('k'), '\\t\\c.\\')
})

t.test('nothing of a frame points into the chunk it came in', async t => {
  const parser = parserOf('1.2')
  const chunk = octetsOf('SEND⏎destination:/q⏎⏎body␀SEND⏎destination:/q⏎content-length:4⏎⏎bo')
  const frames = framesOf(parser, chunk)
  chunk.fill(0xff)
  frames.push(...framesOf(parser, 'dy␀'))
  t.same(
    frames.map(({ body, headers }) => `${headers[1]} ${body}`),
    ['/q body', '/q body'],
  )
})

t.test('a plain Uint8Array is as good as a Buffer, also as a part of a larger one', async t => {
  const whole = Uint8Array.from(octetsOf('xxSEND⏎destination:/q⏎⏎body␀xx'))
  const [frame] = framesOf(parserOf('1.2'), whole.subarray(2, -2))
  t.equal(frame?.body.toString(), 'body')
})

t.test('a chunk is fed only when the last one was read', async t => {
  const parser = parserOf('1.2')
  parser.feed(octetsOf('ACK⏎⏎␀ACK⏎⏎␀'))
  parser.next()
  t.throws(() => parser.feed(octetsOf('⏎')))
})

t.test('after a refusal nothing is read, and the refusal comes again', async t => {
  const parser = parserOf('1.2')
  const first = refusalOf(parser, 'FOO⏎⏎␀SEND⏎destination:/q⏎⏎x␀')
  t.equal(refusalOf(parser, 'SEND⏎destination:/q⏎⏎x␀'), first)
  t.equal(parser.heldBytes, 0)
})

t.test('a refusal names the rule and its limit, and nothing that was sent', async t => {
  const secret = 'hunter2'
  const cases: [string, Partial<FrameRefusal>][] = [
    [`${secret}⏎`, { reason: 'unknown_command', closeCode: 1002, message: 'unknown command' }],
    ['⟨A×17⟩', { reason: 'unknown_command', closeCode: 1002, message: 'command exceeds 16 bytes' }],
    [`SEND⏎${secret}⏎`, { reason: 'malformed_frame', closeCode: 1002 }],
    [`SEND⏎:${secret}⏎`, { reason: 'malformed_frame', closeCode: 1002 }],
    [`SEND⏎a:${secret}\\t⏎`, { reason: 'undefined_escape', closeCode: 1002 }],
    [`SEND⏎a:${secret}⟦ff⟧⏎`, { reason: 'invalid_utf8', closeCode: 1007 }],
    [`SEND⏎a⟦c3⟧:⟦a9⟧${secret}⏎`, { reason: 'invalid_utf8', closeCode: 1007 }],
    [`SEND⏎content-length:${secret}⏎`, { reason: 'content_length_invalid', closeCode: 1002 }],
    [`ACK⏎⏎${secret}`, { reason: 'body_not_allowed', closeCode: 1002 }],
    [
      `SEND⏎a:⟨x×8192⟩`,
      { reason: 'header_line_too_long', closeCode: 1009, message: 'header line exceeds 8192 bytes' },
    ],
    ['SEND⏎⟨a:⏎×65⟩', { reason: 'too_many_headers', closeCode: 1009, message: 'more than 64 headers' }],
    [
      `SEND⏎⏎⟨x×${FRAME_BYTES_MAX}⟩`,
      { reason: 'frame_too_large', closeCode: 1009, message: 'frame exceeds 262144 bytes' },
    ],
    ['SEND⏎content-length:262145⏎', { reason: 'frame_too_large', closeCode: 1009 }],
  ]
  for (const [notation, expected] of cases) {
    const refusal = refusalOf(parserOf('1.2'), notation)
    t.match(
      refusal,
      { ...expected, code: expected.closeCode === 1009 ? 'BODY_TOO_LARGE' : 'MALFORMED' },
      notation,
    )
    t.notOk(refusal.message.includes(secret))
  }
})

t.test('a refusal has the receipt that its frame asked for, if it was read by then', async t => {
  t.equal(refusalOf(parserOf('1.2'), 'ACK⏎receipt:r-1⏎⏎body␀').receipt, 'r-1')
  t.equal(refusalOf(parserOf('1.2'), 'ACK⏎bad⏎receipt:r-1⏎⏎␀').receipt, undefined)
  t.equal(refusalOf(parserOf('1.2'), 'ACK⏎receipt:r-1⏎⏎␀FOO⏎').receipt, undefined, 'of the frame before')
})

t.test('each limit holds to the octet, however the octets are cut', async t => {
  const cases: [string, boolean][] = [
    [`SEND⏎k:⟨v×${HEADER_LINE_BYTES_MAX - 2}⟩⏎⏎␀`, true],
    [`SEND⏎k:⟨v×${HEADER_LINE_BYTES_MAX - 1}⟩⏎⏎␀`, false],
    [`SEND⏎⟨a:⏎×${HEADERS_MAX}⟩⏎␀`, true],
    [`SEND⏎⟨a:⏎×${HEADERS_MAX + 1}⟩⏎␀`, false],
    [`SEND⏎⏎⟨x×${FRAME_BYTES_MAX - 6}⟩␀`, true],
    [`SEND⏎⏎⟨x×${FRAME_BYTES_MAX - 5}⟩␀`, false],
    [`SEND⏎content-length:262116⏎⏎⟨x×262116⟩␀`, true],
    [`SEND⏎content-length:262117⏎⏎⟨x×262117⟩␀`, false],
  ]
  for (const [notation, isWithin] of cases) {
    const octets = octetsOf(notation)
    for (const pieceBytes of [octets.length, 1_000, 7]) {
      const parser = parserOf('1.2')
      const code = codeOf(() => pieces(octets, pieceBytes).map(piece => framesOf(parser, piece)))
      t.equal(code, isWithin ? 'none' : 'BODY_TOO_LARGE', `${notation} by ${pieceBytes}`)
    }
  }
})

t.test('a refusal comes with the first octet that can not be right', async t => {
  const cases = [
    '⟨A×17⟩',
    'SEND␀',
    'SEND⏎a:b␀',
    'SEND⏎a␍b',
    'SEND␍S',
    '␍␍',
    'FOO⏎',
    `SEND⏎⟨k×${HEADER_LINE_BYTES_MAX + 1}⟩`,
    'SEND⏎content-length:262145⏎',
    'SEND⏎content-length:262144⏎⏎',
    'ACK⏎content-length:1⏎⏎',
    'ACK⏎⏎x',
    'SEND⏎content-length:2⏎⏎abc',
  ]
  for (const notation of cases) {
    const octets = octetsOf(notation)
    const parser = parserOf('1.2')
    const early = pieces(octets.subarray(0, -1), 1).flatMap(octet => framesOf(parser, octet))
    t.same(early, [])
    t.ok(refusalOf(parser, octets.subarray(-1)), notation)
  }
})

t.test('a content-length is zero or a decimal number without padding', async t => {
  for (const value of ['', '-1', '+1', '1e3', ' 1', '1 ', '01', '00', '0x1', '1.0', '١', 'NaN']) {
    const { reason } = refusalOf(parserOf('1.2'), `SEND⏎content-length:${value}⏎`)
    t.equal(reason, 'content_length_invalid', `content-length:${value}`)
  }
  t.equal(framesOf(parserOf('1.2'), 'SEND⏎content-length:0⏎⏎␀').length, 1)
})

t.test('what no version forbids in 1.0 is passed on there', async t => {
  t.equal(framesOf(parserOf('1.0'), 'ACK⏎⏎body␀')[0]?.body.toString(), 'body')
  t.equal(framesOf(parserOf('1.0'), 'ACK⏎content-length:3⏎⏎a␀b␀')[0]?.body.toString(), 'a\0b')
  t.match(refusalOf(parserOf('1.0'), 'NACK⏎'), { reason: 'unknown_command' })
})

t.test('before sign-in a frame has sixteen kilobytes', async t => {
  t.match(refusalOf(new StompParser(), `CONNECT⏎⟨a:${'x'.repeat(997)}⏎×17⟩`), {
    closeCode: 1009,
    message: `frame exceeds ${FRAME_BYTES_BEFORE_CONNECT_MAX} bytes`,
  })
})

t.test('between frames a parser holds nothing, however they were cut', async t => {
  const octets = octetsOf('␍⏎SEND⏎destination:/q⏎⏎⟨x×9000⟩␀⏎SEND⏎content-length:9000⏎⏎⟨x×9000⟩␀␍⏎')
  for (const pieceBytes of [1, 100, 5_000]) {
    const parser = parserOf('1.2')
    for (const piece of pieces(octets, pieceBytes)) framesOf(parser, piece)
    t.equal(parser.heldBytes, 0)
  }
})

t.test('an announced body takes no memory before it comes', async t => {
  const parser = parserOf('1.2')
  framesOf(parser, 'SEND⏎content-length:200000⏎⏎x')
  t.ok(parser.heldBytes < 200)
  framesOf(parser, Buffer.alloc(100_000))
  t.ok(parser.heldBytes < 200_100)
})

/** A parser after a CONNECT of that version. */
function parserOf(version: StompVersion): StompParser {
  const parser = new StompParser()
  parser.version = version
  parser.frameBytesMax = FRAME_BYTES_MAX
  return parser
}

function framesOf(parser: StompParser, octets: string | Uint8Array): Frame[] {
  parser.feed(typeof octets === 'string' ? octetsOf(octets) : octets)
  const frames: Frame[] = []
  for (let frame = parser.next(); frame !== undefined; frame = parser.next()) frames.push(frame)
  return frames
}

function refusalOf(parser: StompParser, octets: string | Uint8Array): FrameRefusal {
  try {
    framesOf(parser, octets)
  } catch (error) {
    if (error instanceof FrameRefusal) return error
    throw error
  }
  throw new Error('was not refused')
}

function pieces(octets: Buffer, pieceBytes: number): Buffer[] {
  const cut: Buffer[] = []
  for (let at = 0; at < octets.length; at += pieceBytes) cut.push(octets.subarray(at, at + pieceBytes))
  return cut
}

/**
 * The codec against random input: frames written and cut anywhere come back; frames damaged anywhere are refused or
 * read just as the plain parser of `test/support/naive-stomp.ts` does, and costs no memory. `CALLSIGN_STOMP_RUNS` says
 * how many runs, `CALLSIGN_SEED` which.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import type { ClientCommand, Frame, StompVersion } from '../../src/stomp/frame.ts'
import { negotiateVersion, STOMP_VERSIONS } from '../../src/stomp/frame.ts'
import { StompParser } from '../../src/stomp/parser.ts'
import { FrameRefusal } from '../../src/stomp/refusal.ts'
import { encodeFrame, MessageTemplate, SubscriptionHead } from '../../src/stomp/serializer.ts'
import {
  clientRules,
  type NaiveFrame,
  NaiveParser,
  NaiveRefusal,
  serverRules,
} from '../support/naive-stomp.ts'
import { octetsOf } from '../support/notation.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { countOf, sized } from '../support/size.ts'
import { CASES } from './cases.ts'

const RUNS = countOf('CALLSIGN_STOMP_RUNS', { short: 1_500, long: 5_000 })
const COMMANDS: readonly ClientCommand[] = ['SEND', 'SEND', 'SUBSCRIBE', 'ACK', 'NACK', 'BEGIN', 'DISCONNECT']
const PIECES = [
  'a',
  'b7',
  ':',
  '\\',
  '\\n',
  '\n',
  '\r',
  ' ',
  'é',
  '🎥',
  'content-type',
  '/topic/dev.t',
  '__proto__',
]
const FRAME_BYTES_MAX = 4_096

t.test('frames that were written and cut at random octets come back as they were', sized(), async t => {
  checkRuns(t, random => {
    const version = pick(random, STOMP_VERSIONS)
    const frames = Array.from({ length: 1 + Math.floor(random() * 4) }, () => randomFrame(random, version))
    const octets = frames.map(({ command, headers, body }) => encodeFrame(command, headers, version, body))
    const read = readCut(
      random,
      parserOf(version),
      Buffer.concat(octets.flatMap(o => [o, endsOfLines(random)])),
    )
    return show(read.frames) === show(frames.map(withLength)) && read.refusal === 'none'
  })
})

t.test('messages that were written come to the client as they were sent', sized(), async t => {
  checkRuns(t, random => {
    const version = pick(random, STOMP_VERSIONS)
    const { headers, body } = randomFrame(random, version)
    const id = randomText(random, version)
    const head = new SubscriptionHead(version, id, '/topic/dev.t', random() < 0.5)
    const octets = new MessageTemplate(headers, body).encode(head, 'e-1', random() < 0.5)
    const [frame, ...more] = new NaiveParser(serverRules(version)).read(octets)
    if (frame === undefined || more.length > 0) return false
    const names = new Map([...frame.headers].reverse())
    const own = head.hasAck === (names.get('ack') === 'e-1') && names.get('subscription') === id
    const tail = frame.headers.flat().join('\n').includes(headers.join('\n'))
    return own && tail && frame.body.equals(body)
  })
})

t.test('damaged streams are read and refused as the plain parser does', sized(), async t => {
  const streams = CASES.filter(each => each.kind === 'wire')
    .map(({ session, input }) => ({
      version: versionOf(session),
      octets: octetsOf(input.replaceAll('‖', '')),
    }))
    .filter(({ octets }) => octets.length < FRAME_BYTES_MAX)
  checkRuns(t, random => {
    const { version, octets } = pick(random, streams)
    const damaged = damage(random, octets)
    const expected = readPlain(version, damaged)
    const read = readCut(random, parserOf(version), damaged)
    return show(read.frames) === show(expected.frames) && read.refusal === expected.refusal
  })
})

t.test(
  'streams of octets that mean something are read and refused as the plain parser does',
  sized(),
  async t => {
    const words = ['SEND', 'ACK', 'CONNECT', 'NACK', 'content-length', 'receipt', '0', '3', '12']
    const octets = ['\n', '\n', '\n\n', '\r\n', '\r', '\0', '\0', ':', ':', '\\', '\\c', 'a', 'é', '\xff']
    checkRuns(t, random => {
      const version = pick(random, [undefined, ...STOMP_VERSIONS])
      const parts = Array.from({ length: 3 + Math.floor(random() * 12) }, () =>
        Buffer.from(pick(random, random() < 0.4 ? words : octets), random() < 0.5 ? 'utf8' : 'latin1'),
      )
      const stream = Buffer.concat([Buffer.from(random() < 0.8 ? 'SEND\n' : ''), ...parts])
      const expected = readPlain(version, stream)
      const read = readCut(random, parserOf(version), stream)
      return show(read.frames) === show(expected.frames) && read.refusal === expected.refusal
    })
  },
)

t.test('a connection before its login keeps less than 64 kB, whatever it sends', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const streams = [
    Buffer.from(`CONNECT\n${`a:${'x'.repeat(8_000)}\n`.repeat(2)}`),
    Buffer.from(`CONNECT\n${`a:${'é'.repeat(115)}\n`.repeat(64)}b:`),
    Buffer.from(`SEND\ncontent-length:16000\n\n${'x'.repeat(15_999)}`),
    Buffer.from(`SEND\n\n${'x'.repeat(16_000)}`),
  ]
  const parsers: StompParser[] = []
  collect()
  const before = memoryBytes()
  for (let at = 0; at < 400; at++) {
    const parser = new StompParser()
    for (const octet of streams[at % streams.length]!) read(parser, Buffer.of(octet), [])
    parsers.push(parser)
  }
  collect()
  const bytesEach = (memoryBytes() - before) / parsers.length
  // Garbage of other tests in this process may go at the same time.
  t.ok(bytesEach > 2_048, `${bytesEach} bytes each: it was measured`)
  t.ok(bytesEach < 65_536, `${bytesEach} bytes each`)
})

interface Read {
  readonly frames: readonly Shown[]
  /** The close code, or `none`. */
  readonly refusal: number | 'none'
}

interface Shown {
  readonly command: string
  readonly headers: readonly string[]
  readonly body: Uint8Array
}

function checkRuns(t: Test, holds: (random: () => number) => boolean): void {
  const seed = seedOf()
  const failed: number[] = []
  for (let run = 0; run < RUNS && failed.length < 5; run++) {
    if (!holds(randomFrom(seed + run))) failed.push(seed + run)
  }
  t.same(failed, [], `seeds from ${seed} on`)
}

function readCut(random: () => number, parser: StompParser, octets: Buffer): Read {
  const frames: Frame[] = []
  const most = pick(random, [1, 3, 20, octets.length])
  for (let at = 0; at < octets.length; ) {
    const size = 1 + Math.floor(random() * most)
    const refusal = read(parser, octets.subarray(at, at + size), frames)
    if (refusal !== 'none') return { frames, refusal }
    at += size
  }
  return { frames, refusal: 'none' }
}

function read(parser: StompParser, octets: Buffer, frames: Frame[]): number | 'none' {
  try {
    parser.feed(octets)
    for (let frame = parser.next(); frame !== undefined; frame = parser.next()) {
      frames.push(frame)
      parser.version = versionAfter(parser.version, frame.command, frame.header('accept-version'))
    }
  } catch (error) {
    if (error instanceof FrameRefusal) return error.closeCode
    throw error
  }
  return 'none'
}

function readPlain(version: StompVersion | undefined, octets: Buffer): Read {
  const parser = new NaiveParser(clientRules(version, FRAME_BYTES_MAX))
  const frames: NaiveFrame[] = []
  const shown = () => frames.map(frame => ({ ...frame, headers: frame.headers.flat() }))
  let known = version
  try {
    for (const octet of octets) {
      const frame = parser.push(octet)
      if (frame === undefined) continue
      frames.push(frame)
      const accepted = frame.headers.find(([name]) => name === 'accept-version')?.[1]
      known = versionAfter(known, frame.command, accepted)
      parser.rules.version = known
    }
  } catch (error) {
    if (error instanceof NaiveRefusal) return { frames: shown(), refusal: error.closeCode }
    throw error
  }
  return { frames: shown(), refusal: 'none' }
}

/** As a session does: the first CONNECT settles it. */
function versionAfter(version: StompVersion | undefined, command: string, accepted: string | undefined) {
  const isFirst = version === undefined && (command === 'CONNECT' || command === 'STOMP')
  return isFirst ? negotiateVersion(accepted) : version
}

function parserOf(version: StompVersion | undefined): StompParser {
  const parser = new StompParser()
  parser.version = version
  parser.frameBytesMax = FRAME_BYTES_MAX
  return parser
}

function versionOf(session: string): StompVersion | undefined {
  const connected = /^C1([012])/.exec(session)
  return connected === null ? undefined : (`1.${connected[1]}` as StompVersion)
}

function randomFrame(random: () => number, version: StompVersion): Shown & { command: ClientCommand } {
  const picked = pick(random, COMMANDS)
  const command = picked === 'NACK' && version === '1.0' ? 'ACK' : picked
  const headers = Array.from({ length: Math.floor(random() * 5) }, () => [
    randomText(random, version).replaceAll(version === '1.0' ? ':' : '', '') || 'x',
    randomText(random, version),
  ])
  const hasBody = command === 'SEND' && random() < 0.8
  const body = Buffer.from(
    Array.from({ length: hasBody ? Math.floor(random() * 40) : 0 }, () => Math.floor(random() * 256)),
  )
  return { command, headers: headers.flat(), body }
}

/** Text that the version can say. */
function randomText(random: () => number, version: StompVersion): string {
  const text = Array.from({ length: Math.floor(random() * 5) }, () => pick(random, PIECES)).join('')
  const unsayable = { '1.0': /[\n\r]/g, '1.1': /\r/g, '1.2': /(?!)/g }[version]
  return text.replaceAll(unsayable, '')
}

/** One octet turned, removed or doubled, in up to three places. */
function damage(random: () => number, octets: Buffer): Buffer {
  const damaged = [...octets]
  for (let times = Math.floor(random() * 4); times > 0; times--) {
    const at = Math.floor(random() * damaged.length)
    const octet = damaged[at] ?? 0
    const flipped = octet ^ (1 << Math.floor(random() * 8))
    damaged.splice(at, 1, ...pick(random, [[flipped], [], [octet, octet]]))
  }
  return Buffer.from(damaged)
}

function endsOfLines(random: () => number): Buffer {
  return Buffer.from(pick(random, ['', '', '\n', '\r\n', '\0', '\n\n\0\r\n']))
}

function withLength(frame: Shown): Shown {
  if (frame.body.length === 0) return frame
  return { ...frame, headers: [...frame.headers, 'content-length', String(frame.body.length)] }
}

function show(frames: readonly Shown[]): string {
  return JSON.stringify(
    frames.map(({ command, headers, body }) => [command, headers, Buffer.from(body).toString('latin1')]),
  )
}

function pick<Item>(random: () => number, items: readonly Item[]): Item {
  return items[Math.floor(random() * items.length)]!
}

function memoryBytes(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

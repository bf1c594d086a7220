/**
 * Clients that read nothing or say too much, each beside a witness that is still served: the server warns them, cuts
 * them off, and bounds its memory.
 */

import { join } from 'node:path'
import t from 'tap'
import { connectFrame, sendFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { CARRIERS, Innocent, residentBytes, WireServer } from '../support/wire-server.ts'

const folder = t.testdir({ free: {}, limited: {} })
const server = await WireServer.start(t, { people: 20, dataFolder: join(folder, 'free') })
const limited = await WireServer.open(t, {
  people: 9,
  dataFolder: join(folder, 'limited'),
  environment: { CALLSIGN_RATE_LIMITS: '' },
})

const SLOW_PER_CARRIER = 4
const SLOW_COUNT = 2 * SLOW_PER_CARRIER
const SLOW_TOPIC = '/topic/dev.slow'
const PIECE_BYTES = 48 * 1024
/** 24 MiB for each client. */
const PIECES = 512

t.test(
  'I-15: a client that reads nothing is cut off in time, the rest are served, memory stays bounded',
  async t => {
    const [sending, reading, ...lazy] = await server.devices(2 + SLOW_COUNT)
    const quick = await server.connect('websocket', reading!)
    await quick.subscribe(SLOW_TOPIC)
    const sender = await server.connect('tcp', sending!)
    const slow = await Promise.all(lazy.map((device, at) => server.connect(CARRIERS[at % 2]!, device)))
    for (const peer of slow) {
      await peer.subscribe(SLOW_TOPIC)
      peer.keepTail()
      peer.pause()
    }
    const innocent = await Innocent.join(server, 'websocket')
    const baselineBytes = residentBytes(server)
    let [mostBytes, mostBuffered] = [0, 0]
    for (let sent = 0; sent < PIECES; sent += 8) {
      const pieces = Array.from({ length: 8 }, (_, at) => `${sent + at} `.padEnd(PIECE_BYTES, 'x'))
      sender.write(pieces.map(piece => sendFrame(SLOW_TOPIC, piece)).join(''))
      await quick.until(() => quick.frames.length === sent + 8)
      await innocent.round()
      mostBytes = Math.max(mostBytes, residentBytes(server))
      mostBuffered = Math.max(mostBuffered, await server.figure('callsign_connection_buffered_bytes'))
    }
    t.ok(mostBuffered < SLOW_COUNT * 1.5 * 1024 * 1024, `${mostBuffered} bytes unsent at most`)
    t.ok(mostBytes - baselineBytes < 96 * 1024 * 1024, `${mostBytes - baselineBytes} bytes more`)
    const numbers = quick.take().map(({ body }) => Number.parseInt(body.toString('latin1'), 10))
    t.same(numbers, [...numbers.keys()], 'all of it, in order')
    quick.destroy()

    await server.figureWhen('callsign_stomp_endings_total{reason="slow"}', figure => figure === SLOW_COUNT)
    await server.figureWhen('callsign_connections', figure => figure === 2)
    t.equal(await server.figure('callsign_connection_buffered_bytes'), 0)
    for (const peer of slow) peer.destroy()
    await sender.disconnect()
    await innocent.leave(t)
  },
)

t.test('I-15: a client that reads again in time hears that it was slow', async t => {
  for (const carrier of CARRIERS) {
    const [sending, lazy] = await server.devices(2)
    const [sender, slow] = [await server.connect('tcp', sending!), await server.connect(carrier, lazy!)]
    await slow.subscribe(SLOW_TOPIC)
    slow.keepTail()
    slow.pause()
    const slowSoFar = () => server.figure('callsign_stomp_endings_total{reason="slow"}')
    const before = await slowSoFar()
    const piece = sendFrame(SLOW_TOPIC, 'x'.repeat(PIECE_BYTES))
    while ((await slowSoFar()) === before) {
      sender.write(piece.repeat(16))
      await sender.send('/topic/dev.paces', 'x')
    }
    slow.resume()
    await slow.closed()
    const error = slow.tail.subarray(slow.tail.lastIndexOf('ERROR\n'))
    t.match(error.toString('latin1'), /^ERROR\n(?:[^\n]+\n)*reason:slow\nretry:after\nretry-after:0\n/)
    // 4410, behind the frame.
    if (carrier === 'websocket') t.ok(error.subarray(error.indexOf(0)).includes(Buffer.of(0x11, 0x3a)))
    await sender.disconnect()
  }
})

t.test('a sender that floods is stopped at its rate, and other clients do not notice', async t => {
  for (const carrier of CARRIERS) {
    const [flooding, hearing] = await limited.devices(2)
    const witness = await limited.connect(carrier, hearing!)
    await witness.subscribe('/topic/dev.flood')
    const innocent = await Innocent.join(limited, carrier)
    const peer = await limited.connect(carrier, flooding!)
    peer.write(Array.from({ length: 10_000 }, (_, at) => sendFrame('/topic/dev.flood', `${at}`)).join(''))
    await innocent.round()
    t.equal(await peer.ending(), `rate_limited ${carrier === 'tcp' ? 1005 : 1008}`)
    t.match(headerOf(peer.frames.at(-1), 'retry-after'), /^\d+$/)
    await witness.send('/topic/dev.flood', 'last')
    const came = (await witness.disconnect()).map(({ body }) => String(body))
    t.equal(came.pop(), 'last')
    t.same(came.map(Number), [...came.keys()], 'E-29: what came before it was done, in order')
    t.ok(came.length >= 195 && came.length < 400, `${came.length} of them`)
    await innocent.leave(t)
  }
})

/** Why so many CONNECTs with a bad credential were refused, each. */
async function refusals(house: WireServer, count: number): Promise<(string | undefined)[]> {
  const reasons: (string | undefined)[] = []
  for (let at = 0; at < count; at++) {
    const peer = await house.open('tcp')
    peer.write(connectFrame('kat_bad'))
    await peer.closed()
    const [error] = peer.frames
    reasons.push(`${headerOf(error, 'reason')} ${headerOf(error, 'retry-after') !== undefined}`)
  }
  return reasons
}

t.test('C-27: an address with too many bad credentials has to wait; good ones are let in', async t => {
  const reasons = await refusals(limited, 40)
  t.same([...new Set(reasons)], ['token_invalid false', 'rate_limited true'])
  t.ok(reasons.indexOf('rate_limited true') >= 30)
  const [ann] = await limited.devices(1)
  await (await limited.connect('tcp', ann!)).disconnect()
  t.same([...new Set(await refusals(server, 40))], ['token_invalid false'], 'without rates nobody has to')
})

t.test('the server logged no fault', async t => {
  t.same([...server.faults(), ...limited.faults()], [])
})

/** The gRPC server against clients that keep to HTTP/2 and not to gRPC: what they can hold, and for how long. */

import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import t, { type Test } from 'tap'
import { registerRequest } from '../../scripts/support/register-client.ts'
import { GRPC_STREAMS_MAX } from '../../src/limits.ts'
import { GrpcServer, type GrpcWaits } from '../../src/transport/grpc.ts'
import { tlsFile } from '../support/tls.ts'
import { weakCiphersOf } from '../support/weak-ciphers.ts'

const [HEADERS, RST_STREAM, SETTINGS] = [1, 3, 4]
const END_HEADERS = 4
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
/** Each as a literal that is not indexed (RFC 7541, 6.2.2). */
const CALL_HEADERS = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/kt.v1.KTService/Register'],
  [':authority', 'localhost'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
]
  .map(field => `\0${field.map(text => String.fromCharCode(text.length) + text).join('')}`)
  .join('')

interface Served {
  readonly port: number
  readonly session: ClientHttp2Session
  readonly registered: bigint[]
  readonly statuses: string[]
}

const LONG: GrpcWaits = { requestMs: 60_000, connectionMs: 600_000, graceMs: 60_000 }

/** A server, and a connection to it. */
async function serve(t: Test, waits: GrpcWaits): Promise<Served> {
  const registered: bigint[] = []
  const statuses: string[] = []
  const server = new GrpcServer({
    register: async userId => {
      registered.push(userId)
      return { index: 0, vrfHash: new Uint8Array(64) }
    },
    onCall: status => statuses.push(status),
    onRefused: () => undefined,
    onFault: error => t.fail(String(error)),
    waits,
  })
  const port = await server.listen('127.0.0.1', 0)
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  t.teardown(async () => {
    session.destroy()
    await server.close(0)
  })
  return { port, session, registered, statuses }
}

/** A call with its head sent and no more. */
function begin(session: ClientHttp2Session): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/kt.v1.KTService/Register',
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  return stream.on('error', () => undefined)
}

/** Sends the heads of so many calls on one connection; resolves with the first streams that are reset, and why. */
async function refusalsOf(
  port: number,
  calls: number,
  count: number,
): Promise<[stream: number, code: number][]> {
  const socket = connectTcp(port, '127.0.0.1')
  const heads = Array.from({ length: calls }, (_, at) =>
    frame(HEADERS, END_HEADERS, 2 * at + 1, CALL_HEADERS),
  )
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0, ''), ...heads]))
  const refusals: [number, number][] = []
  let heard = Buffer.alloc(0)
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    heard = Buffer.concat([heard, chunk])
    while (heard.length >= 9 && heard.length >= 9 + heard.readUIntBE(0, 3)) {
      const [length, type, stream] = [heard.readUIntBE(0, 3), heard[3], heard.readUInt32BE(5)]
      if (type === RST_STREAM) refusals.push([stream, heard.readUInt32BE(9)])
      if (refusals.length === count) return refusals
      heard = heard.subarray(9 + length)
    }
  }
  return refusals
}

/** A frame of HTTP/2 (RFC 9113, 4.1). */
function frame(type: number, flags: number, stream: number, payload: string): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, Buffer.from(payload, 'latin1')])
}

/** A request as gRPC frames it. */
function requestOf(userID: bigint): Buffer {
  const message = registerRequest(userID, 1n, 'AAAA')
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

async function statusOf(stream: ClientHttp2Stream): Promise<string> {
  const headers = once(stream, 'response').then(([head]) => head['grpc-status'])
  const trailers = once(stream, 'trailers').then(([last]) => last['grpc-status'])
  stream.resume()
  return String((await headers) ?? (await trailers))
}

t.test('more calls at once than a connection may have are refused one by one', async t => {
  const { port, session, registered } = await serve(t, LONG)
  // Not by a client of Node, which keeps to the bound.
  const refused = await refusalsOf(port, GRPC_STREAMS_MAX + 50, 50)
  const first = 2 * GRPC_STREAMS_MAX + 1
  t.same(
    refused,
    Array.from({ length: 50 }, (_, at) => [first + 2 * at, constants.NGHTTP2_REFUSED_STREAM]),
  )
  const stream = begin(session)
  stream.end(requestOf(7n))
  t.equal(await statusOf(stream), '0', 'another connection is served')
  t.same(registered, [7n])
})

t.test(
  'a call without its request, or with a part of it, is answered in time, and registers nothing later',
  async t => {
    const { session, registered, statuses } = await serve(t, { ...LONG, requestMs: 50 })
    const parts = [
      Buffer.alloc(0),
      requestOf(1n).subarray(0, 3),
      requestOf(1n).subarray(0, -1),
      requestOf(1n),
    ]
    for (const part of parts) {
      const stream = begin(session)
      stream.write(part)
      t.equal(await statusOf(stream), '4', `DEADLINE_EXCEEDED after ${part.length} bytes`)
      stream.end(requestOf(1n).subarray(part.length))
    }
    const whole = begin(session)
    whole.end(requestOf(2n))
    t.equal(await statusOf(whole), '0')
    t.same(registered, [2n])
    t.same(statuses, [...parts.map(() => 'DEADLINE_EXCEEDED'), 'OK'])
  },
)

t.test('a client that never ends its calls loses its connection', async t => {
  const { session } = await serve(t, { requestMs: 20, connectionMs: 300, graceMs: 50 })
  const stream = begin(session)
  t.equal(await statusOf(stream), '4')
  t.notOk(stream.closed, 'the client’s half is open')
  await once(session, 'close')
  t.ok(stream.closed)
})

t.test('with TLS 1.2 no cipher of CBC is taken', async t => {
  const server = new GrpcServer({
    register: () => Promise.reject(new Error('nobody registers')),
    onCall: () => undefined,
    onRefused: () => undefined,
    onFault: () => undefined,
    tls: {
      certificate: Buffer.from(tlsFile('server.crt')),
      key: Buffer.from(tlsFile('server.key')),
      clientPins: [],
    },
  })
  t.teardown(() => server.close(0))
  t.same(await weakCiphersOf(await server.listen('127.0.0.1', 0)), [])
})

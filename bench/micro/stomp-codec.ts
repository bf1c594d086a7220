/**
 * How many STOMP frames a second are read and written: a SEND of 300 bytes with five headers, as apps send them, and a
 * MESSAGE of 300 bytes to many subscriptions. Reading is held against the shortest thing that comes to the same frame
 * when nothing is checked, writing against one copy of the finished octets.
 */

import { FRAME_BYTES_MAX } from '../../src/limits.ts'
import { StompParser } from '../../src/stomp/parser.ts'
import { encodeFrame, MessageTemplate, SubscriptionHead } from '../../src/stomp/serializer.ts'
import type { Benchmark, BenchmarkContext, Row } from '../support/benchmark.ts'
import { interleaved, medianOfMany } from '../support/rounds.ts'
import { mean, rounded } from '../support/statistics.ts'

const PARSE: Row = {
  name: 'stomp-parse',
  project: 'STOMP frames read, whole in their chunk',
  limit: 'text split at line ends, nothing checked',
  unit: 'frames/s',
  notShown: 'The same frame again and again; frames that are cut into chunks cost more (details).',
}
const TEMPLATE: Row = {
  name: 'stomp-template',
  project: 'STOMP MESSAGE per receiver, from a template',
  limit: 'one copy of the finished octets',
  unit: 'frames/s',
  goal: { of: 'project', is: 'at least', value: 1_000_000 },
  notShown: 'Nothing is sent; a system call per receiver costs ten times as much.',
}

const FRAMES = 300_000
const FRAMES_SMOKE = 5_000
const BODY = Buffer.from(JSON.stringify({ v: 1, type: 'call_status', text: 'x'.repeat(262) }))
const SEND_HEADERS = [
  ['destination', '/app/call/3f1c2a7e-5b9d-4a60-8c0e-2d6a1f0b9e77/ringing'],
  ['content-type', 'application/json'],
  ['receipt', 'r-17'],
  ['x-app', 'ios 4.2.1'],
].flat()
const MESSAGE_HEADERS = ['content-type', 'application/json', 'type', 'call_status']

export const stompCodec: Benchmark = { name: 'stomp-codec', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { turns, isSmoke } = context.scale
  const frames = isSmoke ? FRAMES_SMOKE : FRAMES
  const send = encodeFrame('SEND', SEND_HEADERS, '1.2', BODY)
  const receivers = Array.from(
    { length: 100 },
    (_, at) => new SubscriptionHead('1.2', `sub-${at % 4}`, '/topic/call.3f1c2a7e-5b9d-4a60', true),
  )
  for (const round of context.rounds()) {
    const parse = await interleaved(
      round,
      turns,
      () => medianOfMany(() => perSecond(frames, () => splitAtLineEnds(send))),
      () => medianOfMany(() => perSecond(frames, readerOf([send]))),
    )
    context.record(PARSE, round, {
      limit: mean(parse.limit),
      project: mean(parse.project),
      parameters: { frames, frameBytes: send.length },
      details: {
        inTwoChunks: rounded(perSecond(frames, readerOf([send.subarray(0, 60), send.subarray(60)]))),
        byOctet: rounded(perSecond(frames / 10, readerOf(Array.from(send, octet => Buffer.of(octet))))),
      },
    })
    const finished = new MessageTemplate(MESSAGE_HEADERS, BODY).encode(receivers[0]!, 'abcdefgh-12345')
    const template = await interleaved(
      round,
      turns,
      () => medianOfMany(() => perSecond(frames, () => Buffer.from(finished).length)),
      () => medianOfMany(() => perSecond(frames, writerTo(receivers))),
    )
    context.record(TEMPLATE, round, {
      limit: mean(template.limit),
      project: mean(template.project),
      parameters: { receivers: receivers.length, frameBytes: finished.length },
      details: { wholeFrameEach: rounded(perSecond(frames, encodeWhole)) },
    })
  }
}

/** Calls of `work` in a second; it returns how many bytes came of it, so that it can't be optimised away. */
function perSecond(calls: number, work: () => number): number {
  let bytes = 0
  for (let call = 0; call < calls / 10; call++) bytes += work()
  const startMs = performance.now()
  for (let call = 0; call < calls; call++) bytes += work()
  const seconds = (performance.now() - startMs) / 1000
  if (bytes === 0) throw new Error('nothing was read or written')
  return calls / seconds
}

function readerOf(chunks: readonly Buffer[]): () => number {
  const parser = new StompParser()
  parser.version = '1.2'
  parser.frameBytesMax = FRAME_BYTES_MAX
  return () => {
    let bytes = 0
    for (const chunk of chunks) {
      parser.feed(chunk)
      for (let frame = parser.next(); frame !== undefined; frame = parser.next()) bytes += frame.body.length
    }
    return bytes
  }
}

function splitAtLineEnds(octets: Buffer): number {
  const headEnd = octets.indexOf('\n\n')
  const [command, ...lines] = octets.toString('utf8', 0, headEnd).split('\n')
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers.set(line.slice(0, colon), line.slice(colon + 1))
  }
  const body = Buffer.from(octets.subarray(headEnd + 2, octets.length - 1))
  return command!.length + headers.size + body.length
}

/** A template for every hundred receivers, as in a room: its own encoding is part of the price. */
function writerTo(receivers: readonly SubscriptionHead[]): () => number {
  let template = new MessageTemplate(MESSAGE_HEADERS, BODY)
  let next = 0
  return () => {
    if (next === receivers.length) {
      template = new MessageTemplate(MESSAGE_HEADERS, BODY)
      next = 0
    }
    return template.encode(receivers[next++]!, 'abcdefgh-12345').length
  }
}

function encodeWhole(): number {
  const own = [
    'subscription',
    'sub-0',
    'destination',
    '/topic/call.3f1c2a7e-5b9d-4a60',
    'message-id',
    'abc-1',
  ]
  return encodeFrame('MESSAGE', [...own, ...MESSAGE_HEADERS], '1.2', BODY).length
}

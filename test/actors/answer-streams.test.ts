/** Answers that are made part by part, between the writer and a front: a part is made when the front asks, and no other. */

import t from 'tap'
import { partsFrom } from '../../actors/answer-streams.ts'
import { frontDeskKind } from '../../actors/front-desk.ts'
import type { ForwardedAnswer, ForwardedRequest, FrontDeskMessage } from '../../actors/messages.ts'
import { SignalError } from '../../src/errors.ts'
import { WRITER_SERVES } from '../../src/fronts/messages.ts'
import { ANSWER_PART_BYTES_MAX, ANSWER_STREAMS_MAX } from '../../src/limits.ts'
import { linkedNodes } from '../support/linked-nodes.ts'

/** Texts that count how many were made. */
class Texts implements AsyncIterable<Uint8Array> {
  made = 0
  stops = 0
  readonly #texts: readonly (string | Error)[]

  constructor(...texts: readonly (string | Error)[]) {
    this.#texts = texts
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: async () => {
        const text = this.#texts[this.made]
        if (text === undefined) return { done: true, value: undefined }
        this.made += 1
        if (text instanceof Error) throw text
        return { done: false, value: Buffer.from(text) }
      },
      return: async () => {
        this.stops += 1
        return { done: true, value: undefined }
      },
    }
  }
}

const REQUEST: ForwardedRequest = {
  method: 'GET',
  path: '/parts',
  params: [],
  query: '',
  requestId: 'request-1',
  contentType: '',
  network: 'a network',
  headers: {},
  body: Buffer.alloc(0),
}

/** A desk of `front-1`, whose answers have these parts. */
function open(make: () => Texts) {
  const nodes = linkedNodes({}, { serves: WRITER_SERVES })
  const faults: unknown[] = []
  const unused = () => Promise.reject(new Error('unused'))
  let named = 0
  const local = nodes.writer.system.define<FrontDeskMessage>(
    frontDeskKind({
      command: unused,
      answer: async () => ({ answer: { status: 200, contentType: 'text/plain', body: '' }, parts: make() }),
      newStreamName: () => `stream-${++named}`,
      inbox: { settle: unused, markDelivered: unused },
      register: unused,
      catchUp: unused,
      onFault: error => faults.push(error),
    }),
  )('front-1')
  const desk = nodes.front.system.remoteRef<FrontDeskMessage>(nodes.front.link, 'front-desk', 'front-1')
  /** Resolves as `asked` does, once both processes are quiet. */
  const settled = async <Value>(asked: Promise<Value>): Promise<Value> => {
    asked.catch(() => undefined)
    await nodes.settle()
    return asked
  }
  const ask = async () => {
    const { stream } = await settled(
      desk.ask<ForwardedAnswer>(
        reply => ({ kind: 'request', route: 'GET /parts', request: REQUEST, reply }),
        60_000,
      ),
    )
    return stream!
  }
  const read = async () => partsFrom(desk, await ask(), 60_000)[Symbol.asyncIterator]()
  return { nodes, local, desk, faults, settled, ask, read }
}

const textOf = ({ value }: IteratorResult<Uint8Array>) => value && Buffer.from(value).toString()

t.test('each part is made when the front asks for it', async t => {
  const texts = new Texts('one', 'two')
  const { nodes, settled, read } = open(() => texts)
  const parts = await read()
  t.equal(texts.made, 0)
  t.equal(textOf(await settled(parts.next())), 'one')
  await nodes.advance(5_000)
  t.equal(texts.made, 1, 'none for a front that does not ask')
  t.equal(textOf(await settled(parts.next())), 'two')
  t.same(await settled(parts.next()), { done: true, value: undefined })
  t.equal(texts.stops, 0)
  await t.rejects(settled(parts.next()), { code: 'OUTCOME_UNKNOWN' }, 'it is over')
})

t.test('a long part goes over in several', async t => {
  const long = `${'x'.repeat(ANSWER_PART_BYTES_MAX)}y`
  const texts = new Texts(long, 'z')
  const { settled, read } = open(() => texts)
  const parts = await read()
  t.equal((await settled(parts.next())).value.length, ANSWER_PART_BYTES_MAX)
  t.equal(textOf(await settled(parts.next())), 'y')
  t.equal(texts.made, 1)
  t.equal(textOf(await settled(parts.next())), 'z')
})

t.test('what the parts fail with reaches the front, and a fault does not', async t => {
  const refusal = new SignalError('USER_NOT_FOUND', 'there is no such user')
  const made = [new Texts('one', refusal), new Texts(new Error('a fault of ours'))]
  const { faults, settled, read } = open(() => made.shift()!)
  const refused = await read()
  await settled(refused.next())
  await t.rejects(settled(refused.next()), { code: 'USER_NOT_FOUND' })
  const broken = await read()
  await t.rejects(settled(broken.next()), { code: 'INTERNAL' })
  t.match(faults, [{ message: 'a fault of ours' }])
})

t.test('a client that goes away stops its parts', async t => {
  const texts = new Texts('one', 'two')
  const { settled, read } = open(() => texts)
  const parts = await read()
  await settled(parts.next())
  await settled(parts.return!())
  t.same([texts.made, texts.stops], [1, 1])
  await t.rejects(settled(parts.next()), { code: 'OUTCOME_UNKNOWN' })
})

t.test('a front that is gone, or that never asks, keeps no parts from stopping', async t => {
  const made: Texts[] = []
  const { nodes, local, settled, read } = open(() => {
    made.push(new Texts('one', 'two'))
    return made.at(-1)!
  })
  const [first] = [await read(), await read()]
  await settled(first.next())
  local.tellControl({ kind: 'front-gone' })
  await nodes.settle()
  t.same(
    made.map(({ stops }) => stops),
    [1, 1],
  )
  await t.rejects(settled(first.next()), { code: 'OUTCOME_UNKNOWN' })
  const later = await read()
  await nodes.advance(59_000)
  t.equal(made[2]!.stops, 0)
  await settled(later.next())
  await nodes.advance(59_000)
  t.equal(made[2]!.stops, 0, 'it asks slowly')
  await nodes.advance(2_000)
  t.equal(made[2]!.stops, 1)
})

t.test('the parts stop with the desk, and once', async t => {
  const texts = new Texts('one')
  const { nodes, desk, ask } = open(() => texts)
  const stream = await ask()
  const stopped = nodes.writer.system.drainAndStop(1_000)
  await nodes.settle()
  t.equal(await stopped, 'finished')
  t.equal(texts.stops, 1)
  desk.tellControl({ kind: 'stop-stream', stream })
  await nodes.settle()
  t.equal(texts.stops, 1)
})

t.test('a front that loses its link while a part is made hears that it does not come', async t => {
  const texts = new Texts('one', 'two')
  const { nodes, settled, read } = open(() => texts)
  const parts = await read()
  await settled(parts.next())
  const asked = parts.next()
  nodes.writer.end.destroy()
  await t.rejects(settled(asked), { code: 'OUTCOME_UNKNOWN' })
})

t.test('a front has so many streams at once, and no more', async t => {
  const made: Texts[] = []
  const { settled, desk, ask, nodes } = open(() => {
    made.push(new Texts('one'))
    return made.at(-1)!
  })
  const names: string[] = []
  for (let at = 0; at < ANSWER_STREAMS_MAX; at++) names.push(await ask())
  t.equal(new Set(names).size, ANSWER_STREAMS_MAX)
  await t.rejects(ask(), { code: 'OVERLOADED' })
  t.equal(made.at(-1)!.stops, 1)
  desk.tellControl({ kind: 'stop-stream', stream: names[0]! })
  await nodes.settle()
  t.ok(await settled(ask()))
})

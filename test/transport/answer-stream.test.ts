/** Answers that are made part by part: as fast as the client reads, and never taken for whole when they are not. */

import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { SignalError } from '../../src/errors.ts'
import { ANSWER_STREAMS_MAX } from '../../src/limits.ts'
import { HttpServer } from '../../src/transport/http.ts'
import type { HttpServerDeps, ServedRequest } from '../../src/transport/http-deps.ts'
import type { HttpRoute } from '../../src/transport/route.ts'
import { sendRaw } from '../support/raw-http.ts'

/** Parts that count themselves. */
class Parts implements AsyncIterable<Uint8Array> {
  made = 0
  readonly #part: (at: number) => Uint8Array | Promise<Uint8Array> | undefined
  #onStopped = () => {}
  isStopped = false
  /** Resolves when no more are wanted. */
  readonly stopped = new Promise<void>(resolve => {
    this.#onStopped = resolve
  })

  /** `part` makes each; undefined ends them, and it may throw. */
  constructor(part: (at: number) => Uint8Array | Promise<Uint8Array> | undefined) {
    this.#part = part
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: async () => {
        await setImmediate()
        const value = await this.#part(this.made)
        if (value === undefined) return { done: true, value }
        this.made += 1
        return { done: false, value }
      },
      return: async () => {
        this.isStopped = true
        this.#onStopped()
        return { done: true, value: undefined }
      },
    }
  }
}

async function serve(t: Test, routes: Record<string, () => Parts>, parts: Partial<HttpServerDeps> = {}) {
  const faults: unknown[] = []
  const refusals: string[] = []
  const answers: number[] = []
  const server = new HttpServer({
    routes: [
      ...Object.entries(routes).map(([path, make]): HttpRoute => {
        const handle = () => ({ status: 200, contentType: 'text/plain', body: make() })
        return { method: 'GET', path, handle }
      }),
      {
        method: 'GET',
        path: '/whole',
        handle: () => ({ status: 200, contentType: 'text/plain', body: 'whole' }),
      },
    ],
    onAnswer: (_route, status) => answers.push(status),
    onRefused: code => refusals.push(code),
    onFault: error => faults.push(error),
    ...parts,
  })
  t.teardown(() => server.close())
  const port = await server.listen('127.0.0.1', 0)
  return { server, url: `http://127.0.0.1:${port}`, port, faults, refusals, answers }
}

/** A connection that has asked, and reads nothing until it is resumed. */
async function askOnly(port: number, path: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: here\r\n\r\n`)
  return socket
}

/** So many requests and answers of other clients pass. */
async function othersAreServed(url: string): Promise<void> {
  for (let at = 0; at < 200; at++) await (await fetch(`${url}/whole`)).text()
}

const MEBIBYTE = 1_048_576
/** The buffers of the two sockets hold so many parts at most. */
const HELD_BY_SYSTEM_MAX = 24

t.test('the parts of an answer arrive in order, and the connection serves the next request', async t => {
  const parts = new Parts(at => (at < 5 ? Buffer.from(at === 2 ? '' : `${at};`) : undefined))
  const served: ServedRequest[] = []
  const { url, answers } = await serve(
    t,
    { '/parts': () => parts },
    { onServed: request => served.push(request) },
  )
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const answerOf = async (path: string) => {
    const [answer]: IncomingMessage[] = await once(get(`${url}${path}`, { agent }), 'response')
    const { headers, socket } = answer!
    const { localPort } = socket
    let text = ''
    for await (const chunk of answer!) text += chunk
    return { text, headers, port: localPort }
  }
  const first = await answerOf('/parts')
  t.equal(first.text, '0;1;3;4;', 'an empty part does not end it')
  t.match(first.headers, { 'transfer-encoding': 'chunked', 'content-type': 'text/plain' })
  t.match(await answerOf('/whole'), { text: 'whole', port: first.port })
  t.same(answers, [200, 200])
  t.match(served[0], { answer: undefined, answerBytes: 8 })
})

t.test('no part is made for a client that reads nothing, and all are once it reads', async t => {
  const count = 64
  const parts = new Parts(at => (at < count ? Buffer.alloc(MEBIBYTE, at) : undefined))
  const { url, port } = await serve(t, { '/parts': () => parts })
  const socket = await askOnly(port, '/parts')
  await othersAreServed(url)
  t.ok(parts.made > 0 && parts.made <= HELD_BY_SYSTEM_MAX, `${parts.made} parts are made`)
  let heard = 0
  let tail = ''
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.length
    tail = (tail + chunk.toString('latin1')).slice(-5)
    if (tail === '0\r\n\r\n') socket.destroy()
  })
  socket.resume()
  await once(socket, 'close')
  t.equal(parts.made, count)
  t.ok(heard > count * MEBIBYTE)
  t.notOk(parts.isStopped, 'they ended by themselves')
})

t.test('no more parts are made for a client that goes away', async t => {
  const parts = new Parts(() => Buffer.alloc(MEBIBYTE))
  const { server, url, port, faults } = await serve(t, { '/parts': () => parts })
  const socket = await askOnly(port, '/parts')
  socket.once('data', () => socket.destroy())
  socket.resume()
  await parts.stopped
  const { made } = parts
  await othersAreServed(url)
  t.ok(parts.made <= made + 1, 'but one that was being made')
  await server.answered(1_000)
  t.same(faults, [])
})

t.test('a client that went away before the answer began stops it, too', async t => {
  let finish = (_part: Uint8Array) => {}
  const part = new Promise<Uint8Array>(resolve => {
    finish = resolve
  })
  const parts = new Parts(() => part)
  const { port } = await serve(t, { '/parts': () => parts })
  const socket = await askOnly(port, '/parts')
  socket.destroy()
  await parts.stopped
  finish(Buffer.from('late'))
  await setImmediate()
  t.equal(parts.made, 1, 'the part that was being made')
})

t.test('an answer that fails before its first part is a refusal', async t => {
  const refused = new Parts(() => {
    throw new SignalError('USER_NOT_FOUND', 'there is no such user')
  })
  const broken = new Parts(() => {
    throw new Error('a fault of ours')
  })
  const { url, refusals, faults, answers } = await serve(t, {
    '/refused': () => refused,
    '/broken': () => broken,
  })
  const refusal = await fetch(`${url}/refused`)
  t.match(await refusal.json(), { status: 404, code: 'USER_NOT_FOUND' })
  t.equal((await fetch(`${url}/broken`)).status, 500)
  t.same([refusals, answers], [['USER_NOT_FOUND'], [404, 500]])
  t.match(faults, [{ message: 'a fault of ours' }])
})

t.test('an answer that fails later is cut off, and its client sees that', async t => {
  const failing = (error: Error) => () =>
    new Parts(at => {
      if (at === 3) throw error
      return Buffer.from('part;')
    })
  const { url, port, refusals, faults } = await serve(t, {
    '/refused': failing(new SignalError('OUTCOME_UNKNOWN', 'the rest is gone')),
    '/broken': failing(new Error('a fault of ours')),
  })
  await t.rejects(
    fetch(`${url}/refused`).then(answer => answer.text()),
    'a client does not take it for whole',
  )
  const raw = await sendRaw(port, 'GET /broken HTTP/1.1\r\nHost: here\r\n\r\n')
  t.match(raw, /^HTTP\/1\.1 200 OK/)
  t.match(raw, 'part;')
  t.notMatch(raw, /\r\n0\r\n/, 'the last chunk is missing')
  t.same(refusals, ['OUTCOME_UNKNOWN'])
  t.match(faults, [{ message: 'a fault of ours' }])
})

t.test('an answer that is not read within its deadline is cut off', async t => {
  const parts = new Parts(() => Buffer.alloc(MEBIBYTE))
  const { port, refusals } = await serve(t, { '/parts': () => parts }, { streamDeadlineMs: 100 })
  const socket = await askOnly(port, '/parts')
  await parts.stopped
  socket.resume()
  await once(socket, 'close')
  t.same(refusals, ['DEADLINE_EXCEEDED'])
})

t.test('so many answers are made at once, and no more', async t => {
  const made: Parts[] = []
  const waiting = () => {
    const parts = new Parts(at => (at === 0 ? Buffer.from('x') : new Promise(() => undefined)))
    made.push(parts)
    return parts
  }
  const { url, port } = await serve(t, { '/parts': waiting })
  const sockets: Socket[] = []
  for (let at = 0; at < ANSWER_STREAMS_MAX; at++) {
    const socket = await askOnly(port, '/parts')
    sockets.push(socket)
    socket.resume()
    await once(socket, 'data')
  }
  const refused = await fetch(`${url}/parts`)
  t.match(await refused.json(), { status: 503, code: 'OVERLOADED' })
  await made.at(-1)!.stopped
  sockets[0]!.destroy()
  await made[0]!.stopped
  const socket = await askOnly(port, '/parts')
  socket.resume()
  const [head] = await once(socket, 'data')
  t.match(String(head), /^HTTP\/1\.1 200 OK/, 'one place is free again')
  for (const each of [...sockets, socket]) each.destroy()
})

t.test('for HEAD nothing is made', async t => {
  const parts = new Parts(() => Buffer.from('x'))
  const { url } = await serve(t, { '/parts': () => parts })
  const answer = await fetch(`${url}/parts`, { method: 'HEAD' })
  t.match(answer, { status: 200 })
  t.notOk(answer.headers.has('content-length'))
  t.same([parts.made, parts.isStopped], [0, true])
})

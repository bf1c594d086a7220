/** Connections of `@callsign/sdk/app` with servers that the tests write: they break the protocol, fall silent, lose events. */

import { once } from 'node:events'
import { createServer } from 'node:net'
import { mock } from 'node:test'
import t, { type Test } from 'tap'

import type { ConnectionDeps } from '../../../src/app/connection/connection.ts'
import {
  type StompClose,
  StompSocket,
  type WebSocketClass,
  type WebSocketLike,
} from '../../../src/app/connection/stomp-socket.ts'
import { openConnection } from '../../support/app-connections.ts'
import { platformOf, rejectionOf } from '../../support/app-sessions.ts'

import {
  answerWell,
  CONNECTED,
  type Says,
  serveStomp,
  signedInApp,
} from '../../support/scripted-stomp-server.ts'

/** An app that has asked for a connection, and the pauses that it has made. */
async function connect(t: Test, url: string, options: Partial<ConnectionDeps> = {}) {
  const pauses: number[] = []
  const wait = async (ms: number) => void pauses.push(ms)
  const app = await signedInApp(url, platformOf({ wait }))
  const opened = openConnection(app, options)
  t.teardown(() => opened.connection.disconnect())
  opened.connection.connect()
  return { ...opened, ...app, pauses }
}

/** Says this once the app is connected, the first time. */
const afterConnected =
  (...frames: readonly string[]): Says =>
  (socket, text, at) => {
    answerWell(socket, text)
    if (at === 0 && text.includes('/user/queue/calls')) for (const each of frames) socket.send(each)
  }

const message = (body: string, headers = 'subscription:calls\nack:1-1\nmessage-id:1-1') =>
  `MESSAGE\n${headers}\n\n${body}\0`
const event = (eventId: string) => JSON.stringify({ type: 'call_ended', eventId })

t.test('a breach of the protocol ends the connection, and the app comes back', async t => {
  const first = [
    '',
    'x',
    'RECEIPT\nreceipt-id:1\n\n\0',
    message(event('e')),
    'CONNECTED\nheart-beat:x\n\n\0',
    'CONNECTED\nheart-beat:-1,0\n\n\0',
  ]
  const later = [
    'CONNECTED\n\n\0',
    'NONSENSE\n\n\0',
    'MESSAGE\nsubscription:calls',
    message('{'),
    message('null'),
    message(event('e'), 'subscription:calls\nack:\\x'),
    message('null', 'subscription:errors'),
    message(event('x'.repeat(1024 * 1024))),
  ]
  const cases: Says[] = [
    ...first.map<Says>(frame => (socket, text, at) => {
      if (at === 0) socket.send(frame)
      else answerWell(socket, text)
    }),
    ...later.map(frame => afterConnected(frame)),
  ]
  for (const says of cases) {
    const { listener, connection } = await connect(t, await serveStomp(t, says))
    listener.handle = () => new Promise(() => {})
    await listener.until(({ troubles }) => troubles.length > 0)
    await listener.until(({ states }) => states.includes('failed 1') && states.at(-1) === 'connected')
    t.match(listener.troubles, [{ code: 'ANSWER_INVALID' }])
    t.ok(listener.events.length <= 1)
    await connection.disconnect()
  }
})

t.test('messages without a meaning for the app are passed over', async t => {
  const says = afterConnected(
    '\n',
    'RECEIPT\nreceipt-id:99\n\n\0',
    'RECEIPT\n\n\0',
    message('{"receiptId":"99","problem":null}', 'subscription:errors'),
    message(event('a'), 'subscription:former'),
    message(event('b')),
    message(event('b')),
    message(event('c')).slice(0, -1),
  )
  const { listener } = await connect(t, await serveStomp(t, says))
  await listener.until(({ events }) => events.length === 2)
  t.match(listener.events, [{ eventId: 'b' }, { eventId: 'c' }])
  t.same(listener.troubles, [])
})

t.test('pauses are random up to a bound that doubles, and as long as the server asks', async t => {
  const error = (headers: string) => `ERROR\nreason:draining\n${headers}\n\n{}\0`
  const endings = ['retry-after:7000', 'retry-after:1', 'retry-after:x', 'retry-after:1e12', '', '', '', '']
  const url = await serveStomp(t, (socket, text, at) => {
    const ending = endings[at]
    if (ending === undefined) return answerWell(socket, text)
    socket.send(error(ending === '' ? 'a:b' : ending))
    socket.close(1012, 'draining')
  })
  const { listener, pauses } = await connect(t, url)
  await listener.connected()
  t.same(pauses, [7_000, 2_000, 4_000, 600_000, 16_000, 30_000, 30_000, 30_000])
  t.same(listener.troubles, [])
})

t.test('a defect is reported, and the refused frame is not repeated', async t => {
  const sends: string[] = []
  const url = await serveStomp(t, (socket, text) => {
    if (!text.startsWith('SEND')) return answerWell(socket, text)
    sends.push(text)
    const receipt = /receipt:(\d+)/.exec(text)![1]
    socket.send(`ERROR\nreason:malformed_frame\nreceipt-id:${receipt}\n\n{"code":"PROTOCOL_ERROR"}\0`)
    socket.close(1002, 'malformed_frame')
  })
  const { connection, listener } = await connect(t, url)
  await listener.connected()
  t.equal(await rejectionOf(connection.send('/app/x', {})), 'PROTOCOL_ERROR')
  await listener.connected(2)
  t.match(listener.troubles, [{ code: 'PROTOCOL_ERROR' }])
  t.equal(sends.length, 1)
})

t.test('a server that falls silent, or never answers, is given up', async t => {
  const silent = await serveStomp(t, (socket, text, at) => {
    if (at === 0) socket.send(CONNECTED.replace('\n\n', '\nheart-beat:1,0\n\n'))
    else answerWell(socket, text)
  })
  const one = await connect(t, silent, { heartBeatMs: [0, 1] })
  await one.listener.connected()
  t.same(one.listener.states, ['connecting', 'connected', 'failed 1', 'connected'])

  const mute = await serveStomp(t, (socket, text, at) => at > 0 && answerWell(socket, text))
  const two = await connect(t, mute, { answerWithinMs: 100 })
  await two.listener.connected()
  t.same(two.listener.states, ['connecting', 'failed 1', 'connected'])

  const deaf = createServer().listen(0, '127.0.0.1')
  await once(deaf, 'listening')
  deaf.on('connection', socket => t.teardown(() => socket.destroy()))
  t.teardown(() => deaf.close())
  const { port } = deaf.address() as { port: number }
  const three = await connect(t, `http://127.0.0.1:${port}`, { answerWithinMs: 1 })
  await three.listener.until(({ states }) => states.includes('failed 2'))
  await three.connection.disconnect()
  t.equal(three.connection.state, 'off')
})

t.test('whatever a server sends counts against its silence', async t => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  t.teardown(() => mock.timers.reset())
  const handlers = { onopen: null, onmessage: null, onclose: null, onerror: null }
  const socket: WebSocketLike = { ...handlers, send() {}, close() {} }
  const webSocket = function open() {
    return socket
  } as unknown as WebSocketClass
  const options = { url: 'ws://127.0.0.1/ws', accessToken: '', onConnected() {}, onMessage() {} }
  const stomp = new StompSocket({ ...options, webSocket, heartBeatMs: [0, 10_000], answerWithinMs: 100 })
  let close: StompClose | undefined
  void stomp.closed.then(each => {
    close = each
  })
  const say = (data: string) => socket.onmessage?.({ data } as never)
  say(CONNECTED.replace('\n\n', '\nheart-beat:10000,0\n\n'))
  for (let beats = 0; beats < 5; beats++) {
    mock.timers.tick(25_000)
    say('\n')
  }
  await Promise.resolve()
  t.equal(close, undefined)
  mock.timers.tick(26_000)
  t.match(await stomp.closed, { code: 1006 })
})

t.test('heart-beats are sent as often as both sides agree', async t => {
  let beats = 0
  const url = await serveStomp(t, (socket, text) => {
    if (text.startsWith('CONNECT\n')) socket.send(CONNECTED.replace('\n\n', '\nheart-beat:0,1\n\n'))
    else answerWell(socket, text)
    if (text === '\n' && ++beats === 3) socket.close(4409, 'replaced')
  })
  const { listener } = await connect(t, url, { heartBeatMs: [2, 0] })
  await listener.until(({ states }) => states.at(-1) === 'elsewhere')
  t.equal(beats, 3)
})

t.test('news that the network is there ends a pause', async t => {
  const target = new EventTarget()
  const listening = {
    addEventListener: target.addEventListener.bind(target),
    removeEventListener: target.removeEventListener.bind(target),
  }
  Object.assign(globalThis, listening)
  t.teardown(() => Object.assign(globalThis, { addEventListener: undefined, removeEventListener: undefined }))
  const url = await serveStomp(t, (socket, text, at) => {
    if (at < 2) socket.close(1013)
    else answerWell(socket, text)
  })
  const signals: AbortSignal[] = []
  const wait = (_: number, signal?: AbortSignal) =>
    new Promise<void>(resolve => {
      signals.push(signal!)
      signal!.addEventListener('abort', () => resolve())
    })
  const { connection, listener } = openConnection(await signedInApp(url, platformOf({ wait })))
  t.teardown(() => connection.disconnect())
  connection.connect()
  await listener.until(({ states }) => states.includes('failed 1'))
  target.dispatchEvent(new Event('online'))
  await listener.until(({ states }) => states.includes('failed 2'))
  connection.connect()
  await listener.connected()
  t.equal(signals.length, 2)
})

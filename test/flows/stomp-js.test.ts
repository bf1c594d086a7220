/**
 * I-17, I-18: @stomp/stompjs as apps have it, unmodified, with the options that apps set because of their platforms:
 * connect, subscribe, send, receipt, acknowledge, commit, unsubscribe, deactivate.
 */

import { Client, type IFrame, type IMessage, type StompConfig, Versions } from '@stomp/stompjs'
import t, { type Test } from 'tap'
import WebSocket from 'ws'
import { headerOf } from '../support/naive-stomp.ts'
import { type WireDevice, WireServer } from '../support/wire-server.ts'

const server = await WireServer.start(t, { people: 12 })
const brokerURL = `${server.running.http.replace('http', 'ws')}/ws`

// Browsers have it, and Node 20 does not.
Object.assign(globalThis, { WebSocket })

/** The socket of React Native on Android, whose bridge cuts a text at its first NUL (stomp-js/stompjs #89). */
function reactNativeSocket(): WebSocket {
  const socket = new WebSocket(brokerURL, ['v12.stomp', 'v11.stomp', 'v10.stomp'])
  Object.defineProperty(socket, 'onmessage', {
    set(listener: (event: { readonly data: unknown }) => void) {
      socket.addEventListener('message', ({ data }) =>
        listener({ data: typeof data === 'string' ? data.split('\0')[0] : data }),
      )
    },
  })
  return socket
}

const PROFILES: Readonly<Record<string, StompConfig>> = {
  'with its defaults': {},
  'with binary frames': { forceBinaryWSFrames: true },
  'with large frames split': { splitLargeFrames: true },
  'as React Native has it': {
    forceBinaryWSFrames: true,
    appendMissingNULLonIncoming: true,
    webSocketFactory: reactNativeSocket,
  },
}

/** An app with a client, and all that reached it. */
class StockClient {
  readonly client: Client
  readonly errors: IFrame[] = []
  closeCode: number | undefined
  readonly #waiting: (() => void)[] = []

  constructor({ token }: WireDevice, config: StompConfig) {
    this.client = new Client({
      brokerURL,
      connectHeaders: { Authorization: `Bearer ${token}` },
      ...config,
      onStompError: frame => this.errors.push(frame),
      onWebSocketClose: ({ code }) => {
        this.closeCode = code
        for (const resolve of this.#waiting.splice(0)) resolve()
      },
    })
  }

  connect(): Promise<IFrame> {
    return new Promise(resolve => {
      this.client.onConnect = resolve
      this.client.activate()
    })
  }

  closed(): Promise<void> {
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  /** Resolves when the server says that it is done. */
  receipt(ask: (headers: { receipt: string }) => void): Promise<IFrame> {
    const receipt = `receipt-${++receiptCount}`
    return new Promise(resolve => {
      this.client.watchForReceipt(receipt, resolve)
      ask({ receipt })
    })
  }

  /** Subscribes; hands messages out in order. */
  async subscribe(destination: string, ack = 'auto'): Promise<Inflow> {
    const inflow = new Inflow()
    await this.receipt(headers => {
      inflow.id = this.client.subscribe(destination, message => inflow.add(message), { ...headers, ack }).id
    })
    return inflow
  }
}

let receiptCount = 0

/** The messages of one subscription. */
class Inflow {
  id = ''
  readonly #messages: IMessage[] = []
  #waiting: ((message: IMessage) => void)[] = []

  get count(): number {
    return this.#messages.length
  }

  add(message: IMessage): void {
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#messages.push(message)
    else waiting(message)
  }

  next(): Promise<IMessage> {
    const message = this.#messages.shift()
    if (message !== undefined) return Promise.resolve(message)
    return new Promise(resolve => this.#waiting.push(resolve))
  }
}

async function liveStory(t: Test, app: StockClient): Promise<void> {
  const { client } = app
  const topic = await app.subscribe('/topic/dev.js')
  const headers = { k: 'a:b\nc', 'content-type': 'text/plain' }
  await app.receipt(receipt =>
    client.publish({ destination: '/topic/dev.js', body: 'grüße 🎥', headers: { ...headers, ...receipt } }),
  )
  const greeting = await topic.next()
  t.same([greeting.body, greeting.headers.k], ['grüße 🎥', 'a:b\nc'])

  const large = 'ä'.repeat(100_000)
  client.publish({ destination: '/topic/dev.js', body: large })
  t.equal((await topic.next()).body, large)
  const binaryBody = Uint8Array.of(0, 255, 0, 254, 10)
  const octets = { 'content-type': 'application/octet-stream' }
  client.publish({ destination: '/topic/dev.js', binaryBody, headers: octets })
  t.same((await topic.next()).binaryBody, binaryBody)

  const transaction = client.begin()
  client.publish({ destination: '/topic/dev.js', body: 'late', headers: { transaction: transaction.id } })
  client.publish({ destination: '/topic/dev.js', body: 'early' })
  t.equal((await topic.next()).body, 'early')
  transaction.commit()
  t.equal((await topic.next()).body, 'late')

  await app.receipt(receipt => client.unsubscribe(topic.id, receipt))
  await app.receipt(receipt => client.publish({ destination: '/topic/dev.js', body: 'x', headers: receipt }))
  t.equal(topic.count, 0)
}

/** Unacknowledged messages come again when the client has come back. */
async function durableStory(t: Test, device: WireDevice, config: StompConfig): Promise<void> {
  const first = new StockClient(device, config)
  await first.connect()
  for (const body of ['1', '2', '3']) {
    await first.receipt(headers => first.client.publish({ destination: '/user/queue/dev.js', body, headers }))
  }
  const queue = await first.subscribe('/user/queue/dev.js', 'client-individual')
  const [one, two] = [await queue.next(), await queue.next(), await queue.next()]
  await first.receipt(headers => two!.ack(headers))
  await first.receipt(headers => one!.nack(headers))
  await first.client.deactivate()

  const second = new StockClient(device, config)
  await second.connect()
  const again = await second.subscribe('/user/queue/dev.js', 'client')
  const redelivered = [await again.next(), await again.next()]
  t.same(
    redelivered.map(({ body, headers }) => [body, headers.redelivered]),
    [
      ['1', 'true'],
      ['3', 'true'],
    ],
  )
  await second.receipt(headers => redelivered[1]!.ack(headers))
  await second.client.deactivate()
  t.equal(again.count, 0)
  t.same([...first.errors, ...second.errors], [])
}

for (const [name, config] of Object.entries(PROFILES)) {
  t.test(`stompjs ${name}`, async t => {
    const [device] = await server.devices(1)
    const app = new StockClient(device!, config)
    const connected = await app.connect()
    t.match(connected.headers, { version: '1.2', 'user-name': device!.userId, 'heart-beat': '10000,10000' })
    await liveStory(t, app)
    await app.client.deactivate()
    t.equal(app.closeCode, 1000)
    t.same(app.errors, [])
    await durableStory(t, device!, config)
  })
}

t.test('stompjs with login and passcode, in each version', async t => {
  const [device] = await server.devices(1)
  for (const version of ['1.0', '1.1', '1.2']) {
    const app = new StockClient(device!, {
      stompVersions: new Versions([version]),
      connectHeaders: { login: device!.userId, passcode: device!.token },
    })
    const { headers } = await app.connect()
    t.equal(headers.version, version)
    const topic = await app.subscribe('/topic/dev.js-versions')
    app.client.publish({ destination: '/topic/dev.js-versions', body: version })
    t.equal((await topic.next()).body, version)
    await app.client.deactivate()
    t.same(app.errors, [])
  }
})

t.test('stompjs hears why it is refused, and with which code', async t => {
  const app = new StockClient({ token: 'kat_nobody', userId: '', deviceId: '' }, { reconnectDelay: 0 })
  const closed = app.closed()
  app.client.activate()
  await closed
  t.match(app.errors[0]?.headers, { code: '401', reason: 'token_invalid', retry: 'false' })
  t.match(JSON.parse(app.errors[0]!.body), { code: 'TOKEN_INVALID' })
  t.equal(app.closeCode, 4401)
  await app.client.deactivate()
})

/** Frames of discontinued clients, octet for octet. */
const OLDER_CLIENTS: Readonly<Record<string, { connect: string; send: string; subscribe: string }>> = {
  'stompjs 2.3.3': {
    connect: 'CONNECT\npasscode:<tok>\nlogin:<user>\naccept-version:1.1,1.0\nheart-beat:10000,10000\n\n\0',
    subscribe: 'SUBSCRIBE\nid:sub-0\ndestination:/topic/dev.old\n\n\0',
    send: 'SEND\npriority:9\ndestination:/topic/dev.old\ncontent-length:5\n\nhello\0',
  },
  'webstomp-client 1.2.6': {
    connect:
      'CONNECT\naccept-version:1.2,1.1,1.0\nheart-beat:10000,10000\nlogin:<user>\npasscode:<tok>\n\n\0',
    subscribe: 'SUBSCRIBE\nid:sub-0\ndestination:/topic/dev.old\n\n\0',
    send: 'SEND\ndestination:/topic/dev.old\ncontent-length:5\n\nhello\0',
  },
}

for (const [name, frames] of Object.entries(OLDER_CLIENTS)) {
  t.test(`${name}, as it writes`, async t => {
    const [device] = await server.devices(1)
    const upgradeLines = 'Sec-WebSocket-Protocol: v10.stomp, v11.stomp\r\n'
    const peer = await server.open('websocket', { upgradeLines })
    peer.write(frames.connect.replace('<tok>', device!.token).replace('<user>', device!.userId))
    t.match(headerOf(await peer.frame(() => true), 'version'), /^1\.[12]$/)
    peer.write('\n')
    peer.write(frames.subscribe)
    peer.write(frames.send)
    const message = await peer.message()
    t.same([String(message.body), headerOf(message, 'subscription')], ['hello', 'sub-0'])
    peer.write('DISCONNECT\n\n\0')
    t.equal(await peer.closed(), 1000)
  })
}

t.test('the server logged no fault', async t => {
  t.same(server.faults(), [])
})

/**
 * Program: clients that all subscribe to one topic; the first sends, so many in flight. Of bare
 * uWebSockets.js, which answers every message with one to every connection, it asks the same without signing in.
 */

import { serveParent } from './program.ts'
import { type Login, StompSocket, stompSend } from './stomp-socket.ts'
import { openMany } from './websocket-client.ts'

export interface TopicLoadProtocol {
  readonly setup: { readonly port: number }
  readonly request:
    | {
        readonly kind: 'open'
        readonly destination: string
        readonly receivers: number
        /** One for each receiver; none for bare uWebSockets.js. */
        readonly logins: readonly Login[]
      }
    | { readonly kind: 'run'; readonly inFlight: number; readonly seconds: number }
    | { readonly kind: 'close' }
  readonly answer: TopicLoadFigures
}

export interface TopicLoadFigures {
  /** Octets of one message to a receiver; 0 but after opening. */
  readonly messageBytes: number
  readonly framesPerSecond: number
  /** All that came since the run began, also before and after it was counted. */
  readonly frames: number
  /** Processor time of this client. */
  readonly clientCores: number
}

let clients: StompSocket[] = []
let message: Buffer = Buffer.alloc(0)

serveParent<TopicLoadProtocol>(async setup => async request => {
  switch (request.kind) {
    case 'open':
      return open(setup, request)
    case 'run':
      return run(request)
    case 'close':
      await Promise.all(clients.map(client => client.abort()))
      return NOTHING
  }
})

type Asked<Kind> = Extract<TopicLoadProtocol['request'], { kind: Kind }>

async function open(
  target: TopicLoadProtocol['setup'],
  { destination, receivers, logins }: Asked<'open'>,
): Promise<TopicLoadFigures> {
  clients = await openMany(receivers, async at => {
    const client = await StompSocket.open(target)
    const login = logins[at]
    if (login === undefined) return client
    await client.signIn(login)
    await client.subscribe([{ id: 'sub-0', destination, ack: 'auto' }])
    return client
  })
  message = stompSend(destination, BODY)
  const all = Promise.all(clients.map(client => client.nextMessage()))
  // With fronts, a message may be faster at the writer than the subscription of another front's client.
  const again = setInterval(() => clients[0]!.send(message), AGAIN_MS)
  clients[0]!.send(message)
  const [received] = await all
  clearInterval(again)
  await sleep(AGAIN_MS)
  return { ...NOTHING, messageBytes: received!.length }
}

async function run({ inFlight, seconds }: Asked<'run'>): Promise<TopicLoadFigures> {
  const cpuBefore = process.cpuUsage()
  const begunMs = performance.now()
  const pump = new Pump(inFlight)
  await sleep(WARM_UP_MS)
  const [before, startMs] = [pump.frames, performance.now()]
  await sleep(seconds * 1000)
  const framesPerSecond = ((pump.frames - before) / (performance.now() - startMs)) * 1000
  await pump.stop()
  const { user, system } = process.cpuUsage(cpuBefore)
  const clientCores = (user + system) / 1000 / (performance.now() - begunMs)
  return { messageBytes: 0, framesPerSecond, frames: pump.frames, clientCores }
}

/** Has the first client send whenever all clients got the messages before. */
class Pump {
  readonly #inFlight: number
  /** Of all clients, kept up by what each has read: counting all for every chunk would be most of the work. */
  frames = 0
  #sent = 0
  #isStopping = false
  #onDone: (() => void) | undefined = undefined

  constructor(inFlight: number) {
    this.#inFlight = inFlight
    for (const client of clients) {
      let seen = client.messages
      client.onRead = () => {
        this.frames += client.messages - seen
        seen = client.messages
        this.#fill()
      }
    }
    this.#fill()
  }

  /** Resolves when nothing is in flight. */
  stop(): Promise<void> {
    this.#isStopping = true
    return new Promise(resolve => {
      this.#onDone = resolve
      this.#fill()
    })
  }

  #fill(): void {
    const received = Math.floor(this.frames / clients.length)
    if (this.#isStopping) {
      if (received === this.#sent) this.#onDone?.()
      return
    }
    const missing = this.#inFlight - (this.#sent - received)
    if (missing <= 0) return
    this.#sent += missing
    clients[0]!.send(missing === 1 ? message : Buffer.concat(Array(missing).fill(message)))
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => {
    setTimeout(resolve, ms)
  })
}

const NOTHING: TopicLoadFigures = { messageBytes: 0, framesPerSecond: 0, frames: 0, clientCores: 0 }
const WARM_UP_MS = 300
const AGAIN_MS = 1_000
const BODY = JSON.stringify({ text: 'x'.repeat(300 - '{"text":""}'.length) })

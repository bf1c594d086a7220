/**
 * Program: WebSocket clients. One sends messages, so many in flight; the server answers each with one frame to every
 * client. Frames are counted by their bytes, without being looked at.
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { serveParent } from './program.ts'

export interface FanOutLoadProtocol {
  readonly setup: Record<string, never>
  readonly request: {
    readonly port: number
    readonly receivers: number
    readonly inFlight: number
    readonly frameBytes: number
    readonly seconds: number
  }
  readonly answer: { readonly framesPerSecond: number }
}

type Load = FanOutLoadProtocol['request']

serveParent<FanOutLoadProtocol>(async () => measure)

async function measure(load: Load): Promise<FanOutLoadProtocol['answer']> {
  const clients = await FanOutClients.open(load)
  clients.fill()
  await sleep(WARM_UP_MS)
  const [before, startMs] = [clients.frames, performance.now()]
  await sleep(load.seconds * 1000)
  const framesPerSecond = ((clients.frames - before) / (performance.now() - startMs)) * 1000
  await clients.end()
  return { framesPerSecond }
}

class FanOutClients {
  readonly #load: Load
  readonly #wireBytes: number
  readonly #sockets: Socket[] = []
  #bytes = 0
  #sent = 0

  private constructor(load: Load) {
    this.#load = load
    this.#wireBytes = load.frameBytes + (load.frameBytes < 126 ? 2 : 4)
  }

  static async open(load: Load): Promise<FanOutClients> {
    const clients = new FanOutClients(load)
    for (let i = 0; i < load.receivers; i++) await clients.#connect()
    return clients
  }

  get frames(): number {
    return this.#bytes / this.#wireBytes
  }

  /** Sends messages until so many are in flight. */
  fill(): void {
    const { receivers, inFlight } = this.#load
    const answered = Math.floor(this.frames / receivers)
    const missing = inFlight - (this.#sent - answered)
    if (missing <= 0) return
    this.#sent += missing
    this.#sockets[0]!.write(missing === 1 ? MESSAGE : Buffer.concat(Array(missing).fill(MESSAGE)))
  }

  async end(): Promise<void> {
    const closed = this.#sockets.map(socket => once(socket, 'close'))
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(closed)
  }

  async #connect(): Promise<void> {
    let onUpgraded = () => {}
    const upgraded = new Promise<void>(resolve => {
      onUpgraded = resolve
    })
    let isUpgraded = false
    const callback = (length: number) => {
      // Nothing is sent to a client before the first message, so the head comes alone.
      if (isUpgraded) this.#take(length)
      else onUpgraded()
      isUpgraded = true
      return true
    }
    const socket = connect({
      port: this.#load.port,
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: READ_BUFFER, callback },
    })
    socket.write(UPGRADE)
    this.#sockets.push(socket)
    await upgraded
  }

  #take(length: number): void {
    this.#bytes += length
    this.fill()
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => {
    setTimeout(resolve, ms)
  })
}

const WARM_UP_MS = 300
const READ_BUFFER = Buffer.alloc(256 * 1024)
/** A binary message of one byte, masked with zeros. */
const MESSAGE = Buffer.from([0x82, 0x81, 0, 0, 0, 0, 0x61])
const UPGRADE = `GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\n\r\n`

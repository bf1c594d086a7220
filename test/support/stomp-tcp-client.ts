/** A STOMP client over plain TCP, as a service on the same machine would be one: writes octets, reads frames naively. */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type NaiveFrame, NaiveParser, serverRules } from './naive-stomp.ts'
import { headerIn } from './stomp-peer.ts'

export class StompTcpClient {
  /** The ids of the RECEIPTs so far, in order. */
  readonly receipts: string[] = []
  /** The MESSAGEs so far, in order. */
  readonly messages: NaiveFrame[] = []
  /** The ERROR, if there was one. */
  error: NaiveFrame | undefined = undefined
  isClosed = false
  /** Called for each frame as it is read. */
  onFrame: (frame: NaiveFrame) => void = () => {}
  readonly #socket: Socket
  readonly #parser = new NaiveParser(serverRules('1.2'))
  #connected: NaiveFrame | undefined = undefined
  #onNews: (() => void)[] = []

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', bytes => this.#read(bytes))
    // 'close' follows.
    socket.on('error', () => undefined)
    socket.once('close', () => {
      this.isClosed = true
      this.#tellNews()
    })
  }

  /** Resolves when the server, at `host:port`, has answered CONNECTED; rejects with the ERROR's text otherwise. */
  static async connect(address: string, accessToken: string): Promise<StompTcpClient> {
    const [host = '', port = ''] = address.split(':')
    const socket = connect({ host, port: Number(port), noDelay: true })
    const client = new StompTcpClient(socket)
    await once(socket, 'connect')
    client.write(`CONNECT\naccept-version:1.2\nhost:h\nAuthorization:Bearer ${accessToken}\n\n\0`)
    await client.until(() => client.#connected !== undefined)
    return client
  }

  /** A header of CONNECTED. */
  connected(name: string): string | undefined {
    return headerIn(this.#connected, name)
  }

  write(octets: string): void {
    this.#socket.write(octets)
  }

  /** Resolves once the RECEIPT is there; rejects when the connection ends without it. */
  async send(destination: string, body: string, receipt: string): Promise<void> {
    this.write(sendFrame(destination, body, receipt))
    await this.receipt(receipt)
  }

  async receipt(id: string): Promise<void> {
    await this.until(() => this.receipts.includes(id))
  }

  /** Resolves once the subscription is there; what was kept for it follows. */
  async subscribe(destination: string, id: string, ack: 'auto' | 'client' = 'auto'): Promise<void> {
    this.write(`SUBSCRIBE\nid:${id}\ndestination:${destination}\nack:${ack}\nreceipt:sub-${id}\n\n\0`)
    await this.receipt(`sub-${id}`)
  }

  /** Resolves when `isSo`, which is asked whenever a frame came; rejects when the connection ends before. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      if (this.isClosed)
        throw new Error(`the connection has ended: ${this.error?.body ?? 'without an ERROR'}`)
      await new Promise<void>(resolve => this.#onNews.push(resolve))
    }
  }

  /** Resolves when the connection has ended. */
  async closed(): Promise<void> {
    while (!this.isClosed) await new Promise<void>(resolve => this.#onNews.push(resolve))
  }

  /** Breaks the connection: what was not read yet is not read, and a RST tells the server so. */
  destroy(): void {
    this.#socket.resetAndDestroy()
  }

  #read(bytes: Uint8Array): void {
    for (const frame of this.#parser.read(bytes)) {
      const { command } = frame
      if (command === 'CONNECTED') this.#connected = frame
      else if (command === 'RECEIPT') this.receipts.push(headerIn(frame, 'receipt-id') ?? '')
      else if (command === 'MESSAGE') this.messages.push(frame)
      else this.error = frame
      this.onFrame(frame)
    }
    this.#tellNews()
  }

  #tellNews(): void {
    for (const resolve of this.#onNews.splice(0)) resolve()
  }
}

export function sendFrame(destination: string, body: string, receipt?: string): string {
  const asked = receipt === undefined ? '' : `receipt:${receipt}\n`
  return `SEND\ndestination:${destination}\n${asked}\n${body}\0`
}

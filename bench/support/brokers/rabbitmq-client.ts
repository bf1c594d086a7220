/** RabbitMQ by STOMP through a WebSocket, as our own clients: a quorum queue for each receiver, and a receipt for each message. */

import { type Login, StompSocket } from '../stomp-socket.ts'
import { openMany, wireFrame } from '../websocket-client.ts'
import { BODY, type BrokerClient, SENDERS } from './broker.ts'

export class RabbitMqClient implements BrokerClient {
  readonly #port: number
  readonly #login: Login
  readonly #senders: Sender[] = []

  constructor(port: number, login: Login) {
    this.#port = port
    this.#login = login
  }

  async open(receivers: number, onReceived: (receiver: number) => void): Promise<void> {
    for (let sender = 0; sender < SENDERS; sender++) this.#senders.push(new Sender(await this.#connect()))
    await openMany(receivers, async receiver => {
      const socket = await this.#connect()
      const queue = { id: 'messages', destination: `/queue/${queueOf(receiver)}`, headers: QUORUM }
      await socket.subscribe([{ ...queue, ack: 'client-individual' }])
      socket.onMessage = octets => {
        const ack = /\nack:([^\n]*)/.exec(octets.toString('latin1'))![1]
        socket.send(wireFrame(`ACK\nid:${ack}\n\n\0`))
        onReceived(receiver)
      }
    })
  }

  send(receivers: readonly number[], sender: number): Promise<void> {
    return this.#senders[sender]!.send(receivers)
  }

  async #connect(): Promise<StompSocket> {
    const socket = await StompSocket.open({ port: this.#port })
    await socket.signIn(this.#login)
    return socket
  }
}

class Sender {
  readonly #socket: StompSocket
  #awaited = 0
  #onDone = () => {}

  constructor(socket: StompSocket) {
    this.#socket = socket
    socket.onMessage = () => {
      if (--this.#awaited === 0) this.#onDone()
    }
  }

  send(receivers: readonly number[]): Promise<void> {
    this.#awaited = receivers.length
    return new Promise(resolve => {
      this.#onDone = resolve
      this.#socket.send(Buffer.concat(receivers.map(sendFrame)))
    })
  }
}

function sendFrame(receiver: number): Buffer {
  return wireFrame(
    `SEND\ndestination:/amq/queue/${queueOf(receiver)}\npersistent:true\nreceipt:${receiver}\n\n${BODY}\0`,
  )
}

function queueOf(receiver: number): string {
  return `messages-${receiver}`
}

const QUORUM = ['x-queue-type:quorum', 'durable:true', 'auto-delete:false', 'prefetch-count:16']

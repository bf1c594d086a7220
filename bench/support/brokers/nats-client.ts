/** NATS JetStream: one stream that messages leave as they are acknowledged, and a consumer of it for each receiver. */

import { BODY, type BrokerClient, SENDERS } from './broker.ts'
import { lineAt, type ReadOne, TextSocket } from './text-socket.ts'

export class NatsClient implements BrokerClient {
  readonly #port: number
  readonly #senders: Connection[] = []

  constructor(port: number) {
    this.#port = port
  }

  async open(receivers: number, onReceived: (receiver: number) => void): Promise<void> {
    for (let sender = 0; sender < SENDERS; sender++) this.#senders.push(await Connection.open(this.#port))
    const [first] = this.#senders
    const stream = { name: STREAM, subjects: [`${STREAM}.*`], storage: 'file', retention: 'workqueue' }
    await first!.ask(`$JS.API.STREAM.CREATE.${STREAM}`, JSON.stringify(stream))
    for (let receiver = 0; receiver < receivers; receiver++) {
      const connection = await Connection.open(this.#port)
      connection.subscribe(`device.${receiver}`, message => {
        connection.publish(message.reply, '+ACK')
        onReceived(receiver)
      })
      const config = {
        durable_name: `c${receiver}`,
        deliver_subject: `device.${receiver}`,
        ack_policy: 'explicit',
        filter_subject: `${STREAM}.${receiver}`,
      }
      const consumer = JSON.stringify({ stream_name: STREAM, config })
      await first!.ask(`$JS.API.CONSUMER.DURABLE.CREATE.${STREAM}.c${receiver}`, consumer)
    }
  }

  async send(receivers: readonly number[], sender: number): Promise<void> {
    const connection = this.#senders[sender]!
    await Promise.all(receivers.map(receiver => connection.ask(`${STREAM}.${receiver}`, BODY)))
  }
}

interface NatsMessage {
  readonly subject: string
  readonly reply: string
  readonly body: string
}

let inboxes = 0

class Connection {
  #socket: TextSocket<NatsMessage | undefined> | undefined
  readonly #inbox = `_INBOX.bench${inboxes++}`
  readonly #asked = new Map<string, (body: string) => void>()
  #onMessage: (message: NatsMessage) => void = () => {}
  #questions = 0

  static async open(port: number): Promise<Connection> {
    const connection = new Connection()
    connection.#socket = await TextSocket.open(port, readMessage, message => connection.#take(message))
    connection.#socket.write(`CONNECT {"verbose":false}\r\nSUB ${connection.#inbox}.* 1\r\n`)
    return connection
  }

  subscribe(subject: string, onMessage: (message: NatsMessage) => void): void {
    this.#onMessage = onMessage
    this.#socket!.write(`SUB ${subject} 2\r\n`)
  }

  publish(subject: string, body: string, reply = ''): void {
    this.#socket!.write(`PUB ${subject} ${reply} ${body.length}\r\n${body}\r\n`)
  }

  /** Resolves with the answer. Throws where it is an error of JetStream. */
  async ask(subject: string, body: string): Promise<void> {
    const reply = `${this.#inbox}.${this.#questions++}`
    const answer = await new Promise<string>(resolve => {
      this.#asked.set(reply, resolve)
      this.publish(subject, body, reply)
    })
    if (answer.includes('"error"')) throw new Error(`NATS: ${answer}`)
  }

  #take(message: NatsMessage | undefined): void {
    if (message === undefined) return this.#socket!.write('PONG\r\n')
    const asked = this.#asked.get(message.subject)
    this.#asked.delete(message.subject)
    if (asked === undefined) this.#onMessage(message)
    else asked(message.body)
  }
}

/** A message; undefined is a PING. Other lines ask for nothing. */
const readMessage: ReadOne<NatsMessage | undefined> = (text, at) => {
  const line = lineAt(text, at)
  if (line === undefined) return undefined
  const end = at + line.length + 2
  const [kind, subject = '', ...rest] = line.split(' ')
  if (kind === 'PING') return { value: undefined, end }
  if (kind === '-ERR') throw new Error(`NATS: ${line}`)
  if (kind !== 'MSG') return readMessage(text, end)
  const length = Number(rest.at(-1))
  if (text.length < end + length + 2) return undefined
  const reply = rest.length > 2 ? rest[1]! : ''
  return { value: { subject, reply, body: text.slice(end, end + length) }, end: end + length + 2 }
}

const STREAM = 'messages'

/** Redis: a stream for each receiver, read by a group of one; acknowledged messages are deleted. */

import { BODY, type BrokerClient, SENDERS } from './broker.ts'
import { lineAt, type ReadOne, TextSocket } from './text-socket.ts'

export class RedisClient implements BrokerClient {
  readonly #port: number
  readonly #senders: Connection[] = []

  constructor(port: number) {
    this.#port = port
  }

  async open(receivers: number, onReceived: (receiver: number) => void): Promise<void> {
    for (let sender = 0; sender < SENDERS; sender++) this.#senders.push(await Connection.open(this.#port))
    for (let receiver = 0; receiver < receivers; receiver++) {
      const connection = await Connection.open(this.#port)
      await connection.ask(['XGROUP', 'CREATE', streamOf(receiver), GROUP, '$', 'MKSTREAM'])
      void receive(connection, receiver, onReceived)
    }
  }

  async send(receivers: readonly number[], sender: number): Promise<void> {
    await this.#senders[sender]!.ask(...receivers.map(each => ['XADD', streamOf(each), '*', 'm', BODY]))
  }
}

async function receive(
  connection: Connection,
  receiver: number,
  onReceived: (receiver: number) => void,
): Promise<never> {
  const stream = streamOf(receiver)
  const next = ['XREADGROUP', 'GROUP', GROUP, 'c', 'COUNT', '16', 'BLOCK', '0', 'STREAMS', stream, '>']
  let answers = await connection.ask(next)
  for (;;) {
    const [[, messages]] = answers.at(-1) as [[string, [string, unknown][]]]
    const ids = messages.map(([id]) => id)
    for (const _ of ids) onReceived(receiver)
    answers = await connection.ask(['XACK', stream, GROUP, ...ids], ['XDEL', stream, ...ids], next)
  }
}

/** Commands in order, each with one answer. */
class Connection {
  readonly #waiting: ((answer: unknown) => void)[] = []
  #socket: TextSocket<unknown> | undefined

  static async open(port: number): Promise<Connection> {
    const connection = new Connection()
    connection.#socket = await TextSocket.open(port, readAnswer, answer =>
      connection.#waiting.shift()?.(answer),
    )
    return connection
  }

  ask(...commands: readonly (readonly string[])[]): Promise<unknown[]> {
    const answers = commands.map(() => new Promise<unknown>(resolve => this.#waiting.push(resolve)))
    this.#socket!.write(commands.map(commandText).join(''))
    return Promise.all(answers)
  }
}

function commandText(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map(word => `$${word.length}\r\n${word}\r\n`).join('')}`
}

/** RESP2. */
const readAnswer: ReadOne<unknown> = (text, at) => {
  const line = lineAt(text, at)
  if (line === undefined) return undefined
  const end = at + line.length + 2
  const rest = line.slice(1)
  switch (line[0]) {
    case '-':
      throw new Error(`Redis: ${rest}`)
    case '$': {
      const length = Number(rest)
      if (length < 0) return { value: undefined, end }
      if (text.length < end + length + 2) return undefined
      return { value: text.slice(end, end + length), end: end + length + 2 }
    }
    case '*':
      return readList(text, end, Number(rest))
    default:
      return { value: rest, end }
  }
}

function readList(text: string, at: number, count: number): ReturnType<ReadOne<unknown>> {
  const value: unknown[] = []
  let end = at
  for (let item = 0; item < count; item++) {
    const read = readAnswer(text, end)
    if (read === undefined) return undefined
    value.push(read.value)
    end = read.end
  }
  return { value, end }
}

function streamOf(receiver: number): string {
  return `messages:${receiver}`
}

const GROUP = 'device'

/**
 * Program: posts prepared requests over kept connections, each once, so many at a time. A list that is walked through
 * once is what operations need that answer each request only once, such as taking a code.
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { serveParent } from './program.ts'
import { latencyFigures } from './statistics.ts'

export interface PostLoadProtocol {
  readonly setup: Record<string, never>
  readonly request: PostLoad
  readonly answer: PostLoadFigures
}

export interface PostLoad {
  /** Without a path. */
  readonly url: string
  readonly requests: readonly PostRequest[]
  readonly inFlight: number
  /** Another status is an error. */
  readonly status: number
}

export interface PostRequest {
  readonly path: string
  readonly body: string
  /** Access token. */
  readonly token?: string
}

export interface PostLoadFigures {
  readonly perSecond: number
  /** Milliseconds from request to answer. */
  readonly latency: ReturnType<typeof latencyFigures>
  /** Of the answers, in the order of the requests. */
  readonly bodies: readonly string[]
  /** Processor seconds of this client. */
  readonly clientCpuSeconds: number
  /** By the clock that is the same for all processes, microseconds: when it began and ended. */
  readonly window: Window
}

export interface Window {
  readonly startUs: number
  readonly endUs: number
}

serveParent<PostLoadProtocol>(async () => runLoad)

async function runLoad({ url, requests, inFlight, status }: PostLoad): Promise<PostLoadFigures> {
  const connections = await Promise.all(Array.from({ length: inFlight }, () => Connection.open(url)))
  const bodies: string[] = []
  const latencies: number[] = []
  let next = 0
  const cpuBefore = process.cpuUsage()
  const startUs = clockUs()
  const postUntilEnd = async (connection: Connection) => {
    while (next < requests.length) {
      const at = next++
      const askedAt = performance.now()
      bodies[at] = await connection.post(requests[at]!, status)
      latencies.push(performance.now() - askedAt)
    }
  }
  await Promise.all(connections.map(postUntilEnd))
  const endUs = clockUs()
  const cpu = process.cpuUsage(cpuBefore)
  for (const connection of connections) connection.close()
  return {
    perSecond: (requests.length * 1e6) / (endUs - startUs),
    latency: latencyFigures(latencies),
    bodies,
    clientCpuSeconds: (cpu.user + cpu.system) / 1e6,
    window: { startUs, endUs },
  }
}

/** One request at a time. */
class Connection {
  readonly #socket: Socket
  readonly #host: string
  #received = ''
  #settle: { resolve(answer: string): void; reject(error: Error): void } | undefined

  private constructor(socket: Socket, host: string) {
    this.#socket = socket
    this.#host = host
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('data', text => this.#onData(String(text)))
    socket.on('error', error => this.#settle?.reject(error))
    socket.on('close', () => this.#settle?.reject(new Error('the server closed a connection')))
  }

  static async open(url: string): Promise<Connection> {
    const { hostname, port, host } = new URL(url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    return new Connection(socket, host)
  }

  async post({ path, body, token }: PostRequest, status: number): Promise<string> {
    const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
    const answer = await new Promise<string>((resolve, reject) => {
      this.#settle = { resolve, reject }
      this.#socket.write(
        `POST ${path} HTTP/1.1\r\nhost: ${this.#host}\r\ncontent-type: application/json\r\n${authorization}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      )
    })
    const [head = '', content = ''] = answer.split('\r\n\r\n', 2)
    if (!head.startsWith(`HTTP/1.1 ${status} `)) {
      throw new Error(`${path} answers ${head.split('\r\n', 1)[0]}, not ${status}: ${content}`)
    }
    return content
  }

  close(): void {
    this.#settle = undefined
    this.#socket.destroy()
  }

  #onData(text: string): void {
    this.#received += text
    const headEnd = this.#received.indexOf('\r\n\r\n')
    const length = /content-length: (\d+)/i.exec(this.#received)?.[1]
    if (headEnd === -1 || this.#received.length < headEnd + 4 + Number(length ?? 0)) return
    const answer = this.#received
    this.#received = ''
    this.#settle?.resolve(answer)
  }
}

/** CLOCK_MONOTONIC, by which V8 dates its profiles too. */
function clockUs(): number {
  return Number(process.hrtime.bigint() / 1000n)
}

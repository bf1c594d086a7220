/** A kept HTTP connection of a load client, on a bare socket: one request at a time. */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface PostRequest {
  readonly path: string
  readonly body: string
  /** Access token. */
  readonly token?: string
  /** Further header lines, each with its line break. */
  readonly lines?: string
}

export class HttpConnection {
  readonly #socket: Socket
  readonly #host: string
  #received = ''
  #isClosed = false
  #settle: { resolve(answer: string): void; reject(error: Error): void } | undefined

  private constructor(socket: Socket, host: string) {
    this.#socket = socket
    this.#host = host
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('data', text => this.#onData(String(text)))
    socket.on('error', error => this.#settle?.reject(error))
    socket.on('close', () => {
      this.#isClosed = true
      this.#settle?.reject(new Error('the server closed a connection'))
    })
  }

  /** `url` without a path. */
  static async open(url: string): Promise<HttpConnection> {
    const { hostname, port, host } = new URL(url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    return new HttpConnection(socket, host)
  }

  /** The body of the answer. Rejects when the status is another one. */
  async post({ path, body, token, lines = '' }: PostRequest, status: number): Promise<string> {
    if (this.#isClosed) throw new Error('the server closed a connection that was idle')
    const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
    const answer = await new Promise<string>((resolve, reject) => {
      this.#settle = { resolve, reject }
      this.#socket.write(
        `POST ${path} HTTP/1.1\r\nhost: ${this.#host}\r\ncontent-type: application/json\r\n${authorization}${lines}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
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

/** A kept HTTP connection of a load client, on a bare socket: one request at a time. */

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connectTo, targetOf } from './load-socket.ts'

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
    const target = targetOf(url)
    const socket = connectTo(target)
    await once(socket, target.isTls ? 'secureConnect' : 'connect')
    return new HttpConnection(socket, new URL(url).host)
  }

  /** The body of the answer. Rejects for any other status. */
  post({ path, body, token, lines = '' }: PostRequest, status: number): Promise<string> {
    const length = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
    return this.#exchange('POST', path, `${bearer(token)}${lines}${length}\r\n${body}`, status)
  }

  /** The same for a GET. */
  get(path: string, token: string, status: number): Promise<string> {
    return this.#exchange('GET', path, `${bearer(token)}\r\n`, status)
  }

  async #exchange(method: string, path: string, rest: string, status: number): Promise<string> {
    if (this.#isClosed) throw new Error('the server closed a connection that was idle')
    const answer = await new Promise<string>((resolve, reject) => {
      this.#settle = { resolve, reject }
      this.#socket.write(`${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${rest}`)
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

function bearer(token: string | undefined): string {
  return token === undefined ? '' : `authorization: Bearer ${token}\r\n`
}

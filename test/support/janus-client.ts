/** A device's half of a conversation with Janus, like that in an app, without media. */

import { once } from 'node:events'
import type { Test } from 'tap'
import WebSocket from 'ws'

// biome-ignore lint/suspicious/noExplicitAny: messages of any form
type Message = any

export interface JanusEntry {
  readonly url: string
  readonly roomToken: string
  readonly pluginToken: string
}

export class JanusClient {
  readonly #socket: WebSocket
  /** Said with each request. */
  pluginToken: string
  readonly #came: Message[] = []
  readonly #waiting = new Set<() => void>()
  #requests = 0
  #sessionId = 0
  #handleId = 0
  isClosed = false

  private constructor(socket: WebSocket, pluginToken: string) {
    this.#socket = socket
    this.pluginToken = pluginToken
    socket.on('message', data => {
      this.#came.push(JSON.parse(String(data)))
      this.#look()
    })
    socket.on('close', () => {
      this.isClosed = true
      this.#look()
    })
    socket.on('error', () => undefined)
  }

  static async open({ url, pluginToken }: JanusEntry): Promise<JanusClient> {
    const socket = new WebSocket(url, 'janus-protocol')
    const client = new JanusClient(socket, pluginToken)
    await once(socket, 'open')
    return client
  }

  /** Enters the room as far as it gets: resolves with the event, whose `error_code` says why not. */
  async join(room: number, token: string, members: object = {}): Promise<Message> {
    const created = await this.request({ janus: 'create' })
    if (created.janus === 'error') return { error_code: created.error.code }
    this.#sessionId = created.data.id
    const attached = await this.request({ janus: 'attach', plugin: 'janus.plugin.videoroom' })
    this.#handleId = attached.data.id
    return this.message({ request: 'join', ptype: 'publisher', room, token, ...members })
  }

  /** Returns the room's answer. */
  async message(body: object): Promise<Message> {
    const answer = await this.request({ janus: 'message', handle_id: this.#handleId, body })
    return answer.plugindata.data
  }

  /** The answer to a request, beyond its acknowledgement. */
  async request(body: object): Promise<Message> {
    const transaction = `request-${this.#requests++}`
    const session = this.#sessionId === 0 ? {} : { session_id: this.#sessionId }
    this.#socket.send(JSON.stringify({ ...body, ...session, token: this.pluginToken, transaction }))
    // The answer proper comes later.
    const isAcknowledged = 'body' in body
    return this.next(
      message => message.transaction === transaction && !(isAcknowledged && message.janus === 'ack'),
    )
  }

  /** The first message that is wanted, now or later; rejects once the connection has ended. */
  async next(isWanted: (message: Message) => boolean): Promise<Message> {
    await this.until(() => this.isClosed || this.#came.some(isWanted))
    const at = this.#came.findIndex(isWanted)
    if (at < 0) throw new Error('janus has closed the connection')
    return this.#came.splice(at, 1)[0]
  }

  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>(resolve => this.#waiting.add(resolve))
  }

  close(): void {
    this.#socket.terminate()
  }

  #look(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }
}

/** Lets a device into its call's room, until the end of the test. */
export async function enter(t: Test, { roomId, media }: Message): Promise<JanusClient> {
  const client = await JanusClient.open(media)
  t.teardown(() => client.close())
  t.match(await client.join(roomId, media.roomToken), { videoroom: 'joined', room: roomId })
  return client
}

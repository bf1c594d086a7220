/** A way to a port of loopback that can be slow, and can swallow whatever is sent, as a network does that is cut: nothing is refused. */

import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'

export class DroppingProxy {
  readonly port: number
  readonly #target: number
  readonly #sockets = new Set<Socket>()
  #isCut = false
  #delayMs = 0
  #armed: { readonly text: string; times: number; readonly resolve: () => void } | undefined

  private constructor(server: Server, port: number, target: number) {
    this.port = port
    this.#target = target
    server.on('connection', client => this.#onConnection(client))
  }

  /** Until the end of the test. */
  static async open(t: Test, target: number): Promise<DroppingProxy> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('a port')
    const proxy = new DroppingProxy(server, address.port, target)
    t.teardown(() => {
      proxy.mend()
      server.close()
    })
    return proxy
  }

  /** Delays everything by so much, each way. */
  slow(delayMs: number): void {
    this.#delayMs = delayMs
  }

  /** Cuts all connections: nothing passes. */
  cut(): void {
    this.#isCut = true
  }

  /** Cuts when clients send this text for the nth time, which does not pass, and resolves then. */
  cutAt(text: string, times: number): Promise<void> {
    return new Promise(resolve => {
      this.#armed = { text, times, resolve }
    })
  }

  /** New connections pass; those that have lost something end. */
  mend(): void {
    this.#isCut = false
    for (const socket of this.#sockets) socket.destroy()
  }

  #onConnection(client: Socket): void {
    const upstream = connect(this.#target, '127.0.0.1')
    client.on('data', bytes => {
      if (this.#armed === undefined || !bytes.includes(this.#armed.text)) return
      this.#armed.times -= 1
      if (this.#armed.times > 0) return
      this.cut()
      this.#armed.resolve()
      this.#armed = undefined
    })
    this.#pass(client, upstream)
    this.#pass(upstream, client)
  }

  #pass(from: Socket, to: Socket): void {
    this.#sockets.add(from.setNoDelay())
    from.on('error', () => undefined)
    from.on('data', bytes => {
      if (this.#isCut) return
      if (this.#delayMs === 0) to.write(bytes)
      else setTimeout(() => to.write(bytes), this.#delayMs)
    })
    from.on('close', () => {
      this.#sockets.delete(from)
      if (!this.#isCut) to.destroy()
    })
  }
}

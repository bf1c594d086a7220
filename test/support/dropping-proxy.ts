/**
 * A way to a port of loopback that can be slow, hold back one direction, and swallow everything, as a network does that is
 * cut: nothing is refused.
 */

import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'

/** Towards the target, or back from it. */
export type Direction = 'to' | 'from'

interface Passing {
  readonly dueMs: number
  readonly act: () => void
}

export class DroppingProxy {
  readonly port: number
  /** A later connection goes there; `reset` ends the earlier ones. */
  target: number
  readonly #sockets = new Set<Socket>()
  readonly #held = new Set<Direction>()
  readonly #drains = new Set<() => void>()
  #isCut = false
  #delayMs = 0
  #said: readonly (readonly [text: string, instead: string])[] = []
  #armed: { readonly text: string; times: number; readonly resolve: () => void } | undefined

  private constructor(server: Server, port: number, target: number) {
    this.port = port
    this.target = target
    server.on('connection', client => this.#onConnection(client))
  }

  /** Until the end of the test. */
  static async open(t: Pick<Test, 'teardown'>, target: number): Promise<DroppingProxy> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('a port')
    const proxy = new DroppingProxy(server, address.port, target)
    t.teardown(() => {
      proxy.reset()
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

  /** Packets of this direction are lost, and TCP sends them again once the network is mended. */
  hold(direction: Direction): void {
    this.#held.add(direction)
  }

  /** Cuts when clients send this text for the nth time, which does not pass, and resolves then. */
  cutAt(text: string, times: number): Promise<void> {
    return new Promise(resolve => {
      this.#armed = { text, times, resolve }
    })
  }

  /** Has the target say something else, of the same length. */
  sayInstead(said: readonly (readonly [text: string, instead: string])[]): void {
    this.#said = said
  }

  /** Everything passes at once; connections that have lost something end. */
  mend(): void {
    this.#delayMs = 0
    this.#held.clear()
    if (this.#isCut) for (const socket of this.#sockets) socket.destroy()
    this.#isCut = false
    for (const drain of this.#drains) drain()
  }

  /** Ends all connections; new ones pass. */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  #onConnection(client: Socket): void {
    const upstream = connect(this.target, '127.0.0.1')
    client.on('data', bytes => {
      if (this.#armed === undefined || !bytes.includes(this.#armed.text)) return
      this.#armed.times -= 1
      if (this.#armed.times > 0) return
      this.cut()
      this.#armed.resolve()
      this.#armed = undefined
    })
    this.#pass(client, upstream, 'to')
    this.#pass(upstream, client, 'from')
  }

  #pass(from: Socket, to: Socket, direction: Direction): void {
    const waiting: Passing[] = []
    const drain = () => {
      while (waiting[0] !== undefined && !this.#held.has(direction)) {
        const leftMs = waiting[0].dueMs - performance.now()
        if (leftMs > 0 && this.#delayMs > 0) return void setTimeout(drain, leftMs)
        waiting.shift()!.act()
      }
    }
    const pass = (act: () => void) => {
      waiting.push({ dueMs: performance.now() + this.#delayMs, act })
      if (waiting.length === 1 || this.#delayMs === 0) drain()
    }
    this.#sockets.add(from.setNoDelay())
    this.#drains.add(drain)
    from.on('error', () => undefined)
    from.on('data', bytes => {
      if (this.#isCut) return
      const said = direction === 'from' ? this.#instead(bytes) : bytes
      pass(() => void to.write(said))
    })
    from.on('close', () => {
      this.#sockets.delete(from)
      if (this.#isCut) return void this.#drains.delete(drain)
      pass(() => {
        this.#drains.delete(drain)
        to.destroy()
      })
    })
  }

  #instead(bytes: Buffer): Buffer {
    for (const [text, instead] of this.#said) {
      for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at)) at += bytes.write(instead, at)
    }
    return bytes
  }
}

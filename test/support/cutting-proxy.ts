/**
 * A way to PostgreSQL that breaks at chosen moments of a statement: before it arrives, after it has arrived, after it was
 * answered, or with the statement itself still on the way, to arrive once the client has given it up.
 */

import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'

export type Cut = 'before' | 'sent' | 'answered' | 'late'
export const CUTS: readonly Cut[] = ['before', 'sent', 'answered', 'late']

export class CuttingProxy {
  readonly port: number
  /** How many statements were cut. */
  cuts = 0
  readonly #target: number
  readonly #sockets = new Set<Socket>()
  #armed: { readonly statement: string; readonly cut: Cut } | undefined
  /** A statement that is still on the way, and the connection that it is on. */
  #late: { readonly upstream: Socket; readonly bytes: Buffer } | undefined

  private constructor(server: Server, port: number, target: number) {
    this.port = port
    this.#target = target
    server.on('connection', client => this.#onConnection(client))
  }

  /** Until the end of the test. `target` is a port of loopback. */
  static async open(t: Test, target: number): Promise<CuttingProxy> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('a port')
    const proxy = new CuttingProxy(server, address.port, target)
    t.teardown(() => {
      proxy.cutAll()
      server.close()
    })
    return proxy
  }

  /** Cuts the connection at the next statement of this name. */
  arm(statement: string, cut: Cut): void {
    this.#armed = { statement, cut }
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #onConnection(client: Socket): void {
    const upstream = connect(this.#target, '127.0.0.1')
    let cut: Cut | undefined
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket.setNoDelay())
      socket.on('error', () => {})
      socket.on('close', () => void this.#sockets.delete(socket))
    }
    client.on('close', () => void (cut !== 'late' && upstream.destroy()))
    upstream.on('close', () => client.destroy())
    client.on('data', bytes => {
      cut = this.#cutOf(bytes)
      if (cut === undefined || cut === 'answered') return void this.#forward(upstream, bytes)
      if (cut === 'sent') upstream.write(bytes)
      if (cut === 'late') this.#late = { upstream, bytes }
      client.destroy()
    })
    upstream.on('data', bytes => {
      if (cut === undefined) client.write(bytes)
      // The statement is committed: PostgreSQL answers after that.
      else client.destroy()
    })
  }

  #cutOf(bytes: Buffer): Cut | undefined {
    if (this.#armed === undefined || !bytes.includes(this.#armed.statement)) return undefined
    const { cut } = this.#armed
    this.#armed = undefined
    this.cuts += 1
    return cut
  }

  /** A late statement arrives, and is executed, before the next one that brings a change. */
  #forward(upstream: Socket, bytes: Buffer): void {
    const late = this.#late
    if (late === undefined || !bytes.includes('append')) return void upstream.write(bytes)
    this.#late = undefined
    late.upstream.once('data', () => {
      late.upstream.destroy()
      upstream.write(bytes)
    })
    late.upstream.write(late.bytes)
  }
}

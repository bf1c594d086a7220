/**
 * Program: connects again and again, so many at a time, as an app does that comes back: opened, and of a server that knows its
 * clients also signed in and subscribed to the device's three queues, then cut.
 */

import { type SubscribingTo, subscribingsOf } from './device-queues.ts'
import type { LoadTarget } from './load-socket.ts'
import { serveParent } from './program.ts'
import { latencyFigures } from './statistics.ts'
import { type Login, StompSocket } from './stomp-socket.ts'

export interface ConnectLoadProtocol {
  readonly setup: LoadTarget & {
    /** One for each device that connects in turn; none for bare uWebSockets.js. */
    readonly logins: readonly Login[]
    readonly to: SubscribingTo
  }
  readonly request: { readonly inFlight: number; readonly seconds: number }
  readonly answer: ConnectLoadFigures
}

export interface ConnectLoadFigures {
  readonly perSecond: number
  readonly count: number
  /** Milliseconds from the first packet until all is there. */
  readonly latency: ReturnType<typeof latencyFigures>
  /** Processor time of this client. */
  readonly clientCores: number
}

serveParent<ConnectLoadProtocol>(async ({ logins, to, ...target }) => {
  let next = 0
  const connectOnce = async () => {
    const client = await StompSocket.open(target)
    if (logins.length > 0) {
      const at = next++ % logins.length
      await client.signIn(logins[at]!, '10000,10000')
      await client.subscribe(subscribingsOf(to, at))
    }
    await client.abort()
  }
  return async ({ inFlight, seconds }) => {
    const latencies: number[] = []
    const cpuBefore = process.cpuUsage()
    const startMs = performance.now()
    const endMs = startMs + seconds * 1000
    const connectUntilEnd = async () => {
      for (let now = startMs; now < endMs; ) {
        const begunMs = now
        await connectOnce()
        now = performance.now()
        latencies.push(now - begunMs)
      }
    }
    await Promise.all(Array.from({ length: inFlight }, connectUntilEnd))
    const ms = performance.now() - startMs
    const { user, system } = process.cpuUsage(cpuBefore)
    return {
      perSecond: (latencies.length * 1000) / ms,
      count: latencies.length,
      latency: latencyFigures(latencies),
      clientCores: (user + system) / 1000 / ms,
    }
  }
})

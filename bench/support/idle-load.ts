/**
 * Program: connections that do nothing: opened, and of a server that knows its clients also signed in and subscribed three times. They beat, as apps do, so that nobody takes them for dead.
 */

import { type SubscribingTo, subscribingsOf } from './device-queues.ts'
import type { LoadTarget } from './load-socket.ts'
import { serveParent } from './program.ts'
import { type Login, StompSocket } from './stomp-socket.ts'
import { openMany, wireFrame } from './websocket-client.ts'

export interface IdleLoadProtocol {
  readonly setup: LoadTarget & { readonly to: SubscribingTo }
  readonly request: Opening
  readonly answer: IdleLoadFigures
}

export interface IdleLoadFigures {
  /** All connections that are open then. */
  readonly open: number
  readonly openedPerSecond: number
  /** Processor time of this client while it opened them. */
  readonly clientCores: number
}

/** Connections to be opened besides those that are there. */
interface Opening {
  readonly connections: number
  /** One for each; none for bare uWebSockets.js. */
  readonly logins: readonly Login[]
}

const clients: StompSocket[] = []
let next = 0

// Ports of so many connections, closed in the usual way, would be kept from those who come next for a minute.
process.on('disconnect', () => {
  for (const client of clients) void client.abort()
})

serveParent<IdleLoadProtocol>(async setup => {
  let isBeating = false
  setInterval(() => {
    if (isBeating) for (const client of clients) client.send(BEAT)
  }, BEAT_EVERY_MS).unref()
  return async request => {
    // Bare uWebSockets.js would answer each beat to every client.
    isBeating ||= request.logins.length > 0
    const [cpuBefore, startMs] = [process.cpuUsage(), performance.now()]
    await open(setup, request)
    const ms = performance.now() - startMs
    const { user, system } = process.cpuUsage(cpuBefore)
    return {
      open: clients.filter(({ isOpen }) => isOpen).length,
      openedPerSecond: (request.connections * 1000) / ms,
      clientCores: (user + system) / 1000 / ms,
    }
  }
})

async function open(
  { to, ...target }: IdleLoadProtocol['setup'],
  { connections, logins }: Opening,
): Promise<void> {
  await openMany(connections, async at => {
    const device = next++
    const client = await StompSocket.open(target)
    const login = logins[at]
    if (login !== undefined) {
      await client.signIn(login, HEART_BEAT)
      await client.subscribe(subscribingsOf(to, device))
    }
    clients.push(client)
  })
}

/** Those of stompjs. */
const HEART_BEAT = '10000,10000'
const BEAT_EVERY_MS = 9_000
const BEAT = wireFrame('\n')

/**
 * Program: connections that do nothing: opened, and of a STOMP server also signed in and subscribed to the device's three
 * queues. They beat, as apps do, so that nobody takes them for dead.
 */

import { QUEUES } from './device-queues.ts'
import { serveParent } from './program.ts'
import { openMany, StompSocket, wireFrame } from './stomp-socket.ts'

export interface IdleLoadProtocol {
  readonly setup: { readonly port: number }
  readonly request: Opening
  /** All connections that are open then. */
  readonly answer: number
}

/** Connections to be opened besides those that are there. */
interface Opening {
  readonly connections: number
  /** One for each; none for bare uWebSockets.js. */
  readonly tokens: readonly string[]
}

const clients: StompSocket[] = []

serveParent<IdleLoadProtocol>(async ({ port }) => {
  let isBeating = false
  setInterval(() => {
    if (isBeating) for (const client of clients) client.send(BEAT)
  }, BEAT_EVERY_MS).unref()
  return async request => {
    // Bare uWebSockets.js would answer each beat to everybody.
    isBeating = request.tokens.length > 0
    await open(port, request)
    return clients.filter(({ isOpen }) => isOpen).length
  }
})

async function open(port: number, { connections, tokens }: Opening): Promise<void> {
  await openMany(connections, async at => {
    const client = await StompSocket.open({ port })
    const token = tokens[at]
    if (token !== undefined) {
      await client.signIn(token, HEART_BEAT)
      await client.subscribe(QUEUES)
    }
    clients.push(client)
  })
}

/** Those of stompjs. */
const HEART_BEAT = '10000,10000'
const BEAT_EVERY_MS = 9_000
const BEAT = wireFrame('\n')

/**
 * Program: a crowd of STOMP clients in a process of its own. Some sign in and stay, some never say a word, some keep
 * coming and going. It says when all are there, and how each connection ended once the server has stopped.
 */

import { connectFrame } from './naive-client.ts'
import { SocketClient } from './socket-client.ts'

/** The parent's first message. */
export interface CrowdOrder {
  readonly port: number
  /** Tokens of devices that stay connected. */
  readonly staying: readonly string[]
  /** Connections that are upgraded and silent. */
  readonly silent: number
  /** Tokens of devices that connect, leave and connect again. */
  readonly arriving: readonly string[]
}

/** How many connections ended in each way: `<reason of the ERROR> <close code>`. */
export type CrowdEndings = Readonly<Record<string, number>>

process.once('message', async (order: CrowdOrder) => {
  const { port, staying, silent, arriving } = order
  const settled = await openMany(staying.length + silent, at => joinedPeer(port, staying[at]))
  const arrivals = arriving.map(token => arriveForEver(port, token))
  process.send!('there')
  const tally = (endings: readonly (string | undefined)[]) => {
    const counts: Record<string, number> = {}
    for (const ending of endings) if (ending !== undefined) counts[ending] = (counts[ending] ?? 0) + 1
    return counts
  }
  const stayed = await Promise.all(settled.map(peer => peer.ending()))
  const endings = { settled: tally(stayed), last: tally(await Promise.all(arrivals)) }
  process.send!(endings, () => process.exit(0))
})

/** A connection that has signed in, if there is a token. */
async function joinedPeer(port: number, token: string | undefined): Promise<SocketClient> {
  const peer = await SocketClient.open('websocket', port)
  if (token === undefined) return peer
  peer.write(connectFrame(token))
  await peer.until(() => peer.frames.length > 0 || peer.isClosed)
  return peer
}

/** Comes and goes until the server refuses; returns how the server ended the last connection, if it was upgraded. */
async function arriveForEver(port: number, token: string): Promise<string | undefined> {
  for (;;) {
    const peer = await joinedPeer(port, token).catch(() => undefined)
    if (peer?.frames[0]?.command === 'CONNECTED') {
      peer.destroy()
      continue
    }
    return peer?.ending()
  }
}

/** Opens so many connections, a few at a time. */
async function openMany(count: number, open: (at: number) => Promise<SocketClient>): Promise<SocketClient[]> {
  const opened: SocketClient[] = []
  let next = 0
  const openSome = async () => {
    for (let at = next++; at < count; at = next++) opened[at] = await open(at)
  }
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, openSome))
  return opened
}

const OPENED_AT_ONCE = 64

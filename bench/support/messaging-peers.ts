/** The peers that deliver messages to WebSocket clients. */

import type { BenchmarkContext } from './benchmark.ts'
import { openCentrifugo } from './centrifugo.ts'
import type { MessagingPeer } from './messaging-peer.ts'
import { openNats } from './nats.ts'
import { openRabbitMq } from './rabbitmq.ts'

/** Each starts its peer for the time of the benchmark; undefined when peers are not wanted or it is not to be had. */
export const MESSAGING_PEERS: readonly ((context: BenchmarkContext) => Promise<MessagingPeer | undefined>)[] =
  [openRabbitMq, openNats, openCentrifugo]

export async function openMessagingPeers(context: BenchmarkContext): Promise<readonly MessagingPeer[]> {
  const peers: MessagingPeer[] = []
  for (const open of MESSAGING_PEERS) {
    const peer = await open(context)
    if (peer !== undefined) peers.push(peer)
  }
  return peers
}

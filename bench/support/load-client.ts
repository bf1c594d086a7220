/** Clients of servers that speak different protocols, for the same load. */

import { CENTRIFUGO_PROTOCOL } from './centrifugo-protocol.ts'
import { LineSocket } from './line-socket.ts'
import type { LoadTarget } from './load-socket.ts'
import { NATS_PROTOCOL } from './nats-protocol.ts'
import { type Login, StompSocket, type Subscribing, stompSend } from './stomp-socket.ts'
import { wireFrame } from './websocket-client.ts'

export type ProtocolName = 'stomp' | keyof typeof LINE_PROTOCOLS

export interface LoadClient {
  /** Messages that have come whole. */
  readonly messages: number
  readonly isOpen: boolean
  /** Called behind every chunk that was read. */
  onRead: (() => void) | undefined
  /** Resolves when it is confirmed. `heartBeat` is a header of STOMP. */
  signIn(login: Login, heartBeat?: string): Promise<void>
  /** Subscribes to all of them at once; resolves when the last is confirmed. */
  subscribe(subscribings: readonly Subscribing[]): Promise<void>
  nextMessage(): Promise<{ readonly length: number }>
  send(octets: Uint8Array): void
  abort(): Promise<void>
}

/** Resolves when the upgrade is accepted. */
export function openLoadClient(name: ProtocolName, target: LoadTarget): Promise<LoadClient> {
  return name === 'stomp' ? StompSocket.open(target) : LineSocket.open(target, LINE_PROTOCOLS[name])
}

/** The octets by which a client sends JSON to a topic. */
export function sendOctets(name: ProtocolName, destination: string, body: string): Buffer {
  if (name === 'stomp') return stompSend(destination, body)
  return wireFrame(LINE_PROTOCOLS[name].publish(destination, body))
}

const LINE_PROTOCOLS = { nats: NATS_PROTOCOL, centrifugo: CENTRIFUGO_PROTOCOL }

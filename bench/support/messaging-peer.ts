/** A peer that delivers messages to WebSocket clients. */

import type { ProtocolName } from './load-client.ts'
import type { Login } from './stomp-socket.ts'

export interface MessagingPeer {
  /** With its version. */
  readonly name: string
  /** Of the process that does the work. */
  readonly pid: number
  /** For WebSocket. */
  readonly port: number
  readonly protocol: ProtocolName
  /** Of a device. */
  loginOf(device: number): Login
  /** Has it collect all its garbage. */
  collectGarbage(): Promise<void>
  /** Before the benchmark is over; may be asked again. */
  end(): Promise<void>
}

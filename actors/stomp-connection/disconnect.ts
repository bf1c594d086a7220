/** DISCONNECT (STOMP 1.2, "DISCONNECT"): its RECEIPT says that all earlier frames are done; nothing is read after it. */

import type { Frame } from '../../src/stomp/frame.ts'
import { finish } from './ending.ts'
import type { ConnectionState } from './state.ts'

export function onDisconnect(connection: ConnectionState, frame: Frame): void {
  const { order, peer } = connection
  const receipt = frame.header('receipt')
  connection.stage = 'ending'
  order.settleBefore(receipt)
  order.inOrder(() => {
    peer.receipt(receipt)
    finish(connection, 1000, 'disconnected')
  })
}

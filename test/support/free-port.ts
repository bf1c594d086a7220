/** Ports for servers that have to come back at the same one. */

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'

/**
 * A port of the loopback address that was free a moment ago. A server that took its first port from the system, by port
 * 0, can't have it again for a minute: the kernel keeps it for connections that are over.
 */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

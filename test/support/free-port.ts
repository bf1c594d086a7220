/** Ports for servers that have to come back at the same one. */

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port of the loopback address that is free, below those that systems give out by themselves: one of these may be
 * another's a moment later, and a server that had one can't have it again for a minute, since the kernel keeps it for
 * connections that are over.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORT_MIN, PORT_MAX)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}

const PORT_MIN = 10_000
/** Linux gives out ports from 32768, other systems from 49152. */
const PORT_MAX = 32_000

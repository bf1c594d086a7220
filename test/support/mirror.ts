/** A server that passes requests on to another server, and may change the answers. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** Returns its address. */
export async function startMirror(
  t: Test,
  http: string,
  change: (path: string, body: Buffer) => string | Uint8Array,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const answer = await fetch(http + request.url)
    const body = Buffer.from(await answer.arrayBuffer())
    response.statusCode = answer.status
    response.end(change(request.url!, body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Program: an endpoint of webhooks that takes every event at once and keeps none. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serveParent } from './program.ts'

export interface WebhookSinkProtocol {
  readonly setup: Record<string, never>
  readonly request: 'ask'
  readonly answer: {
    /** Where events are sent to. */
    readonly url: string
    readonly taken: number
  }
}

serveParent<WebhookSinkProtocol>(async () => {
  let taken = 0
  const server = createServer((request, response) => {
    request.resume()
    request.once('end', () => {
      taken++
      response.writeHead(204).end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return () => ({ url: `http://127.0.0.1:${port}/`, taken })
})

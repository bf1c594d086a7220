/** Asks one route, without a socket. */

import { networkOf, parseAddress } from '../../src/transport/remote-address.ts'
import type { HttpRequest, HttpRoute } from '../../src/transport/route.ts'

export interface RouteRequest {
  readonly query?: string
  readonly contentType?: string
  readonly body?: string
  /** By lower-case name. */
  readonly headers?: Readonly<Record<string, string>>
  /** This machine's, where it is left out. */
  readonly address?: string
}

/** The JSON of the answer; rejects as the handler does. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any form
export async function routeAnswer(route: HttpRoute, request: RouteRequest = {}): Promise<any> {
  const { query = '', contentType = '', body = '', headers = {}, address = '127.0.0.1' } = request
  const asked: HttpRequest = {
    method: route.method,
    path: route.path,
    params: [],
    query,
    requestId: 'test-request',
    contentType,
    header: name => {
      // Like the transport: a handler gets the headers that its route names.
      if (!route.headers?.includes(name)) throw new Error(`the route does not name ${name}`)
      if (!name.endsWith('*')) return headers[name] ?? ''
      const names = Object.keys(headers).filter(each => each.startsWith(name.slice(0, -1)))
      return names.join()
    },
    network: networkOf(parseAddress(address)!),
    body: Buffer.from(body),
  }
  const answer = await route.handle(asked)
  return JSON.parse(String(answer.body))
}

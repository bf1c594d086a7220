/**
 * The operators' port: is the process alive, should it get traffic, what are its figures. Routes only; the default
 * address is loopback.
 *
 * Choice: any Host is answered, as Prometheus and probes call this by names that no setting knows, such as a
 * container's. A page that has its own name resolve here (DNS rebinding) would read counts and the version: no user
 * is named, and no command taken.
 */

import type { HttpAnswer, HttpRoute } from '../transport/route.ts'
import type { Metrics } from './metrics.ts'

export interface Readiness {
  /** Why the process should get no traffic now, or undefined when it should. */
  notReady(): string | undefined
}

export function operatorRoutes(readiness: Readiness, metrics: Pick<Metrics, 'text'>): readonly HttpRoute[] {
  return [
    { method: 'GET', path: '/healthz', handle: () => text(200, 'alive\n') },
    {
      method: 'GET',
      path: '/readyz',
      handle: () => {
        const reason = readiness.notReady()
        return reason === undefined ? text(200, 'ready\n') : text(503, `${reason}\n`)
      },
    },
    { method: 'GET', path: '/metrics', handle: async () => text(200, await metrics.text()) },
  ]
}

function text(status: number, body: string): HttpAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body, noStore: true }
}

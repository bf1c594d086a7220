/** `GET /app/api/meta`: public facts, so that a client never hard-codes a limit or a key (contract 1.8, 14). */

import { BODY_BYTES_MAX, LOOKUP_TARGETS_MAX } from '../limits.ts'
import { PUBLIC_KEY_CHARS_MAX } from '../log/entry.ts'
import type { HttpRoute } from '../transport/http.ts'

export interface MetaWorld {
  readonly nowMs: () => number
  /** The address that clients see; known once the server listens. */
  readonly publicUrl: () => string
  readonly log: {
    readonly origin: string
    readonly vkey: string
    readonly vrfPublicKey: string
    readonly isFrozen: boolean
  }
}

export function metaRoute({ nowMs, publicUrl, log }: MetaWorld): HttpRoute {
  const { origin, vkey, vrfPublicKey, isFrozen } = log
  return {
    method: 'GET',
    path: '/app/api/meta',
    handle: () => ({
      status: 200,
      contentType: 'application/json; charset=utf-8',
      headers: [['Cache-Control', 'no-store']],
      body: JSON.stringify({
        apiVersion: 1,
        serverTime: new Date(nowMs()).toISOString(),
        limits: {
          bodyBytes: BODY_BYTES_MAX,
          publicKeyCharacters: PUBLIC_KEY_CHARS_MAX,
          targetsPerLookup: LOOKUP_TARGETS_MAX,
        },
        features: { log: isFrozen ? 'frozen' : 'open' },
        loginMethods: [],
        log: { origin, vkey, vrfPublicKey, url: publicUrl() },
      }),
    }),
  }
}

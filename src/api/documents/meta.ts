/** `GET /app/api/meta`: public facts, so that a client never hard-codes a limit or a key (contract 1.8, 14). */

import { MESSAGE_GRAPHEMES_MAX, NAME_GRAPHEMES_MAX } from '../../domain/accounts/display-name.ts'
import { CALL_SIZE_MAX } from '../../domain/calls/call.ts'
import { CONTACTS_MAX, OUTGOING_MAX } from '../../domain/contacts/friend-request.ts'
import { DEVICES_MAX } from '../../domain/devices/device.ts'
import { BODY_BYTES_MAX, LOOKUP_TARGETS_MAX } from '../../limits.ts'
import { PUBLIC_KEY_CHARS_MAX } from '../../log/entry.ts'
import { timeText } from '../../schema/time.ts'
import type { HttpRoute } from '../../transport/route.ts'

/** Which outside services are configured. */
export interface Features {
  readonly mail: boolean
  readonly sms: boolean
  readonly apns: boolean
  readonly fcm: boolean
  readonly turn: boolean
  readonly passkeys: boolean
  /** The side that makes contacts. */
  readonly contacts: 'users' | 'server'
  /** The kind of `media` in call records. */
  readonly media: 'client' | 'janus' | 'livekit'
}

export interface MetaDeps {
  readonly nowMs: () => number
  /** The address that clients see; known once the server listens. */
  readonly publicUrl: () => string
  readonly features: Features
  /** The key that browsers subscribe with; undefined where they get no pushes. */
  readonly webPushKey: string | undefined
  /** How long a call stays in its people's history; 0: there is none. */
  readonly historyDays: number
  /** `email`, `phone` and names of identity providers. */
  readonly loginMethods: readonly string[]
  /** Such as `ios/1.4.0`. */
  readonly minClientVersions: readonly string[]
  readonly log: {
    readonly origin: string
    readonly vkey: string
    readonly vrfPublicKey: string
    /** Undefined without an index. */
    readonly indexVkey: string | undefined
    readonly witnessPolicy: string | undefined
    readonly isFrozen: boolean
    readonly lookupsNeedToken: boolean
  }
}

export function metaRoute(deps: MetaDeps): HttpRoute {
  const { nowMs, publicUrl, features, webPushKey, historyDays, loginMethods, minClientVersions, log } = deps
  const { origin, vkey, vrfPublicKey, indexVkey, witnessPolicy, isFrozen, lookupsNeedToken } = log
  return {
    method: 'GET',
    path: '/app/api/meta',
    handle: () => ({
      status: 200,
      contentType: 'application/json; charset=utf-8',
      noStore: true,
      body: JSON.stringify({
        apiVersion: 1,
        serverTime: timeText(nowMs()),
        limits: LIMITS,
        historyDays,
        features: {
          ...features,
          webPush: webPushKey !== undefined,
          log: isFrozen ? 'frozen' : 'open',
          lookupsNeedToken,
        },
        ...(webPushKey === undefined ? {} : { webPush: { publicKey: webPushKey } }),
        loginMethods,
        ...(minClientVersions.length === 0 ? {} : { minClientVersion: minClientVersions.join() }),
        ws: '/ws',
        log: {
          origin,
          vkey,
          vrfPublicKey,
          url: publicUrl(),
          ...(indexVkey && { index: { vkey: indexVkey } }),
          ...(witnessPolicy && { witnessPolicy }),
        },
      }),
    }),
  }
}

const LIMITS = {
  bodyBytes: BODY_BYTES_MAX,
  publicKeyCharacters: PUBLIC_KEY_CHARS_MAX,
  targetsPerLookup: LOOKUP_TARGETS_MAX,
  displayNameCharacters: NAME_GRAPHEMES_MAX,
  messageCharacters: MESSAGE_GRAPHEMES_MAX,
  devices: DEVICES_MAX,
  contacts: CONTACTS_MAX,
  pendingRequests: OUTGOING_MAX,
  callParticipants: CALL_SIZE_MAX,
}

/** The simulator and its page with people's media talk in these, as JSON over a WebSocket. */

import type { Call } from '../../src/app/app.ts'
import type { MediaCall, MediaState } from '../../src/app/media/media.ts'

/** To the page. `person` is a user id. */
export type MediaRequest =
  /** The person's call as it is now. */
  | { readonly kind: 'call'; readonly person: string; readonly name: string; readonly call: SeenCall }
  /** The gateway lets the person in, or does so again. */
  | { readonly kind: 'admitted'; readonly person: string }
  | { readonly kind: 'gone'; readonly person: string }

/** From the page. */
export type MediaReport =
  | { readonly kind: 'key-wanted'; readonly person: string }
  | { readonly kind: 'state'; readonly person: string; readonly state: MediaState }
  | { readonly kind: 'error'; readonly person: string; readonly code: string; readonly message: string }

export interface SeenCall extends Pick<Call, 'callId' | 'isVideo' | 'state' | 'roomId' | 'media'> {
  readonly participants: MediaCall['participants']
  readonly keys: readonly SeenKey[]
  readonly sendingEpoch: number | undefined
}

export interface SeenKey {
  readonly epoch: number
  readonly key: readonly number[]
  readonly fingerprint: string
}

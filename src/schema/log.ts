/** Wire shapes of the log's HTTP operations (LOG 2.5, contract 9). */

import Type from 'typebox'
import { LOOKUP_TARGETS_MAX } from '../limits.ts'

/** Canonical base64 of 64 bytes: 85 free characters, one whose low four bits are zero, and the padding. */
const PublicKeyHash = Type.String({
  pattern: '^[A-Za-z0-9+/]{85}[AQgw]==$',
  description: 'The vrfHash that registration returned: base64 of 64 bytes',
})

export const GetPublicKeysRequest = Type.Object({
  targets: Type.Array(Type.Object({ publicKeyHash: PublicKeyHash }), {
    minItems: 1,
    maxItems: LOOKUP_TARGETS_MAX,
  }),
})

export const GetKeyHistoryRequest = Type.Object({ publicKeyHash: PublicKeyHash })

/** One answered target, in the order of the request. */
export interface PublicKeyResult {
  readonly publicKey: string
  readonly vrfHash: string
  /** c2sp.org/tlog-proof text; its extra data is the VRF proof. */
  readonly proof: string
}

/** Every entry ever logged under one hash, oldest first; numbers as decimal strings. */
export interface KeyHistory {
  readonly entries: readonly { readonly index: string; readonly publicKey: string; readonly proof: string }[]
  readonly treeSize: string
}

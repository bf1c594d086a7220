/** Wire shapes of the log's HTTP operations (LOG 2.5, contract 9). */

import Type from 'typebox'
import { LOOKUP_TARGETS_MAX } from '../limits.ts'
import { IndexLookup } from '../schema/index-lookup.ts'

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
  index: Type.Optional(
    Type.Boolean({
      description: 'Whether each result should say what the index has under its hash. Left out: no',
    }),
  ),
})

export const GetKeyHistoryRequest = Type.Object({ publicKeyHash: PublicKeyHash })

const Proof = Type.String({
  description:
    'Text of c2sp.org/tlog-proof with the VRF proof as its extra data: verify it before you use the key',
})
const PublicKey = Type.String({ description: 'Base64, as it was registered' })
const Decimal = Type.String({ pattern: '^(0|[1-9][0-9]*)$' })

/** Written by `formatPublicKeys`. */
export const GetPublicKeysReply = Type.Object({
  results: Type.Array(
    Type.Object({
      publicKey: PublicKey,
      vrfHash: PublicKeyHash,
      proof: Proof,
      indexProof: Type.Optional(IndexLookup),
    }),
    { description: 'In the order of the targets' },
  ),
})

/** Written by `formatKeyHistory`. */
export const GetKeyHistoryReply = Type.Object({
  entries: Type.Array(Type.Object({ index: Decimal, publicKey: PublicKey, proof: Proof }), {
    description: 'Every key that was logged under this hash, oldest first',
  }),
  treeSize: Decimal,
})

/** A key that is in the log. Texts in base64 need no escape in JSON. */
export interface ProvenKey {
  readonly index: number
  readonly publicKey: string
  readonly vrfHash: string
  /** c2sp.org/tlog-proof text with the VRF proof as extra data, as the inside of a JSON string. */
  readonly proof: string
}

/** `{results: [{publicKey, vrfHash, proof}]}`, in the order of the request; each with its `indexProof` where those are given. */
export function formatPublicKeys(keys: readonly ProvenKey[], indexProofs?: readonly string[]): string {
  const results = keys.map(({ publicKey, vrfHash, proof }, at) => {
    const members = `"publicKey":"${publicKey}","vrfHash":"${vrfHash}","proof":"${proof}"`
    return indexProofs === undefined ? `{${members}}` : `{${members},"indexProof":${indexProofs[at]}}`
  })
  return `{"results":[${results.join()}]}`
}

/** `{entries: [{index, publicKey, proof}], treeSize}`; numbers as decimal strings. */
export function formatKeyHistory(keys: readonly ProvenKey[], treeSize: number): string {
  const entries = keys.map(
    ({ index, publicKey, proof }) => `{"index":"${index}","publicKey":"${publicKey}","proof":"${proof}"}`,
  )
  return `{"entries":[${entries.join()}],"treeSize":"${treeSize}"}`
}

/** A text as the inside of a JSON string of ASCII characters, which is sent faster than one with an em dash in it. */
export function escapeForJson(text: string): string {
  return JSON.stringify(text).slice(1, -1).replaceAll('\u2014', '\\u2014')
}

/** A lookup in the log's index, with its proof: the members of transparency.dev's verifiable index. */

import Type from 'typebox'

const Octet = Type.Integer({ minimum: 0, maximum: 255 })

/** Written by `IndexProofs`. */
export const IndexLookup = Type.Object(
  {
    output_log_cp: Type.String({
      description:
        'Checkpoint of the index (c2sp.org/tlog-checkpoint, origin `<origin>/index`), its whole note in base64',
    }),
    output_log_leaf: Type.String({
      description:
        'Last leaf of that tree in base64: `{"input_log_cp": a checkpoint of the log in base64, "index_root": 32 numbers}`',
    }),
    output_log_proof: Type.Array(Type.Array(Octet, { minItems: 32, maxItems: 32 }), {
      description: 'Inclusion of the leaf at the end of that tree: hashes from its sibling up',
    }),
    index_value: Type.Array(Type.Integer({ minimum: 0 }), {
      description: 'Indexes of the entries under the key, ascending; none: the key is absent',
    }),
    index_proof: Type.String({
      description:
        'Proof of that under the root of the leaf: octets of filippo.io/torchwood/mpt v0.10, in base64',
    }),
  },
  { description: 'What the index has under a key: SHA-256 of the base64 text of a VRF hash' },
)

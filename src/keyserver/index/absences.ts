/** Proves of users without a device list that the log has nothing in their slot 0, which a list would be in. */

import type { Static } from 'typebox'
import { encodeBase64 } from '#primitives'
import { DEVICE_LIST_SLOT } from '../../log/device-list.ts'
import type { IndexLookup } from '../../schema/index-lookup.ts'
import type { Prover } from '../lookups.ts'
import type { IndexReader } from './index-reader.ts'

export interface Absence {
  readonly deviceId: bigint
  readonly vrfHash: string
  readonly vrfProof: string
  readonly indexProof: Static<typeof IndexLookup>
}

/**
 * Resolves with a function that proves of each user at once that the index shows the slot as empty; it returns undefined where
 * there is no index, and where the slot is not empty. Rejects as the prover does.
 */
export type ProveAbsences = (userIds: readonly bigint[]) => Promise<(userId: bigint) => Absence | undefined>

export function absencesIn(
  index: Pick<IndexReader, 'isThere' | 'lookUpAll'>,
  vrf: Pick<Prover, 'prove'>,
): ProveAbsences {
  return async userIds => {
    if (userIds.length === 0 || !index.isThere) return () => undefined
    const outputs = await Promise.all(userIds.map(userId => vrf.prove(userId, DEVICE_LIST_SLOT)))
    const outputOf = new Map(userIds.map((userId, at) => [userId, outputs[at]!]))
    return userId => {
      const output = outputOf.get(userId)
      if (output === undefined) return undefined
      const vrfHash = encodeBase64(output.vrfHash)
      const [found] = index.lookUpAll([vrfHash]) ?? []
      const indexProof: Static<typeof IndexLookup> | undefined = found && JSON.parse(found)
      if (indexProof === undefined || indexProof.index_value.length > 0) return undefined
      return { deviceId: DEVICE_LIST_SLOT, vrfHash, vrfProof: encodeBase64(output.vrfProof), indexProof }
    }
  }
}

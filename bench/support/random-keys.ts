/** Keys for logs without lookups: random bytes where a VRF hash would be, which look the same. */

import { randomBytes, randomFillSync } from 'node:crypto'
import { VRF_HASH_BYTES } from '../../src/log/entry.ts'
import type { AppendedKey } from './log-engine.ts'

/** Makes the key of each index; costs 0.2 us, so that it does not show beside what it measures. */
export function randomKeys(): (index: number) => AppendedKey {
  const publicKeys = Array.from({ length: 1_024 }, () => randomBytes(32).toString('base64'))
  let block = new Uint8Array(0)
  let used = 0
  return index => {
    if (used === block.length) {
      block = randomFillSync(new Uint8Array(HASHES_PER_BLOCK * VRF_HASH_BYTES))
      used = 0
    }
    const vrfHash = block.subarray(used, used + VRF_HASH_BYTES)
    used += VRF_HASH_BYTES
    return {
      userId: BigInt(index),
      deviceId: 0n,
      vrfHash,
      publicKey: publicKeys[index % publicKeys.length]!,
    }
  }
}

const HASHES_PER_BLOCK = 1_024

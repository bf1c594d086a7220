/** Random bytes for ids, keys of rows and initialisation vectors. */

import { randomBytes } from 'node:crypto'

/** Drawn from the operating system in larger portions: a draw costs 2 us however small it is. */
export function pooledRandomBytes(length: number): Uint8Array {
  if (length > RANDOM_POOL_BYTES) return randomBytes(length)
  if (randomPool.length < length) randomPool = randomBytes(RANDOM_POOL_BYTES)
  const drawn = Uint8Array.prototype.slice.call(randomPool, 0, length)
  randomPool.fill(0, 0, length)
  randomPool = randomPool.subarray(length)
  return drawn
}

const RANDOM_POOL_BYTES = 4_096
let randomPool = Buffer.alloc(0)

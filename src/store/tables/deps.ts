/** Members that most stores are given. */

import type { Expiries } from '../engine/expiries.ts'
import type { ReadStore } from '../engine/store.ts'
import type { SealingSecrets } from './sealed.ts'

export interface StoreDeps {
  readonly database: ReadStore
  readonly expiries: Expiries
  readonly secrets: SealingSecrets
  readonly randomBytes: (length: number) => Uint8Array
}

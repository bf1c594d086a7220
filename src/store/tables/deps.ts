/** Members that most stores are given. */

import type { Expiries } from '../engine/expiries.ts'
import type { Store } from '../engine/store.ts'
import type { SealingSecrets } from './sealed.ts'

export interface StoreDeps {
  readonly database: Store
  readonly expiries: Expiries
  readonly secrets: SealingSecrets
  readonly randomBytes: (length: number) => Uint8Array
}

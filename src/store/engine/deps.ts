/** Members that most stores are given. */

import type { Expiries } from './expiries.ts'
import type { SealingSecrets } from './sealed.ts'
import type { Store } from './store.ts'

export interface StoreDeps {
  readonly database: Store
  readonly expiries: Expiries
  readonly secrets: SealingSecrets
  readonly randomBytes: (length: number) => Uint8Array
}

/** How the log's index does, for its operator. */

import type { WitnessFigures } from '../witness-rounds.ts'

export interface IndexFigures {
  /** The shown leaf has the first so many entries of the log. */
  readonly entries: number
  /** Size of the output log. */
  readonly leaves: number
  /** How many entries of the log are newer than the shown leaf. */
  readonly lagEntries: number
  /** Since the shown leaf; before the first one since the start. */
  readonly leafAgeSeconds: number
  /** Why nothing more is appended and nothing is answered from it; undefined while all is well. */
  readonly held: string | undefined
  /** While the index is built for the first time. */
  readonly building: { readonly done: number; readonly of: number } | undefined
  /** Absent without a policy. */
  readonly witnesses?: WitnessFigures
}

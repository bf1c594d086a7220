/** The sentences for people about the log's index and an answer. */
import type { LeastProved } from '../../src/client/client.ts'

export function completenessWords({ complete, isProved }: LeastProved): string {
  if (complete === 'unindexed') return 'The log offers no index, so nothing proves that it is the newest.'
  if (complete === 'tail-unread') return 'The log’s index is too far behind to prove that it is the newest.'
  return isProved ? 'It is the newest, proved.' : 'It is the newest, by an index that auditors check.'
}

/** Which of the two sentences about the index people read. */

import t from 'tap'
import { completenessWords } from '../../web/shared/completeness.ts'

t.test('newest is said to be proved only where rebuilders vouch for it', async t => {
  t.equal(completenessWords({ complete: true, isProved: true }), 'It is the newest, proved.')
  t.equal(
    completenessWords({ complete: true, isProved: false }),
    'It is the newest, by an index that auditors check.',
  )
  t.match(completenessWords({ complete: 'tail-unread', isProved: false }), /too far behind/)
  t.match(completenessWords({ complete: 'unindexed', isProved: false }), /offers no index/)
})

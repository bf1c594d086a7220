/** Log lines of connections at the nodes' port that are no node's: one for each reason in a while, with what to do. */

import t from 'tap'
import { LinkRefusalLog } from '../../src/operations/link-refusal-log.ts'

t.test('a reason has one line a minute, which counts those that had none', async t => {
  const lines: object[] = []
  let nowMs = 0
  const { note } = new LinkRefusalLog({ warn: (line: object) => void lines.push(line) }, () => nowMs)
  for (let times = 0; times < 1_000; times++) note('no node', '127.0.0.1')
  note('other secret', '10.0.0.2')
  nowMs = 60_000
  note('no node', '127.0.0.1')
  t.match(lines, [
    { event: 'link-refused', reason: 'no node', address: '127.0.0.1', advice: /CALLSIGN_NODE_PORT/ },
    { reason: 'other secret', address: '10.0.0.2', advice: 'give all nodes the same CALLSIGN_SECRET' },
    { reason: 'no node', leftOut: 999 },
  ])
  t.equal(lines.length, 3)
})

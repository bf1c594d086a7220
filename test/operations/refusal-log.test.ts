/** Log lines of refusals: each, but of a flood only some, and how many were left out. */

import t from 'tap'
import { RefusalLog } from '../../src/operations/refusal-log.ts'

t.test('ten a second of each code have a line; the next one says how many had none', async t => {
  let nowMs = 5_000
  const lines: { code: string; requestId: string; leftOut?: number }[] = []
  const log = new RefusalLog({ info: (line: (typeof lines)[number]) => void lines.push(line) }, () => nowMs)
  for (let at = 0; at < 1_000; at++) log.note('RATE_LIMITED', `${at}`)
  log.note('NOT_FOUND', 'one')
  t.same(
    lines.map(({ requestId }) => requestId),
    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'one'],
  )
  t.ok(lines.every(({ leftOut }) => leftOut === undefined))
  nowMs += 1_000
  for (const id of ['next', 'after']) log.note('RATE_LIMITED', id)
  t.match(lines.slice(11), [
    { code: 'RATE_LIMITED', requestId: 'next', leftOut: 990 },
    { requestId: 'after', leftOut: undefined },
  ])
})

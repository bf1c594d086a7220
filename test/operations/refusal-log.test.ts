/** Log lines of refusals: each, but of a flood only some, and how many were left out. */

import t from 'tap'
import { RefusalLog } from '../../src/operations/refusal-log.ts'

t.test('ten a second of each code have a line; the next one says how many had none', async t => {
  let nowMs = 5_000
  const lines: { code: string; requestId: string; leftOut?: number }[] = []
  const log = new RefusalLog({ info: (line: (typeof lines)[number]) => void lines.push(line) }, () => nowMs)
  for (let at = 0; at < 1_000; at++) log.note('RATE_LIMITED', { requestId: `${at}` })
  log.note('NOT_FOUND', { requestId: 'one' })
  t.same(
    lines.map(({ requestId }) => requestId),
    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'one'],
  )
  t.ok(lines.every(({ leftOut }) => leftOut === undefined))
  nowMs += 1_000
  for (const requestId of ['next', 'after']) log.note('RATE_LIMITED', { requestId })
  t.match(lines.slice(11), [
    { code: 'RATE_LIMITED', requestId: 'next', leftOut: 990 },
    { requestId: 'after', leftOut: undefined },
  ])
})

t.test('a line names place and fault, and repeats nothing that is no name', async t => {
  const lines: object[] = []
  const log = new RefusalLog({ info: (line: object) => void lines.push(line) }, () => 0)
  const at = { requestId: 'r', method: 'POST', route: '/app/api/call/start' }
  const long = 'x'.repeat(42)
  const pointers = [
    '/targets/3/publicKeyHash',
    '',
    '/encryptedAESKeys/18446744073709551615_18446744073709551614',
  ]
  for (const pointer of [
    ...pointers,
    `/encryptedAESKeys/${long}`,
    '/a b/c',
    `/ok/${'y/'.repeat(200)}`,
    undefined,
  ])
    log.note('VALIDATION_FAILED', { ...at, pointer })
  t.match(lines[0], { event: 'refused', code: 'VALIDATION_FAILED', ...at, pointer: pointers[0] })
  t.same(lines.map(line => ('pointer' in line ? line.pointer : undefined)).slice(1, 5), [
    ...pointers.slice(1),
    '/encryptedAESKeys/…',
    '/…',
  ])
  t.ok(JSON.stringify(lines[5]).length < 400, 'and is short')
  t.match(lines[6], { pointer: undefined })
})

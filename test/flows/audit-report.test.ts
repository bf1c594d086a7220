/** Findings as a program and as a person reads them. */

import t from 'tap'
import type { Finding } from '../../scripts/audit/finding.ts'
import { jsonReport, terminalReport } from '../../scripts/audit/report.ts'

const FORK: Finding = {
  check: 'gossip',
  ok: false,
  detail: 'two roots',
  url: 'https://a.example',
  notes: ['x\n\ny\n', 'z\n'],
}

t.test('as JSON: a line per finding with its time, its members as they are, and no progress', async t => {
  let text = ''
  const report = jsonReport(written => {
    text += written
  })
  report.progress(1, 2)
  report.finding(FORK)
  report.finding({ check: 'fetch', ok: null, detail: 'down' })
  const lines = text.split('\n')
  t.equal(lines.length, 3)
  const { time, ...finding } = JSON.parse(lines[0]!)
  t.strictSame(finding, FORK)
  t.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000)
  t.match(JSON.parse(lines[1]!), { check: 'fetch', ok: null })
})

t.test('at a terminal: a sentence per finding, both notes in full, and a count that gives way', async t => {
  let text = ''
  const report = terminalReport(written => {
    text += written
  })
  report.progress(32_768, 40_000)
  report.progress(33_024, 40_000)
  report.finding({ check: 'entries', ok: true, detail: 'all fine' })
  report.finding(FORK)
  report.finding({ check: 'watch', ok: true, detail: 'a new entry', index: '7' })
  report.finding({ check: 'proofs', ok: null, detail: 'no JSON', line: 7 })
  report.finding({ check: 'tiles', ok: null, pending: true, detail: 'a late one' })
  report.finding({ check: 'stale', ok: null, pending: true, alarm: true, detail: 'for a day' })
  const [count, ...shown] = text.split('\r\u001b[K').slice(1)
  t.match(count, / 32768 of 40000 entries$/)
  t.strictSame(shown.join('').split('\n'), [
    'ok       entries      all fine',
    'FAILED   gossip       https://a.example: two roots',
    '',
    '    x',
    '',
    '    y',
    '',
    '',
    '    z',
    '',
    'NEW      watch        a new entry',
    'unknown  proofs       line 7: no JSON',
    'waiting  tiles        a late one',
    'ALARM    stale        for a day',
    '',
  ])
})

/** Log lines of origins that may not call: one for each in a while, never more than a few, and no text that is no origin. */

import t from 'tap'
import { OriginLog } from '../../src/operations/origin-log.ts'

interface Line {
  readonly origin: string
  readonly setting: string
  readonly advice: string
}

function logged(nowMs: () => number = () => 0) {
  const lines: Line[] = []
  return { lines, log: new OriginLog({ warn: (line: Line) => void lines.push(line) }, nowMs) }
}

t.test('an origin has one line in ten minutes, with the setting that lets it in', async t => {
  let nowMs = 0
  const { lines, log } = logged(() => nowMs)
  for (let times = 0; times < 100; times++) log.note('https://app.example')
  t.equal(lines.length, 1)
  t.match(lines[0], {
    event: 'origin-refused',
    origin: 'https://app.example',
    setting: 'CALLSIGN_CORS_ORIGINS',
  })
  t.match(lines[0]?.advice, 'add https://app.example to CALLSIGN_CORS_ORIGINS')
  nowMs = 600_000
  log.note('https://app.example')
  t.equal(lines.length, 2)
})

t.test('thousands of origins have twenty lines', async t => {
  const { lines, log } = logged()
  for (let at = 0; at < 5_000; at++) log.note(`https://a${at}.example`)
  t.equal(lines.length, 20)
})

t.test('a text that is no origin is not repeated', async t => {
  const { lines, log } = logged()
  for (const text of ['https://a.example/?token=secret', 'a secret', `https://${'a'.repeat(300)}`, 'null'])
    log.note(text)
  t.same(
    lines.map(({ origin }) => origin),
    ['unreadable', 'null'],
  )
})

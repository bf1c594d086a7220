/** Log lines as a terminal shows them. */

import t from 'tap'
import { readableLine } from '../../src/operations/readable-line.ts'

const TIME = '2026-01-02T03:04:05.678Z'
const read = (fields: object) => readableLine(JSON.stringify({ level: 'info', time: TIME, ...fields }))

t.test('a line is the time of day, the event and its fields', async t => {
  t.equal(read({ event: 'checkpoint', treeSize: 7 }), '  03:04:05 checkpoint treeSize=7\n')
  t.equal(
    read({ level: 'warn', event: 'not-delivered', reason: 'no route', leftOut: null }),
    '  03:04:05 warning: not-delivered reason="no route" leftOut=null\n',
  )
})

t.test('an error shows its stack below', async t => {
  const err = { type: 'Error', message: 'gone', stack: 'Error: gone\n    at here' }
  t.equal(
    read({ level: 'error', event: 'fault', err }),
    '  03:04:05 ERROR: fault\n      Error: gone\n          at here\n',
  )
})

t.test('no value of a line reaches the terminal as a control sequence', async t => {
  const hostile = '\u001b]0;owned\u0007\u009b31m'
  const text = read({ event: hostile, path: hostile, err: { stack: `Error: ${hostile}` } })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be there.
  t.notMatch(text, /[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
})

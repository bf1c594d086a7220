/**
 * The ways through the code that a reader follows first stay short: `call/start` to the invitation on a socket, and a
 * SEND to its RECEIPT. `node dist/test/support/ways.js` prints them; test/support/way.ts says what is counted.
 */

import t from 'tap'
import type { Step } from './support/function-trace.ts'
import { builtProgram, runProgram } from './support/programs.ts'
import { countWay } from './support/way.ts'

const RUNS_MAX = 6
/** Lower them with each way that gets shorter. The goals: 30 files and 8 returns, 20 files and 4 returns. */
const MAX = {
  'call/start': { files: 60, returns: 17 },
  SEND: { files: 35, returns: 5 },
}

t.test('the ways of a call and of a SEND get no longer', async t => {
  // A timer that fires meanwhile belongs to no way, so the shortest of some runs counts.
  for (let run = 1; run <= RUNS_MAX; run++) {
    const { code, stdout, stderr } = await runProgram(process.execPath, [
      builtProgram('test/support/ways'),
      '--json',
    ])
    t.equal(code, 0, stderr)
    const ways = JSON.parse(stdout)
    const tooLong = Object.entries(MAX).filter(
      ([name, max]) => ways[name].files > max.files || ways[name].returns > max.returns,
    )
    for (const name of Object.keys(MAX)) t.ok(ways[name].files > 10, `${name}: ${ways[name].files} files`)
    if (tooLong.length === 0) return
    t.comment(stdout)
  }
  t.fail('one is longer than it may be: `node dist/test/support/ways.js` prints them')
})

/** Steps such as `a b`, where a file's function waits for a function of another: callers first, the one that runs last. */
function stepsOf(...lines: readonly string[]): Step[] {
  return lines.map(line => {
    const [file = '', ...callers] = line.split(' ').toReversed()
    return { file, name: 'run', callers: callers.map(caller => ({ file: caller, place: `${caller}:1` })) }
  })
}

function returnsOf(...lines: readonly string[]): string[] {
  return countWay(stepsOf(...lines), file => file.startsWith('lib')).returns.map(({ file }) => file)
}

t.test(
  'a file that the way left and enters again is a return, when the way comes from below or from outside',
  async t => {
    t.same(returnsOf('a', 'a b', 'a b a'), [], 'a file on the stack was not left')
    t.same(returnsOf('a', 'b', 'b a'), ['a'])
    t.same(returnsOf('a', 'b', 'a'), ['a'])
    t.same(returnsOf('a', 'a b', 'a c', 'a b'), [], 'a second call further down')
    t.same(returnsOf('a', 'a b', 'c', 'c a', 'c', 'c a'), ['a', 'c'], 'the same call again')
    t.same(returnsOf('a', 'b', 'c', 'c lib b'), ['b'], 'through a helper')
  },
)

t.test('helpers and getters that run are no stations of a way', async t => {
  const steps = [...stepsOf('a', 'a lib', 'a b'), { file: 'c', name: 'get c', callers: [] }]
  const { files, beside } = countWay(steps, file => file.startsWith('lib'))
  t.same([...files.keys()], ['a', 'b'])
  t.same([...beside], ['lib'])
})

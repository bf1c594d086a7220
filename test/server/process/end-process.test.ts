/** A process that must end does so at once, whatever LMDB does in its thread. */

import { once } from 'node:events'
import t from 'tap'
import { spawnBound, startedProgram } from '../../support/programs.ts'

const MOMENTS = {
  idle: [1, null],
  'in-change': [null, 'SIGKILL'],
  beside: [null, 'SIGKILL'],
} as const

for (const [moment, outcome] of Object.entries(MOMENTS)) {
  t.test(`ending while the store is ${moment}`, async t => {
    const program = spawnBound(
      process.execPath,
      [startedProgram('test/support/ending-program'), t.testdir(), moment],
      {
        stdio: 'ignore',
      },
    )
    t.same(await once(program, 'close'), outcome)
  })
}

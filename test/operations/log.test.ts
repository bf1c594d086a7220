/** The log output without a reader. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { PROJECT_ROOT } from '../support/vectors.ts'

t.test('unread lines wait up to a bound, and are lost beyond it', async t => {
  const program = `
    const { createLogger } = await import(${JSON.stringify(join(PROJECT_ROOT, 'dist/src/operations/log.js'))})
    const logger = createLogger('info')
    for (let count = 0; count < 4_000; count++) logger.info({ event: 'x'.repeat(4_096) })
    process.stdout.write(String(process.stderr.writableLength) + '\\n', () => process.kill(process.pid, 'SIGKILL'))
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [waiting] = await once(child.stdout, 'data')
  child.stderr.destroy()
  t.ok(Number(waiting) > 0, 'more than the pipe takes')
  t.ok(Number(waiting) < 2 * 1024 * 1024, `${waiting}`.trim())
})

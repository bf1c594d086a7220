/** Whether a process should get traffic, from its start to its stop. */

import pino from 'pino'
import t, { type Test } from 'tap'
import { Process } from '../../../src/server/process/process.ts'
import { readConfig } from '../../../src/server/settings/config.ts'

function openProcess(t: Test): Process {
  const config = readConfig({ CALLSIGN_DATA_DIR: t.testdir() }, { dev: true })
  const context = new Process(config, pino({ level: 'silent' }), () => undefined)
  t.teardown(() => context.close())
  return context
}

t.test('a process is ready while its port is open and a front serves', async t => {
  const context = openProcess(t)
  t.equal(context.notReady(), 'starting')
  let isServing = false
  context.opened(() => isServing)
  t.equal(context.notReady(), 'no front serves')
  isServing = true
  t.equal(context.notReady(), undefined)
  context.stopping()
  t.equal(context.notReady(), 'stopping')
})

t.test('a process that is stopped while it starts goes on stopping', async t => {
  const context = openProcess(t)
  context.stopping()
  context.opened()
  t.equal(context.notReady(), 'stopping')
})

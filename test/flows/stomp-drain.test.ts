/** A stop while a crowd is connected: what each client hears of it. The crowd is another process. */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import type { CrowdOrder } from '../support/socket-crowd-program.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { WireServer } from '../support/wire-server.ts'

const STAYING = 24
const ARRIVING = 4
const SILENT = 1_000

t.test('a stop tells each of a thousand sockets to come back, whatever it was about to do', async t => {
  const server = await WireServer.start(t, { people: STAYING + ARRIVING })
  const tokens = (await server.devices(STAYING + ARRIVING)).map(({ token }) => token)
  const crowd = fork(join(PROJECT_ROOT, 'dist/test/support/socket-crowd-program.js'))
  t.teardown(() => crowd.kill('SIGKILL'))
  const order: CrowdOrder = {
    port: Number(new URL(server.running.http).port),
    staying: tokens.slice(0, STAYING),
    silent: SILENT,
    arriving: tokens.slice(STAYING),
  }
  crowd.send(order)
  await once(crowd, 'message')
  const endings = once(crowd, 'message')
  t.equal(await server.running.end('SIGTERM'), 0)
  const [{ settled, last }] = await endings
  // Of two fronts the one with most of them may just have let some go.
  const { 'draining 1012': draining = 0, 'moved 1012': moved = 0, ...others } = settled
  t.equal(draining + moved, STAYING + SILENT)
  t.same(others, {})
  t.same(
    Object.keys(last).filter(ending => ending !== 'draining 1012'),
    [],
    'those who came meanwhile',
  )
  t.same(server.faults(), [])
})

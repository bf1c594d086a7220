/** The stages of a stop. */

import t from 'tap'
import { STOP_STAGES, type StopStage, type Stops, stopInStages } from '../../../src/server/process/stages.ts'
import { Deferred } from '../../support/deferred.ts'

t.test('parts end stage by stage, whatever order they are listed in', async t => {
  const ended: string[] = []
  const part = (name: string, ...stages: readonly StopStage[]): Stops =>
    Object.fromEntries(stages.map(stage => [stage, async () => void ended.push(`${stage} ${name}`)]))
  const begun: StopStage[] = []
  const parts = [part('log', 'store', 'services'), part('http', 'sockets', 'listening')]
  await stopInStages(
    () => parts,
    stage => begun.push(stage),
  )
  t.same(begun, STOP_STAGES)
  t.same(ended, ['listening http', 'sockets http', 'services log', 'store log'])
})

t.test('a stage waits for the one before it', async t => {
  const answered = new Deferred<void>()
  const begun: StopStage[] = []
  const stopped = stopInStages(
    () => [{ requests: () => answered }],
    stage => begun.push(stage),
  )
  await new Promise(setImmediate)
  t.equal(begun.at(-1), 'requests')
  answered.resolve()
  await stopped
  t.equal(begun.at(-1), 'store')
})

t.test('a part that joins while a stop is under way ends too', async t => {
  const ended: string[] = []
  const parts: Stops[] = [{ listening: () => void parts.push({ lease: () => ended.push('lease') }) }]
  await stopInStages(
    () => parts,
    () => undefined,
  )
  t.same(ended, ['lease'])
})

t.test('nothing ends behind a part that fails', async t => {
  const ended: string[] = []
  const failing: Stops = {
    actors: () => Promise.reject(new Error('a mailbox does not drain')),
    store: () => ended.push('store'),
  }
  await t.rejects(
    stopInStages(
      () => [failing],
      () => undefined,
    ),
    { message: 'a mailbox does not drain' },
  )
  t.same(ended, [])
})

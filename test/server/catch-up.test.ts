/** CONNECTs at a front wait for what other fronts have done. */

import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { CatchUp } from '../../src/server/catch-up.ts'
import { Deferred } from '../support/deferred.ts'

t.test('CONNECTs that come while one waits have the next answer, together and in order', async t => {
  const answers: Deferred<void>[] = []
  const moments: Deferred<void>[] = []
  const next = (list: Deferred<void>[]) => () => {
    const deferred = new Deferred<void>()
    list.push(deferred)
    return Promise.resolve(deferred)
  }
  const catchUp = new CatchUp(next(moments), next(answers))
  const run: number[] = []
  const connect = (number: number) => catchUp.run(() => run.push(number))
  connect(1)
  connect(2)
  t.equal(answers.length, 0)
  moments[0]!.resolve()
  await setImmediate()
  connect(3)
  t.same([answers.length, run], [1, []])
  answers[0]!.resolve()
  await setImmediate()
  t.same(run, [1, 2])
  moments[1]!.resolve()
  await setImmediate()
  t.same([answers.length, run], [2, [1, 2]], 'what they were answered may be older than this one')
  answers[1]!.reject(new Error('no writer'))
  await setImmediate()
  t.same(run, [1, 2, 3], 'an answer that does not come keeps nobody out')
  connect(4)
  moments[2]!.resolve()
  await setImmediate()
  t.equal(answers.length, 3)
})

/** CONNECTs at a front wait for what other fronts have done. */

import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { CatchUp } from '../../src/fronts/catch-up.ts'
import { Deferred } from '../support/deferred.ts'

t.test('CONNECTs that come while one waits have the next answer, together and in order', async t => {
  const answers: Deferred<void>[] = []
  const catchUp = new CatchUp(() => {
    const answer = new Deferred<void>()
    answers.push(answer)
    return Promise.resolve(answer)
  })
  const run: number[] = []
  const connect = (number: number) => catchUp.run(() => run.push(number))
  connect(1)
  connect(2)
  connect(3)
  await setImmediate()
  t.same([answers.length, run], [1, []])
  answers[0]!.resolve()
  await setImmediate()
  t.same([answers.length, run], [2, [1]], 'what the first was answered may be older than these')
  answers[1]!.reject(new Error('no writer'))
  await setImmediate()
  t.same(run, [1, 2, 3], 'an answer that does not come keeps nobody out')
  connect(4)
  t.equal(answers.length, 3)
})

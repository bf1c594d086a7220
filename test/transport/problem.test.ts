/** Problem bodies of refusals, as far as the stories of operations do not show them. */

import t from 'tap'
import { SignalError } from '../../src/errors.ts'
import { idSequence } from '../../src/transport/open-connections.ts'
import { problemOf } from '../../src/transport/problem.ts'

t.test('requests that are refused together are asked to come back at different times', async t => {
  const nextRequestId = idSequence()
  const waits = Array.from({ length: 100 }, () => {
    const { headers, body } = problemOf(new SignalError('OVERLOADED', 'too much to do'), nextRequestId())
    const [[name, seconds] = []] = headers
    t.equal(name, 'Retry-After')
    t.equal(JSON.parse(body).retryIn, Number(seconds))
    return Number(seconds)
  })
  for (const wait of [1, 2, 3, 4]) {
    const count = waits.filter(each => each === wait).length
    t.ok(count >= 15 && count <= 35, `${count} of 100 wait ${wait} s`)
  }
  t.same([...new Set(waits)].sort(), [1, 2, 3, 4])
})

t.test('a refusal that knows its wait says that one', async t => {
  const error = new SignalError('TURN_NOT_CONFIGURED', 'no relay', { members: { retryIn: 3_600 } })
  t.same(problemOf(error, 'request-1').headers, [['Retry-After', '3600']])
})

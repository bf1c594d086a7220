/** Codes and what they are for: each that the document names can be heard, and none that it does not name is. */

import t from 'tap'
import { plainOperations } from '../../../src/api/documents/log-operations.ts'
import { OPERATIONS } from '../../../src/api/operations.ts'
import { codesOf } from '../../../src/api/table/refusals.ts'
import type { ErrorCode } from '../../../src/errors.ts'
import { statusOf } from '../../../src/transport/problem.ts'
import { PROVOCATIONS } from '../../support/provocations.ts'

const DOCUMENTED = new Set([...OPERATIONS, ...plainOperations(true)].flatMap(codesOf))

t.test('there is a story for each documented code, and for no other', async t => {
  t.same(
    [...DOCUMENTED].filter(code => PROVOCATIONS[code] === undefined),
    [],
    'documented, but never heard',
  )
  t.same(
    Object.keys(PROVOCATIONS).filter(code => !DOCUMENTED.has(code as ErrorCode)),
    [],
    'heard, but not documented',
  )
})

for (const [code, provoke] of Object.entries(PROVOCATIONS)) {
  t.test(`${code} is heard, with its status and all that a problem has`, async t => {
    const { status, body } = await provoke(t)
    t.equal(body.code, code)
    t.equal(status, statusOf(code as ErrorCode))
    t.equal(body.status, status)
    t.equal(body.type, `urn:problem:${code.toLowerCase().replaceAll('_', '-')}`)
    for (const member of ['title', 'detail', 'requestId']) t.type(body[member], 'string', member)
    if (status === 429 || status === 503) t.ok(body.retryIn > 0, 'it says how long to wait')
    t.notMatch(JSON.stringify(body), /\bat .*\.[jt]s:\d/, 'no stack')
  })
}

t.test('a code that only a fault of ours has says nothing of the fault', async t => {
  const { body } = await PROVOCATIONS.INTERNAL!(t)
  t.notMatch(JSON.stringify(body), /JSON|token/i)
})

/** When a front of a node may answer from its copy. */

import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { COPY_AGE_MS_MAX, READ_LEASE_MS } from '../../src/fronts/messages.ts'
import { ReadLease } from '../../src/fronts/read-lease.ts'

function open() {
  const outcomes: string[] = []
  let [nowMs, looks] = [0, 0]
  let tick: (() => void) | undefined
  const lease = new ReadLease({
    machineMs: () => nowMs,
    world: {
      every(_, run) {
        tick = run
        return () => {
          tick = undefined
        }
      },
    },
    poll: () => {
      looks += 1
    },
  })
  return {
    lease,
    outcomes,
    get looks() {
      return looks
    },
    at(ms: number) {
      nowMs = ms
    },
    async tick() {
      tick?.()
      await setImmediate()
      return tick !== undefined
    },
    /** Whether the read is answered at once. */
    read(name: string): boolean {
      const until = lease.mayRead()
      until?.then(
        () => outcomes.push(name),
        error => outcomes.push(`${name}: ${error.code}`),
      )
      return until === undefined
    },
  }
}

t.test('with a lease reads are answered at once, until it runs out or ends', async t => {
  const front = open()
  t.throws(() => front.read('too soon'), { code: 'STORE_UNAVAILABLE' }, 'the copy was never current')
  front.lease.current(0)
  front.lease.given(0)
  front.at(READ_LEASE_MS)
  t.ok(front.read('leased'))
  front.at(READ_LEASE_MS + 1)
  t.notOk(front.read('expired'))
  front.lease.given(READ_LEASE_MS)
  t.ok(front.read('given again'))
  front.lease.end()
  t.notOk(front.read('ended'))
  front.lease.needsNone()
  t.ok(front.read('beside the writer'))
  front.at(COPY_AGE_MS_MAX + 1)
  t.throws(() => front.read('old'), { code: 'STORE_UNAVAILABLE' }, 'no lease makes up for an old copy')
})

t.test('without one a read waits for a copy that is current as of the read, or is refused', async t => {
  const front = open()
  front.at(10)
  front.lease.current(10)
  front.at(20)
  front.read('first')
  front.at(25)
  front.read('second')
  t.equal(front.looks, 1, 'one look is under way')
  front.lease.current(20)
  await setImmediate()
  t.same([front.outcomes, front.looks], [['first'], 2])
  front.lease.current(19)
  await setImmediate()
  t.same(front.outcomes, ['first'])
  front.lease.current(26)
  await setImmediate()
  t.same(front.outcomes, ['first', 'second'])
  t.equal(await front.tick(), false, 'nothing ticks while no read waits')

  front.at(30)
  front.read('late')
  front.at(30 + COPY_AGE_MS_MAX)
  t.equal(await front.tick(), true)
  front.at(31 + COPY_AGE_MS_MAX)
  t.equal(await front.tick(), false)
  t.same(front.outcomes, ['first', 'second', 'late: STORE_UNAVAILABLE'])
})

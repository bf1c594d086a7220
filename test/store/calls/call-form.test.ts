/** The form of calls in their sealed rows: whole, and by changes. */

import assert from 'node:assert/strict'
import t from 'tap'
import type { Call } from '../../../src/domain/calls/call.ts'
import { packCall, packChanges, unpackCall, withPackedChanges } from '../../../src/store/calls/call-form.ts'
import { CallDriver, deviceOf } from '../../support/call-driver.ts'
import { CallLife } from '../../support/call-life.ts'
import { seedOf } from '../../support/seed.ts'
import { countOf, sized } from '../../support/size.ts'

const RUNS = countOf('CALLSIGN_CALL_RUNS', { short: 60, long: 300 })

/** Follows a call by its changes alone, from the first that it is shown. */
class Follower {
  /** How many changes were packed. */
  steps = 0
  #whole: Call | undefined
  #last: Call | undefined
  #changes: Uint8Array[] = []

  readonly show = (call: Call): void => {
    assert.deepEqual(unpackCall(packCall(call)), call, 'whole')
    const step = this.#last && packChanges(this.#last, call)
    this.#last = call
    if (step === undefined || this.#changes.length === 16) {
      this.#whole = unpackCall(packCall(call))
      this.#changes = []
      return
    }
    this.steps++
    this.#changes.push(step)
    const followed = withPackedChanges(this.#whole!, Buffer.concat(this.#changes))
    assert.deepEqual(followed, call, 'by its changes')
  }
}

t.test('in random lives, the changes of a call give the call', sized(), async t => {
  const first = seedOf()
  let steps = 0
  for (let seed = first; seed < first + RUNS; seed++) {
    const follower = new Follower()
    try {
      new CallLife(seed, follower.show).live()
    } catch (error) {
      t.fail(`CALLSIGN_SEED=${seed} CALLSIGN_CALL_RUNS=1: ${error instanceof Error ? error.stack : error}`)
      return
    }
    steps += follower.steps
  }
  t.ok(steps > 8 * RUNS, `${steps} changes from seed ${first}`)
})

t.test('changes give the call with media, blocks, aliases and the operator, too', async t => {
  const driver = new CallDriver({ devices: 2 })
  const { show } = new Follower()
  const facts = driver.facts([2, 3, 4])
  const [bob, eve, dan] = facts.callees
  const callees = [
    { ...bob!, caller: { isContact: false, alias: 'Änne 🎈' } },
    { ...eve!, isWithheld: true },
    { ...dan!, isSuspended: true },
  ]
  driver.run({ ...driver.startCommand([2, 3, 4]), roomId: 2 ** 53 - 1 }, { ...facts, callees })
  show(driver.call)
  const media = { gateway: 'janus', answered: [] }
  const steps = [
    () => driver.join(2),
    () => driver.run({ kind: 'media-admitted', devices: [deviceOf(1), deviceOf(2)], ...media }),
    () => driver.run({ kind: 'media-feeds', gateway: 'janus', device: deviceOf(2), feedIds: [7, 2 ** 40] }),
    () => driver.run({ kind: 'media-feeds', gateway: 'janus', device: deviceOf(2), feedIds: [] }),
    // Once the block is gone, the same person is invited in earnest.
    () => driver.invite([3], deviceOf(2)),
    () => driver.run({ kind: 'media-lost' }),
    () => driver.run({ kind: 'operator-remove', userId: deviceOf(2).userId }),
    () => driver.run({ kind: 'operator-end' }),
  ]
  for (const step of steps) {
    step()
    show(driver.call)
  }
  t.equal(driver.call.status, 'ended')
})

t.test('changes of a long time line name the moments gone and the new ones', async t => {
  const driver = new CallDriver()
  driver.start([2])
  const moments = Array.from({ length: 201 }, (_, atMs) => ({ atMs, kind: 'moved' as const, userIds: [] }))
  const before: Call = { ...driver.call, timeLine: moments.slice(0, 200) }
  for (const [from, to] of [
    [0, 200],
    [1, 201],
    [199, 201],
    [200, 201],
    [201, 201],
    [0, 3],
  ]) {
    const after = { ...before, timeLine: moments.slice(from, to) }
    t.strictSame(withPackedChanges(before, packChanges(before, after)!), after, `from ${from} to ${to}`)
  }
})

t.test('a call that was not made of the other has no changes from it', async t => {
  const driver = new CallDriver()
  driver.start([2])
  const { call } = driver
  t.equal(packChanges(unpackCall(packCall(call)), call), undefined)
  t.equal(packChanges(call, { ...call, isVideo: !call.isVideo }), undefined)
})

t.test('a call that can’t be packed leaves nothing in the next one', async t => {
  const driver = new CallDriver()
  driver.start([2])
  const { call } = driver
  const [ann, bob] = call.participants
  const odd = { ...bob!, devices: bob!.devices.map(device => ({ ...device, encryptedAESKey: 'not base64' })) }
  t.throws(() => packCall({ ...call, participants: [ann!, odd] }))
  t.strictSame(unpackCall(packCall(call)), call)
})

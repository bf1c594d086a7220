/** Requests counted together: those of one network, by the addresses of the transport. */
import t from 'tap'
import { Admission } from '../../../src/api/table/admission.ts'
import { USUAL_RATES } from '../../../src/domain/rates.ts'
import { networkOf, parseAddress } from '../../../src/transport/remote-address.ts'

/** Admits lookups until one is refused (an address has 120); returns their number. */
function drain(admission: Admission, address: string): number {
  const network = networkOf(parseAddress(address)!)
  let admitted = 0
  while (admitted < 1_000 && admission.admit(network, 'lookup') === 0) admitted++
  return admitted
}

function newAdmission(): { admission: Admission; clock: { nowMs: number } } {
  const clock = { nowMs: 1_000 }
  return { admission: new Admission(USUAL_RATES, () => clock.nowMs), clock }
}

t.test('each IPv4 address has its own bucket', async t => {
  const { admission } = newAdmission()
  t.same(
    ['192.0.2.1', '192.0.2.2', '192.0.2.1', '0.0.0.0', '255.255.255.255'].map(address =>
      drain(admission, address),
    ),
    [120, 120, 0, 120, 120],
  )
})

t.test('an IPv4 address in IPv6 form is that IPv4 address', async t => {
  const { admission } = newAdmission()
  t.equal(drain(admission, '192.0.2.1'), 120)
  t.equal(drain(admission, '::ffff:c000:201'), 0)
  t.equal(drain(admission, '::ffff:c000:202'), 120, 'and not all of them are one network')
  t.equal(drain(admission, '192.0.2.2'), 0)
})

t.test('IPv6 addresses are counted by their /64', async t => {
  const { admission } = newAdmission()
  t.equal(drain(admission, '2001:db8:0:1::1'), 120)
  t.equal(drain(admission, '2001:db8:0:1:ffff:ffff:ffff:ffff'), 0)
  t.equal(drain(admission, '2001:db8:0:2::1'), 120, 'the next /64')
  t.equal(drain(admission, '2001:db9:0:1::1'), 120)
})

t.test('addresses that only look like mapped IPv4 are in their /64', async t => {
  const { admission } = newAdmission()
  t.equal(drain(admission, '::1'), 120)
  t.same(
    ['::c000:201', '::fffe:c000:201', '::1:ffff:c000:201', '::ff:c000:201'].map(address =>
      drain(admission, address),
    ),
    [0, 0, 0, 0],
    'all of them are in ::/64',
  )
  t.equal(drain(admission, '1::ffff:c000:201'), 120)
})

t.test('each kind of request has its own bucket and rate', async t => {
  const { admission } = newAdmission()
  const network = networkOf(parseAddress('192.0.2.7')!)
  const admitted = (['lookup', 'request', 'log-files'] as const).map(scope => {
    let count = 0
    while (count < 100_000 && admission.admit(network, scope) === 0) count++
    return count
  })
  t.same(admitted, [120, 400, 60_000])
})

t.test('who is refused hears whole seconds, rounded up, and is admitted after them', async t => {
  const { admission, clock } = newAdmission()
  drain(admission, '192.0.2.1')
  t.equal(admission.admit(networkOf(parseAddress('192.0.2.1')!), 'lookup'), 1, 'half a second is missing')
  clock.nowMs += 1_000
  t.equal(drain(admission, '192.0.2.1'), 2, 'two come back in a second')
})

t.test('sweeping lets no refused address in', async t => {
  const { admission, clock } = newAdmission()
  drain(admission, '192.0.2.1')
  admission.sweep()
  t.equal(drain(admission, '192.0.2.1'), 0)
  clock.nowMs += 59_500
  admission.sweep()
  t.equal(drain(admission, '192.0.2.1'), 119, 'one is missing from a full bucket')
  clock.nowMs += 60_000
  admission.sweep()
  t.equal(drain(admission, '192.0.2.1'), 120)
})

/** Which addresses a client may send the server to. */

import type { LookupAddress } from 'node:dns'
import t from 'tap'
import { AddressRefusedError, isPublicAddress, publicLookup } from '../../src/delivery/public-lookup.ts'

t.test('all addresses are public but those of special purpose', async t => {
  for (const address of ['8.8.8.8', '1.1.1.1', '223.255.255.255', '2a00:1450:4001::1', '2606:4700::1111'])
    t.ok(isPublicAddress(address), address)
  for (const address of [
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.170',
    '192.168.1.1',
    '198.18.0.1',
    '203.0.113.7',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::7f00:1',
    'fc00::1',
    'fe80::1',
    'ff02::1',
    '2001:db8::1',
    '2001::7f00:1',
    '2002:7f00:1::',
  ])
    t.notOk(isPublicAddress(address), address)
})

function lookup(found: LookupAddress[] | Error, all: boolean): Promise<unknown> {
  const resolve = publicLookup((_name, _options, callback) =>
    found instanceof Error ? callback(found, []) : callback(null, found),
  )
  return new Promise((done, fail) =>
    resolve('push.example', { all }, (error, address, family) =>
      error ? fail(error) : done(family === undefined ? address : [address, family]),
    ),
  )
}

const GOOD = { address: '8.8.8.8', family: 4 }
const OWN = { address: '::1', family: 6 }

t.test('a name has its addresses, in either form that a socket asks for', async t => {
  const other = { address: '2606:4700::1111', family: 6 }
  t.same(await lookup([GOOD, other], true), [GOOD, other])
  t.same(await lookup([GOOD, other], false), ['8.8.8.8', 4])
})

t.test('a name with one address of the own network has none at all', async t => {
  for (const all of [true, false]) {
    const refusal = await lookup([GOOD, OWN], all).catch(error => error)
    t.ok(refusal instanceof AddressRefusedError)
    await t.rejects(lookup([], all), { message: 'no address' })
    await t.rejects(lookup(new Error('unknown'), all), { message: 'unknown' })
  }
})

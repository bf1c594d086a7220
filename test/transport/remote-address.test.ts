/** The address of a request: proxies count only as far as they are trusted, from the nearest outwards. */

import t from 'tap'
import { parseAddress, RemoteAddresses } from '../../src/transport/remote-address.ts'

const hex = (bytes: Uint8Array | undefined) =>
  bytes === undefined ? undefined : Buffer.from(bytes).toString('hex')

/** The client's address, in hexadecimal, of a request from `peer` with this X-Forwarded-For. */
function client(trustedProxies: string, peer: string, forwardedFor: string): string | undefined {
  const addresses = new RemoteAddresses(trustedProxies.split(','))
  return hex(addresses.clientBehind(parseAddress(peer)!, forwardedFor.split(',')))
}

t.test('an address is read in every form, and nothing else is', async t => {
  const forms: [string, string | undefined][] = [
    ['192.0.2.1', 'c0000201'],
    ['0.0.0.0', '00000000'],
    ['::', '0'.repeat(32)],
    ['::1', `${'0'.repeat(31)}1`],
    ['2001:db8::1', '20010db8000000000000000000000001'],
    ['2001:DB8:0:0:8:800:200C:417A', '20010db80000000000080800200c417a'],
    ['1:2:3:4:5:6:7::', '00010002000300040005000600070000'],
    ['::ffff:192.0.2.1', 'c0000201'],
    ['::ffff:c000:201', 'c0000201'],
    ['64:ff9b::192.0.2.1', '0064ff9b0000000000000000c0000201'],
  ]
  for (const [text, bytes] of forms) t.equal(hex(parseAddress(text)), bytes, text)
  const others = [
    '',
    'x',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '256.1.1.1',
    '1:2',
    ':::',
    'fe80::1%eth0',
    'unknown',
  ]
  t.same(
    others.filter(text => parseAddress(text) !== undefined),
    [],
  )
})

t.test('the client is the nearest address that is no trusted proxy', async t => {
  t.equal(client('10.0.0.0/8', '10.1.1.1', '192.0.2.1'), 'c0000201')
  t.equal(client('10.0.0.0/8', '10.1.1.1', '192.0.2.9, 192.0.2.1, 10.2.2.2'), 'c0000201')
  t.equal(client('10.1.1.1', '10.1.1.1', '10.2.2.2'), '0a020202', 'an address alone trusts only itself')
  t.equal(client('10.0.0.0/8', '192.0.2.7', '192.0.2.1'), 'c0000207', 'a stranger says what it likes')
  t.equal(client('10.0.0.0/8', '10.1.1.1', ''), '0a010101', 'no word of anybody')
  t.equal(client('0.0.0.0/0', '10.1.1.1', '1.1.1.1, 2.2.2.2'), '01010101', 'all trusted: the farthest')
})

t.test('ranges of IPv6 and mapped addresses count as well', async t => {
  const clientHex = '20010db8000000000000000000000005'
  t.equal(client('fd00::/8', 'fd12::1', '2001:db8::5'), clientHex)
  t.equal(client('::1', '::1', '2001:db8::5'), clientHex)
  t.equal(client('10.0.0.0/8', '::ffff:10.0.0.1', '192.0.2.1'), 'c0000201', 'a proxy on a dual-stack socket')
  t.equal(client('10.0.0.0/8,fd00::/8', 'fd12::1', '192.0.2.1, ::ffff:10.0.0.1'), 'c0000201')
})

t.test('an item may carry a port, in brackets for IPv6', async t => {
  t.equal(client('10.0.0.0/8', '10.1.1.1', '192.0.2.1:5000'), 'c0000201')
  t.equal(client('10.0.0.0/8', '10.1.1.1', '[::ffff:192.0.2.1]:5000'), 'c0000201')
  t.equal(client('10.0.0.0/8', '10.1.1.1', '[2001:db8::5]'), '20010db8000000000000000000000005')
})

t.test('an item that is no address ends the walk at its writer', async t => {
  for (const item of [
    'unknown',
    '',
    'a.b.c.d',
    '1.2.3.4:x',
    '[1.2.3',
    '"192.0.2.1"',
    '192.0.2.1 192.0.2.2',
  ]) {
    t.equal(client('10.0.0.0/8', '10.1.1.1', `192.0.2.1, ${item}`), '0a010101', item)
    t.equal(client('10.0.0.0/8', '10.1.1.1', `192.0.2.1, ${item}, 10.2.2.2`), '0a020202', item)
  }
})

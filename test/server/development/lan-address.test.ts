/** The address that a phone beside the machine uses. */

import type { NetworkInterfaceInfo } from 'node:os'
import t from 'tap'
import { chooseLanAddress } from '../../../src/server/development/lan-address.ts'

function on(address: string, internal = false): NetworkInterfaceInfo[] {
  const rest = { mac: '00:00:00:00:00:00', internal, netmask: '', cidr: null }
  return address.includes(':')
    ? [{ address, family: 'IPv6', scopeid: 0, ...rest }]
    : [{ address, family: 'IPv4', ...rest }]
}

t.test(
  'homes and offices come before everything else, and what containers and tunnels have last',
  async t => {
    const lo = on('127.0.0.1', true)
    const cases: [Parameters<typeof chooseLanAddress>[0], string | undefined][] = [
      [{ lo, en0: on('192.168.1.20') }, '192.168.1.20'],
      [{ docker0: on('172.17.0.1'), utun3: on('10.8.0.2'), en0: on('10.0.0.7') }, '10.0.0.7'],
      [{ en5: on('172.20.1.1'), en0: on('192.168.1.20') }, '192.168.1.20'],
      [{ eth0: on('203.0.113.5'), wlan0: on('10.1.2.3') }, '10.1.2.3'],
      [{ 'br-1a2b': on('192.168.96.1'), eth0: on('203.0.113.5') }, '203.0.113.5'],
      [{ lo, docker0: on('172.17.0.1') }, '172.17.0.1'],
      [{ lo, en0: on('169.254.3.3'), en1: on('fd00::2') }, undefined],
      [{ lo, en0: undefined }, undefined],
    ]
    for (const [interfaces, address] of cases)
      t.equal(chooseLanAddress(interfaces), address, JSON.stringify(address))
  },
)

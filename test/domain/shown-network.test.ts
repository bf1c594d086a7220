/** Networks of all widths, as an operator reads them. */
import t from 'tap'
import { countedNetworks, shownNetwork } from '../../src/domain/network.ts'

const shown = (...bytes: readonly number[]) =>
  countedNetworks(Buffer.from(bytes).toString('latin1')).map(({ name }) => shownNetwork(name))

t.test('an IPv4 address is itself, an IPv6 network all that it is part of', async t => {
  t.same(shown(203, 0, 113, 7), ['203.0.113.7'])
  t.same(shown(0x20, 0x01, 0x0d, 0xb8, 0xab, 0xcd, 0x12, 0x34), [
    '2001:db8:abcd:1234::/64',
    '2001:db8:abcd:1200::/56',
    '2001:db8:abcd::/48',
    '2001:db8:ab00::/40',
    '2001:db8::/32',
  ])
  t.same(shown(0x20, 0x01, 0, 0, 0, 0, 0, 0), [
    '2001::/64',
    '2001::/56',
    '2001::/48',
    '2001::/40',
    '2001::/32',
  ])
})

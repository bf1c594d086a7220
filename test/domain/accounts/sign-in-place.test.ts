/** How a sign-in's program and network are shown to the owner of the account. */

import fc from 'fast-check'
import t from 'tap'
import { networkPrefix, shownAgent } from '../../../src/domain/accounts/sign-in-place.ts'
import { networkOf, parseAddress } from '../../../src/transport/remote-address.ts'
import { checkProperty } from '../../support/property.ts'

t.test('usual agents stay as they are', async t => {
  for (const agent of [
    'okhttp/4.12.0',
    'Dalvik/2.1.0 (Linux; U; Android 14; Pixel 8 Build/UQ1A.240205.002)',
    'Calls/214 CFNetwork/1496.0.7 Darwin/23.5.0',
    'node',
    '',
  ]) {
    t.equal(shownAgent(agent), agent)
  }
})

t.test('an agent brings no link, no second line and no other writing direction into a mail', async t => {
  const table: [string, string][] = [
    ['see https://evil.example/now', 'see https//evil example/now'],
    ['www.Evil.Example', 'www Evil Example'],
    ['Calls\r\nYour account is safe', 'CallsYour account is safe'],
    ['a\u202eb\u200bc\u0000d\u{1f512}', 'abcd'],
    ['"><a href=x>y</a>', 'a href=xy/a'],
    ['  padded  ', 'padded'],
    ['x'.repeat(256), 'x'.repeat(80)],
  ]
  for (const [agent, shown] of table) t.equal(shownAgent(agent), shown)
})

t.test('any agent is shown in at most 80 printable characters', async t => {
  checkProperty(t, [fc.string({ unit: 'binary', maxLength: 300 })], agent => {
    const shown = shownAgent(agent)
    return /^[ !#-9;=?-~]{0,80}$/.test(shown) && shown.trim() === shown
  })
})

t.test('a network is shown by its first 24 or 48 bits', async t => {
  const table: [string, string][] = [
    ['203.0.113.77', '203.0.113.0/24'],
    ['0.0.0.0', '0.0.0.0/24'],
    ['2001:db8:7:9::1', '2001:db8:7::/48'],
    ['2001:db8::1', '2001:db8::/48'],
    ['2001:0:7::1', '2001:0:7::/48'],
    ['::1', '::/48'],
    ['::ffff:203.0.113.77', '203.0.113.0/24'],
  ]
  for (const [address, prefix] of table) t.equal(networkPrefix(networkOf(parseAddress(address)!)), prefix)
  t.equal(networkPrefix(''), undefined)
})

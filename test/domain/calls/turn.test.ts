/** Credentials for the relay against OpenSSL's HMAC, and addresses as RFC 7065 writes them. */

import t from 'tap'
import {
  developmentRelay,
  parseTurnUrl,
  turnAddresses,
  turnCredentials,
} from '../../../src/domain/calls/turn.ts'
import type { UserId } from '../../../src/domain/ids.ts'

const NOW_MS = 1_795_147_061_999
const USER = 9_007_199_254_740_991n as UserId

t.test('the name says until when and whose, the password is its MAC', async t => {
  // printf %s 1795190261:9007199254740991 | openssl dgst -sha1 -hmac north -binary | base64
  t.same(turnCredentials({ secrets: ['north'], lifetimeS: 43_200 }, USER, NOW_MS), {
    username: '1795190261:9007199254740991',
    password: 'nlTaWnzZ9p+bi49Q8686XBalgM8=',
    expiresAtMs: 1_795_190_261_000,
  })
})

t.test('the first secret signs, and users do not share credentials', async t => {
  const passwordOf = (secrets: [string, ...string[]], userId = USER) =>
    turnCredentials({ secrets, lifetimeS: 60 }, userId, NOW_MS).password
  t.equal(passwordOf(['north', 'south']), passwordOf(['north']))
  t.not(passwordOf(['south', 'north']), passwordOf(['north', 'south']))
  t.not(passwordOf(['north'], 2n as UserId), passwordOf(['north'], 1n as UserId))
  const { username } = turnCredentials(
    { secrets: ['north'], lifetimeS: 60 },
    (2n ** 64n - 1n) as UserId,
    NOW_MS,
  )
  t.equal(username, '1795147121:18446744073709551615')
})

t.test('a TURN URI is taken apart', async t => {
  t.same(parseTurnUrl('turn:turn.example.org'), {
    scheme: 'turn',
    authority: 'turn.example.org',
    transport: undefined,
  })
  t.same(parseTurnUrl('turns:turn.example.org:5349?transport=tcp'), {
    scheme: 'turns',
    authority: 'turn.example.org:5349',
    transport: 'tcp',
  })
  const good = [
    'turn:h',
    'turn:192.0.2.1:1',
    'turn:[2001:db8::1]:65535?transport=udp',
    'turns:[::1]',
    'turn:a-b.c:9',
  ]
  t.same(
    good.filter(text => parseTurnUrl(text) === undefined),
    [],
  )
})

t.test('a text that is no TURN URI is refused', async t => {
  const bad = [
    '',
    'turn:',
    'turn://turn.example.org',
    'stun:turn.example.org',
    'turn.example.org:3478',
    'TURN:h',
    'turn:h:',
    'turn:h:0',
    'turn:h:65536',
    'turn:h:123456',
    'turn:h:x',
    'turn:user@h',
    'turn:2001:db8::1',
    'turn:h?transport=sctp',
    'turn:h?transport=udp&x=1',
    'turn:h?x',
    'turn:h/path',
    'turn:h ',
    ' turn:h',
    'turn:h\n',
    'turn:-h',
    'turn:h-',
    'turn:[::1',
    'turn:a_b',
    'turn:a,turn:b',
    `turn:${'a'.repeat(300)}`,
  ]
  t.same(
    bad.filter(text => parseTurnUrl(text) !== undefined),
    [],
  )
})

t.test('of two addresses of a relay every way to it is known', async t => {
  const addressesOf = (plain: string, tls: string) => turnAddresses(parseTurnUrl(plain)!, parseTurnUrl(tls)!)
  const usual = {
    tlsUrl: 'turns:turn.example.org:5349?transport=tcp',
    noneTlsUrl: 'turn:turn.example.org:3478?transport=udp',
    uris: [
      'turn:turn.example.org:3478?transport=udp',
      'turn:turn.example.org:3478?transport=tcp',
      'turns:turn.example.org:5349?transport=tcp',
    ],
    stunUrl: 'stun:turn.example.org:3478',
  }
  t.same(
    addressesOf('turn:turn.example.org:3478?transport=udp', 'turns:turn.example.org:5349?transport=tcp'),
    usual,
  )
  t.same(addressesOf('turn:turn.example.org:3478', 'turns:turn.example.org:5349'), usual)
  t.same(addressesOf('turn:[::1]?transport=tcp', 'turns:h:443?transport=udp'), {
    tlsUrl: 'turns:h:443?transport=udp',
    noneTlsUrl: 'turn:[::1]?transport=tcp',
    uris: ['turn:[::1]?transport=tcp', 'turns:h:443?transport=udp'],
  })
})

t.test('development hands out addresses of the machine itself, and no STUN', async t => {
  const { addresses, secrets } = developmentRelay('192.0.2.7')
  const { stunUrl, ...others } = turnAddresses(
    parseTurnUrl('turn:192.0.2.7:3478')!,
    parseTurnUrl('turns:192.0.2.7:5349')!,
  )
  t.same(addresses, others)
  t.equal(secrets.length, 1)
})

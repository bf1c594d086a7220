/** Where requests to the operator's own services may go: by the setting, and by the address of the connection. */

import type { LookupAddress } from 'node:dns'
import t from 'tap'
import {
  faultOfOperatorUrl,
  faultOfWebhookUrl,
  operatorLookup,
  postToOperator,
} from '../../src/delivery/operator-url.ts'
import { startSmsGateway } from '../support/sms-gateway.ts'

const ALLOWED = [
  'https://hooks.example.org/callsign',
  'https://203.0.113.7:8443/',
  'https://10.0.0.7/',
  'http://127.0.0.1:3000/',
  'http://[::1]:3000/',
  'http://localhost/',
  'http://app.localhost/',
  'http://10.1.2.3/',
  'http://172.31.0.1/',
  'http://192.168.0.20:8080/x?y',
  'http://[fd12:3456::1]/',
  'http://backend:8080/',
  'http://backend.default.svc.cluster.local/',
  'http://hooks.corp.internal./',
  'http://printer.home.arpa/',
  'http://2130706433/',
]
const REFUSED = [
  '',
  'hooks.example.org',
  'ftp://hooks.example.org/',
  'http://hooks.example.org/',
  'http://localhost.example.org/',
  'http://203.0.113.7/',
  'http://172.32.0.1/',
  'http://100.64.0.1/',
  'http://[2001:db8::1]/',
  'http://[::ffff:203.0.113.7]/',
  ...['http', 'https'].flatMap(scheme =>
    [
      '169.254.169.254',
      '0xa9fea9fe',
      '[fe80::1]',
      '[::ffff:169.254.169.254]',
      '[64:ff9b::169.254.169.254]',
      '[fd00:ec2::254]',
      '100.100.100.200',
      '168.63.129.16',
      '0.0.0.0',
      '[::]',
      '255.255.255.255',
      'metadata.google.internal',
      'METADATA.google.internal.',
      'metadata',
    ].map(host => `${scheme}://${host}/`),
  ),
]

t.test('an address is judged when it is set', async t => {
  for (const url of ALLOWED) t.equal(faultOfOperatorUrl(url), undefined, url)
  for (const url of REFUSED) t.type(faultOfOperatorUrl(url), 'string', url)
  t.match(faultOfWebhookUrl('https://user:pass@hooks.example.org/'), /password/)
  t.match(faultOfWebhookUrl('https://hooks.example.org/#x'), /#/)
  t.equal(faultOfWebhookUrl('https://hooks.example.org/'), undefined)
})

/** The answer that a socket gets for a name with these addresses. */
function lookedUp(isPlain: boolean, name: string, ...addresses: string[]): Promise<LookupAddress[] | string> {
  const found = addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
  const lookup = operatorLookup(isPlain, (_, __, callback) => callback(null, found))
  return new Promise(resolve =>
    lookup(name, { all: true }, (error, result) =>
      resolve(error === null ? (result as LookupAddress[]) : `${(error as { reason?: string }).reason}`),
    ),
  )
}

t.test('a name is judged by its addresses, and the connection goes to one that was judged', async t => {
  const of = (address: string) => ({ address, family: address.includes(':') ? 6 : 4 })
  const [open, own, cloud] = ['203.0.113.7', '10.0.0.7', '169.254.169.254']
  t.same(await lookedUp(false, 'hooks.example.org', open, cloud, own), [of(open), of(own)])
  t.same(await lookedUp(true, 'backend', open, own, cloud, '::1'), [of(own), of('::1')])
  for (const [isPlain, addresses] of [
    [false, [cloud]],
    [false, ['fe80::7', '::ffff:169.254.169.254']],
    [true, [open]],
    [true, [cloud, '2001:db8::1']],
    [false, []],
  ] as const)
    t.equal(await lookedUp(isPlain, 'backend', ...addresses), 'address-not-allowed', addresses.join())
  t.equal(await lookedUp(false, 'metadata.google.internal', open), 'address-not-allowed')
  const single = operatorLookup(true, (_, __, callback) => callback(null, [of(cloud), of(own)]))
  single('backend', {}, (_, address, family) => t.same([address, family], [own, 4]))
  const failing = operatorLookup(true, (_, __, callback) => callback(new Error('no such name'), []))
  failing('backend', {}, error => t.match(error, { message: 'no such name' }))
})

t.test('a request goes to this machine, kept open or not, and nowhere that is refused', async t => {
  const receiver = await startSmsGateway()
  t.teardown(() => receiver.close())
  const asked = { headers: {}, body: '', timeoutMs: 60_000, answerBytesMax: 100 }
  for (const keepsConnection of [true, false]) {
    const localhost = receiver.url.replace('127.0.0.1', 'localhost')
    for (const url of [receiver.url, localhost])
      t.match(
        await postToOperator({ ...asked, url, keepsConnection }),
        { kind: 'answered', status: 200 },
        url,
      )
  }
  for (const url of REFUSED.filter(each => each !== ''))
    t.same(await postToOperator({ ...asked, url }), { kind: 'failed', reason: 'address-not-allowed' }, url)
  t.equal(receiver.requests.length, 4)
})

/**
 * What docs/calls.md and the pages around it say by name is there: destinations, messages, codes; and the construction
 * that docs/crypto.md prints is the one that is used, with the values that it gives.
 */

import { createECDH } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { EVENT_SCHEMAS } from '../../src/schema/event.ts'
import { parseDestination } from '../../src/stomp/destination.ts'
import { fingerprintOf, type OwnDevice, openCallKey, sealCallKey } from '../support/call-key.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const read = (name: string) => readFileSync(join(PROJECT_ROOT, 'docs', name), 'utf8')
const cryptoPage = read('crypto.md')
const page = read('calls.md')
const pages = ['calls.md', 'socket.md', 'push.md', 'protocol.md'].map(read).join('\n')
const errors = readFileSync(join(PROJECT_ROOT, 'src/errors.ts'), 'utf8')

t.test('the construction it prints is the one that the stories use', async t => {
  const [, printed = ''] = /^```ts\n([\s\S]+?)^```$/m.exec(cryptoPage) ?? []
  const used = readFileSync(join(PROJECT_ROOT, 'test/support/call-key.ts'), 'utf8')
  t.ok(printed.length > 1_000)
  t.ok(used.endsWith(printed))
})

async function deviceNamed(name: string): Promise<OwnDevice> {
  const keys = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits'])
  const point = new Uint8Array(await crypto.subtle.exportKey('raw', keys.publicKey))
  return { name, point, privateKey: keys.privateKey }
}

const BINDING = { callId: '6117204471893025', epoch: 1 }

t.test('a key is opened by the device it was sealed for, as coming from the one that sealed it', async t => {
  const [ann, bob, eve] = (await Promise.all(['1_1', '2_2', '3_3'].map(deviceNamed))) as [
    OwnDevice,
    OwnDevice,
    OwnDevice,
  ]
  const callKey = crypto.getRandomValues(new Uint8Array(32))
  const sealed = await sealCallKey(callKey, ann, bob, BINDING)
  const bytes = Buffer.from(sealed, 'base64')
  t.equal(bytes.length, 114)
  t.same(await openCallKey(sealed, ann, bob, BINDING), callKey)
  t.not(await sealCallKey(callKey, ann, bob, BINDING), sealed, 'another time it looks different')
  await t.rejects(openCallKey(sealed, ann, bob, { ...BINDING, callId: '7' }), 'for another call')
  await t.rejects(openCallKey(sealed, ann, bob, { ...BINDING, epoch: 2 }), 'for another epoch')
  await t.rejects(openCallKey(sealed, eve, bob, BINDING), 'from somebody else')
  await t.rejects(openCallKey(sealed, ann, eve, BINDING), 'for somebody else')
  await t.rejects(openCallKey(sealed, ann, { ...bob, name: '2_3' }, BINDING), 'for another device')
  await t.rejects(openCallKey(sealed, { ...ann, name: '1_2' }, bob, BINDING), 'by another name')
  const changed = (at: number, to: number) => {
    const octets = Uint8Array.from(bytes, (octet, index) => (index === at ? to : octet))
    return Buffer.from(octets).toString('base64')
  }
  await t.rejects(openCallKey(changed(100, bytes[100]! ^ 1), ann, bob, BINDING), 'changed on the way')
  await t.rejects(openCallKey(changed(0, 1), ann, bob, BINDING), 'of form 1')
  await t.rejects(openCallKey(changed(65, bytes[65]! ^ 1), ann, bob, BINDING), 'by a point off the curve')
  await t.rejects(openCallKey(changed(1, 6 + (bytes[65]! & 1)), ann, bob, BINDING), 'by a hybrid point')
  await t.rejects(openCallKey(bytes.subarray(0, 60).toString('base64'), ann, bob, BINDING), 'cut off')
  await t.rejects(sealCallKey(callKey, ann, { ...bob, point: new Uint8Array(65) }, BINDING), 'for zeros')
})

/** A device whose private key is this scalar, in hexadecimal. */
async function deviceOf(name: string, scalar: string): Promise<OwnDevice> {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(scalar, 'hex')
  const point = new Uint8Array(pair.getPublicKey())
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map(half =>
    Buffer.from(half).toString('base64url'),
  )
  const jwk = { kty: 'EC', crv: 'P-256', d: Buffer.from(scalar, 'hex').toString('base64url'), x: x!, y: y! }
  const ecdh = { name: 'ECDH', namedCurve: 'P-256' }
  return { name, point, privateKey: await crypto.subtle.importKey('jwk', jwk, ecdh, false, ['deriveBits']) }
}

t.test('the values it gives to try a construction with are true', async t => {
  const valueIn = (row: string) => new RegExp(`^\\| ${row}.*\`([^\`]+)\` \\|$`, 'm').exec(cryptoPage)![1]!
  const ann = await deviceOf('1_11', valueIn('sender \\| `1_11`'))
  const bob = await deviceOf('2_22', valueIn('receiver \\| `2_22`'))
  t.match(cryptoPage, `\`${Buffer.from(ann.point).toString('base64')}\``)
  t.match(cryptoPage, `\`${Buffer.from(bob.point).toString('base64')}\``)
  const callKey = await openCallKey(valueIn('sealed'), ann, bob, BINDING)
  t.equal(Buffer.from(callKey).toString('hex'), valueIn('call key'))
  t.equal(await fingerprintOf(callKey, '6117204471893025', 1), valueIn('fingerprint'))
})

t.test('every destination it names is one', async t => {
  const named = [...pages.matchAll(/['`](\/(?:user|topic|app|queue)\/[^'`\s]+)['`]/g)].map(
    ([, path]) => path!,
  )
  const destinations = new Set(
    named.map(path =>
      path
        .replace(/\$?\{callId\}/, '7')
        .replace('<name>', 't')
        .replace(/\$\{?queue\}?/, 'calls'),
    ),
  )
  t.ok(destinations.size > 7)
  const known = { userId: '1', isDevelopment: true }
  t.same(
    [...destinations].filter(path => typeof parseDestination(path, known) === 'string'),
    [],
  )
})

t.test('every code and message it names exists', async t => {
  const codes = [...page.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)].map(([, code]) => code!)
  t.ok(new Set(codes).size > 15)
  t.same(
    codes.filter(code => !errors.includes(`'${code}'`)),
    [],
  )
  const events = [...page.matchAll(/`((?:call|participant|key|host)_[a-z_]+)`/g)].map(([, type]) => type!)
  t.ok(new Set(events).size > 10)
  t.same(
    events.filter(type => !(type in EVENT_SCHEMAS) && type !== 'call_cancel'),
    [],
  )
})

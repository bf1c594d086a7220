/** What docs/calls.md says by name is there: destinations, messages, codes, and the construction that it prints. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { EVENT_SCHEMAS } from '../../src/schema/event.ts'
import { parseDestination } from '../../src/stomp/destination.ts'
import { type OwnDevice, openCallKey, sealCallKey } from '../support/call-key.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const page = readFileSync(join(PROJECT_ROOT, 'docs/calls.md'), 'utf8')
const errors = readFileSync(join(PROJECT_ROOT, 'src/errors.ts'), 'utf8')

t.test('the construction it prints is the one that the stories use', async t => {
  const [, printed = ''] = /^```ts\n([\s\S]+?)^```$/m.exec(page) ?? []
  const used = readFileSync(join(PROJECT_ROOT, 'test/support/call-key.ts'), 'utf8')
  t.ok(printed.length > 1_000)
  t.ok(used.endsWith(printed))
})

async function deviceNamed(name: string): Promise<OwnDevice> {
  const keys = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits'])
  const point = new Uint8Array(await crypto.subtle.exportKey('raw', keys.publicKey))
  return { name, point, privateKey: keys.privateKey }
}

t.test('a key is opened by the device it was sealed for, as coming from the one that sealed it', async t => {
  const [ann, bob, eve] = (await Promise.all(['1_1', '2_2', '3_3'].map(deviceNamed))) as [
    OwnDevice,
    OwnDevice,
    OwnDevice,
  ]
  const callKey = crypto.getRandomValues(new Uint8Array(32))
  const sealed = await sealCallKey(callKey, ann, bob)
  const bytes = Buffer.from(sealed, 'base64')
  t.equal(bytes.length, 113)
  t.same(await openCallKey(sealed, ann, bob), callKey)
  t.not(await sealCallKey(callKey, ann, bob), sealed, 'another time it looks different')
  await t.rejects(openCallKey(sealed, eve, bob), 'from somebody else')
  await t.rejects(openCallKey(sealed, ann, eve), 'for somebody else')
  await t.rejects(openCallKey(sealed, ann, { ...bob, name: '2_3' }), 'for another device')
  await t.rejects(openCallKey(sealed, { ...ann, name: '1_2' }, bob), 'by another name')
  bytes[100]! ^= 1
  await t.rejects(openCallKey(bytes.toString('base64'), ann, bob), 'changed on the way')
})

t.test('every destination it names is one', async t => {
  const named = [...page.matchAll(/['`](\/(?:user|topic|app|queue)\/[^'`\s]+)['`]/g)].map(([, path]) => path!)
  const destinations = new Set(named.map(path => path.replace('{callId}', '7').replace('<name>', 't')))
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

/** A drill's own client, which other ends have to understand: sealed keys, frames, tokens. */

import { constants, generateKeyPairSync, privateDecrypt, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Api } from '../../scripts/drill/api.ts'
import { DeviceKeys, fingerprintOf, keyHolder } from '../../scripts/drill/call-key.ts'
import { parseServerFrame } from '../../scripts/drill/stomp-frame.ts'
import { encodeFrame } from '../../src/stomp/serializer.ts'
import {
  fingerprintOf as documentedFingerprint,
  type OwnDevice,
  openCallKey,
  sealCallKey,
} from '../support/call-key.ts'

const CALL_KEY = Uint8Array.from(randomBytes(32))

async function documentedDevice(name: string): Promise<OwnDevice> {
  const keys = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits'])
  const point = new Uint8Array(await crypto.subtle.exportKey('raw', keys.publicKey))
  return { name, point, privateKey: keys.privateKey }
}

t.test('keys are sealed and opened as the documents say', async t => {
  const ours = new DeviceKeys()
  const theirs = await documentedDevice('3_4')
  const holder = { name: '3_4', key: Buffer.from(theirs.point) }
  const self = { name: '1_2', point: Uint8Array.from(ours.point) }
  t.same(await openCallKey(ours.seal(CALL_KEY, '1_2', holder), self, theirs), CALL_KEY)
  t.same(new Uint8Array(ours.open(await sealCallKey(CALL_KEY, theirs, self), '1_2', holder)), CALL_KEY)
  t.equal(fingerprintOf(CALL_KEY, '77', 2), await documentedFingerprint(CALL_KEY, '77', 2))
})

t.test('a key sealed by another user, or for another device, does not open', async t => {
  const [one, other, third] = [new DeviceKeys(), new DeviceKeys(), new DeviceKeys()]
  const sealed = one.seal(CALL_KEY, '1_1', { name: '2_2', key: other.point })
  t.same(other.open(sealed, '2_2', { name: '1_1', key: one.point }), Buffer.from(CALL_KEY))
  t.throws(() => other.open(sealed, '2_2', { name: '3_3', key: third.point }))
  t.throws(() => other.open(sealed, '2_3', { name: '1_1', key: one.point }))
  t.throws(() => third.open(sealed, '3_3', { name: '1_1', key: one.point }))
  t.throws(() => other.open(randomBytes(113).toString('base64'), '2_2', { name: '1_1', key: one.point }))
})

t.test('every encoding of a public key is understood, and RSA devices get OAEP', async t => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  for (const bytes of [spki, spki.subarray(-65)]) {
    const device = { publicKey: bytes.toString('base64'), keyAlgorithm: 'P-256' }
    t.same(keyHolder('1', '2', device).key, spki.subarray(-65))
  }
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  for (const type of ['spki', 'pkcs1'] as const) {
    const publicKey = rsa.publicKey.export({ type, format: 'der' }).toString('base64')
    const holder = keyHolder('1', '2', { publicKey, keyAlgorithm: 'RSA-2048' })
    const sealed = Buffer.from(new DeviceKeys().seal(CALL_KEY, '3_4', holder), 'base64')
    const padding = constants.RSA_PKCS1_OAEP_PADDING
    const opened = privateDecrypt({ key: rsa.privateKey, padding, oaepHash: 'sha256' }, sealed)
    t.same(new Uint8Array(opened), CALL_KEY)
  }
})

t.test('frames of the server are read as it writes them', async t => {
  const body = Buffer.from('{"name":"Ünal"}')
  const frame = parseServerFrame(encodeFrame('MESSAGE', ['destination', 'a:b\\c\nd'], '1.2', body))
  t.match(frame, { command: 'MESSAGE', body: '{"name":"Ünal"}' })
  t.equal(frame?.header('destination'), 'a:b\\c\nd')
  t.equal(frame?.header('absent'), undefined)
  t.equal(parseServerFrame(Buffer.from('\n')), undefined)
  t.throws(() => parseServerFrame(Buffer.from('MESSAGE\n\n')))
})

t.test('what is asked while the tokens are renewed is answered, too', async t => {
  let second: Promise<unknown> | undefined
  const server = createServer((request, response) => {
    const { url = '', headers } = request
    const refuse = (code: string) => response.writeHead(401).end(JSON.stringify({ code }))
    if (url === '/app/api/refresh-token') {
      // Answered once the other request has come.
      second = api.send('GET /second')
      server.once('second', () => response.end(renewed))
    } else {
      if (headers.authorization === 'Bearer new') response.end('{}')
      else refuse(headers.authorization === undefined ? 'TOKEN_MISSING' : 'TOKEN_EXPIRED')
      if (url === '/second') server.emit('second')
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close().closeAllConnections())
  const renewed = JSON.stringify({ accessToken: 'new', refreshToken: 'r2', expiresIn: 900 })
  const { port } = server.address() as AddressInfo
  const api = new Api({ url: () => `http://127.0.0.1:${port}`, stop: new AbortController().signal })
  api.take({ accessToken: 'old', refreshToken: 'r1', expiresIn: 900 })
  await t.resolves(api.send('GET /first'))
  await t.resolves(second!)
})

/** Parts of the simulator that other ends have to understand: sealed keys, frames, share links. */

import { constants, generateKeyPairSync, privateDecrypt, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Api } from '../../scripts/simulate/api.ts'
import { DeviceKeys, fingerprintOf, keyHolder } from '../../scripts/simulate/call-key.ts'
import { Figures } from '../../scripts/simulate/figures.ts'
import { Gate } from '../../scripts/simulate/gate.ts'
import { readSettings, shareTokenIn } from '../../scripts/simulate/settings.ts'
import { parseServerFrame } from '../../scripts/simulate/stomp-frame.ts'
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

t.test('a share link is as good as its token', async t => {
  const token = 'c_IWsU7NkrCKk7SB7xEgmSvA'
  for (const text of [
    token,
    `http://127.0.0.1:8080/c/${token}`,
    `callsign://c/${token}`,
    `https://a.b/c/${token}?x=1`,
  ]) {
    t.equal(shareTokenIn(text), token)
  }
  for (const text of ['', 'http://127.0.0.1:8080/', 'c-1', 'xc_1']) t.throws(() => shareTokenIn(text))
})

t.test('without options there is one person of each behaviour, and with --control none yet', async t => {
  t.match(readSettings({}), { pace: 1, behaviours: { length: 5 }, url: 'http://127.0.0.1:8080' })
  t.same(readSettings({ control: true }).behaviours, [])
  t.same(readSettings({ control: true, people: 'drop' }).behaviours, ['drop'])
})

t.test('so many go through a gate at a time', async t => {
  const gate = new Gate(2)
  const inside: (() => void)[] = []
  const passing = [1, 2, 3].map(() => gate.through(() => new Promise<void>(resolve => inside.push(resolve))))
  t.equal(inside.length, 2)
  inside[0]!()
  await passing[0]
  t.equal(inside.length, 3)
  for (const leave of inside) leave()
  await Promise.all(passing)
  await t.rejects(gate.through(() => Promise.reject(new Error('no'))))
  t.equal(await gate.through(async () => 7), 7)
})

t.test('latencies are those of the interval, or of all calls', async t => {
  const figures = new Figures()
  t.equal(figures.latency, undefined)
  for (let ms = 1; ms <= 100; ms++) figures.rang(ms)
  t.match(figures.takeLatency(), { p50: 50, p99: 99 })
  t.equal(figures.takeLatency(), undefined)
  t.match(figures.latency, { p50: 50, p99: 99 })
  figures.fail('wrong key')
  figures.fail('wrong key')
  t.equal(figures.failed, 2)
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

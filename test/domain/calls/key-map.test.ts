/** Checks of a device's sent keys (contract 4.4). */

import t from 'tap'
import type { CallRefused, SentKeyMap } from '../../../src/domain/calls/call-command.ts'
import type { KeySlice } from '../../../src/domain/calls/call-notice.ts'
import {
  digestOfKeys,
  type KeyMap,
  readKeyMap,
  refusalOfDevices,
  refusalOfKey,
} from '../../../src/domain/calls/key-map.ts'
import { deviceOf, keyFor, keysFor } from '../../support/call-driver.ts'

const UINT64_MAX = 18446744073709551615n

function textOf(bytes: number): string {
  return Buffer.alloc(bytes, 7).toString('base64')
}

function slicesOf(map: Record<string, string>): readonly KeySlice[] {
  const read = readKeyMap(map)
  if (read.kind === 'refused') throw new Error(read.detail)
  return read.slices
}

function codesOf(map: Record<string, string>): string[] {
  const read = readKeyMap(map)
  return read.kind === 'refused'
    ? [read.code, ...(read.errors ?? []).map(({ pointer, code }) => `${pointer} ${code}`)]
    : []
}

t.test('each entry becomes the slice of the device that it names', async t => {
  const devices = [deviceOf(1), deviceOf(2), deviceOf(2, 2)]
  t.same(
    slicesOf(keysFor(devices)),
    devices.map(device => ({
      userId: device.userId,
      deviceId: device.deviceId,
      encryptedAESKey: keyFor(device),
    })),
  )
})

t.test('ids may be any uint64', async t => {
  t.match(slicesOf({ [`0_${UINT64_MAX}`]: textOf(64) }), [{ userId: 0n, deviceId: UINT64_MAX }])
})

t.test('an entry named by anything but two ids is refused', async t => {
  const names = [
    '',
    '_',
    '1',
    '1_',
    '_1',
    '1_2_3',
    '01_2',
    '1_02',
    '-1_2',
    '+1_2',
    '1 _2',
    '1_2 ',
    '1-2',
    'a_b',
  ]
  const more = ['1_18446744073709551616', '1_1e3', '１_2', '__proto__', '1_2\n']
  for (const name of [...names, ...more]) {
    const map = Object.fromEntries([[name, textOf(64)]])
    t.same(codesOf(map), ['VALIDATION_FAILED', '/encryptedAESKeys FORMAT'], JSON.stringify(name))
  }
})

t.test('a key has 64 to 1024 bytes', async t => {
  const lengths = [0, 1, 31, 33, 63, 64, 113, 125, 256, 1023, 1024, 1025, 2000]
  const accepted = lengths.filter(length => codesOf({ '1_2': textOf(length) }).length === 0)
  t.same(accepted, [64, 113, 125, 256, 1023, 1024])
  t.same(codesOf({ '1_2': textOf(63) }), ['VALIDATION_FAILED', '/encryptedAESKeys/1_2 LENGTH'])
  t.same(codesOf({ '1_2': textOf(1025) }), ['VALIDATION_FAILED', '/encryptedAESKeys/1_2 LENGTH'])
  t.same(codesOf({ '1_2': 'x'.repeat(500_000) }), ['VALIDATION_FAILED', '/encryptedAESKeys/1_2 LENGTH'])
})

t.test('exactly 32 bytes are an unencrypted key', async t => {
  t.same(codesOf({ '1_2': textOf(32) }), ['PLAINTEXT_KEY_SUSPECTED', '/encryptedAESKeys/1_2 PLAINTEXT'])
  const among = { '1_1': textOf(64), '1_2': textOf(32), '1_3': textOf(32), '1_4': 'x' }
  t.same(codesOf(among)[0], 'PLAINTEXT_KEY_SUSPECTED', 'whatever else is wrong')
})

t.test('base64 is canonical', async t => {
  const text = textOf(64)
  const wrong = [
    text.replace(/=+$/, ''),
    `${text}\n`,
    ` ${text}`,
    `${text}=`,
    `${text.slice(0, -3)}h==`,
    text.replaceAll('B', '-'),
    `${text.slice(0, 20)} ${text.slice(20)}`,
    '!'.repeat(88),
  ]
  for (const value of wrong) {
    t.same(codesOf({ '1_2': value }), ['VALIDATION_FAILED', '/encryptedAESKeys/1_2 FORMAT'], value)
  }
})

t.test('two devices never have the same ciphertext', async t => {
  const map = { '1_1': textOf(64), '1_2': textOf(65), '2_1': textOf(64) }
  t.same(codesOf(map), ['VALIDATION_FAILED', '/encryptedAESKeys/2_1 DUPLICATE'])
})

t.test('every fault is named', async t => {
  const map = { '1_1': textOf(5), '1_2': textOf(65), x: textOf(64), '2_1': '?' }
  t.same(codesOf(map), [
    'VALIDATION_FAILED',
    '/encryptedAESKeys/1_1 LENGTH',
    '/encryptedAESKeys FORMAT',
    '/encryptedAESKeys/2_1 FORMAT',
  ])
})

t.test('a map has at most 320 entries', async t => {
  const keys = (count: number) => keysFor(Array.from({ length: count }, (_, at) => deviceOf(at + 1)))
  t.same(codesOf(keys(320)), [])
  t.same(codesOf(keys(321)), ['VALIDATION_FAILED', '/encryptedAESKeys TOO_MANY'])
})

t.test('a single key is held to the same rules', async t => {
  t.equal(refusalOfKey(textOf(113), '/encryptedAESKey'), undefined)
  t.match(refusalOfKey(textOf(32), '/encryptedAESKey'), { code: 'PLAINTEXT_KEY_SUSPECTED' })
  t.match(refusalOfKey('x', '/encryptedAESKey'), {
    code: 'VALIDATION_FAILED',
    errors: [{ pointer: '/encryptedAESKey', code: 'FORMAT' }],
  })
})

t.test('no refusal repeats a text sent as a key', async t => {
  const secret = textOf(32)
  const refusals = [readKeyMap({ '1_2': secret, x: secret }), refusalOfKey(secret, '/encryptedAESKey')]
  t.notOk(JSON.stringify(refusals).includes(secret))
})

t.test('the devices are exactly the required ones; optional ones may be there', async t => {
  const [first, second, optional, other] = [deviceOf(1), deviceOf(2), deviceOf(3), deviceOf(4)]
  const read = (...devices: (typeof first)[]) => readKeyMap(keysFor(devices)) as KeyMap
  const refusal = (...devices: (typeof first)[]) =>
    refusalOfDevices(read(...devices), [first, second], [optional]) as CallRefused | undefined
  t.equal(refusal(first, second), undefined)
  t.equal(refusal(second, optional, first), undefined)
  t.match(refusal(first), { code: 'DEVICE_LIST_MISMATCH', members: { missing: ['2_201'], extra: [] } })
  t.match(refusal(first, second, other), { members: { missing: [], extra: ['4_401'] } })
  t.match(refusal(other), { members: { missing: ['1_101', '2_201'], extra: ['4_401'] } })
  t.equal(refusalOfDevices(read(), [], []), undefined)
})

t.test('a device that is named twice is one', async t => {
  const [first, second, other] = [deviceOf(1), deviceOf(2), deviceOf(3)]
  const read = (...devices: (typeof first)[]) => readKeyMap(keysFor(devices)) as KeyMap
  t.equal(refusalOfDevices(read(first, second), [first, second, first], [second]), undefined)
  const members = { missing: [], extra: ['3_301'] }
  t.match(refusalOfDevices(read(first, other), [first, first], []), { members })
  t.match(refusalOfDevices(read(first, other), [first], [first]), { members })
})

t.test('a digest covers the whole map, in any order, and all that is said with it', async t => {
  const digest = (map: SentKeyMap, ...saidWith: string[]) =>
    Buffer.from(digestOfKeys(map, saidWith)).toString('hex')
  t.equal(digest({ a: 'x', b: 'y' }, '1'), digest({ b: 'y', a: 'x' }, '1'))
  const others = [
    digest({ a: 'x', b: 'y' }, '1'),
    digest({ a: 'x', b: 'y' }, '1', ''),
    digest({ a: 'x', b: 'z' }, '1'),
    digest({ a: 'x' }, '1'),
    digest({ a: 'x1 b1 y' }, '1'),
    digest({ 'a1 x1 b': 'y' }, '1'),
    digest({ a: '', b: 'xy' }, '1'),
  ]
  t.equal(new Set(others).size, others.length)
})

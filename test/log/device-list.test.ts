/** Device lists: the vectors, round trips, and that no octet may change. */
import t from 'tap'
import {
  deviceListHash,
  encodeDeviceList,
  judgeDeviceList,
  parseDeviceList,
  withLowS,
} from '../../src/log/device-list.ts'
import { isP256Point } from '../../src/log/p256.ts'
import { fromHex, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { type DeviceListVectors, deviceListVectors } from '../support/device-list-vectors.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { readVectors } from '../support/vectors.ts'

const vectors = readVectors<DeviceListVectors>('device-list')
const byName = new Map(vectors.lists.map(({ name, hex }) => [name, fromHex(hex)]))

function listOf(name: string): Uint8Array {
  return byName.get(name) ?? fromHex(name)
}

t.test('the vectors are those that their keys make', async t => {
  t.same(JSON.parse(JSON.stringify(deviceListVectors())), vectors)
})

t.test('lists are read, and come out again octet by octet', async t => {
  for (const { hex, sha256, user_id, seq, device_ids, signer_device_id } of vectors.lists) {
    const list = parseDeviceList(fromHex(hex))
    t.equal(toHex(encodeDeviceList(list)), hex)
    t.equal(toHex(deviceListHash(fromHex(hex))), sha256)
    t.equal(String(list.userId), user_id)
    t.equal(list.seq, seq)
    t.same(
      list.devices.map(({ deviceId }) => String(deviceId)),
      device_ids,
    )
    t.equal(String(list.signerDeviceId), signer_device_id)
  }
})

t.test('each list is judged as the vectors say', async t => {
  for (const { name, user_id, previous, next, verdict, reason } of vectors.judged) {
    const judged = judgeDeviceList(
      BigInt(user_id),
      previous === undefined ? undefined : listOf(previous),
      listOf(next),
    )
    t.equal(judged.kind, verdict, name)
    t.equal(judged.kind === 'refused' ? judged.reason : undefined, reason, name)
  }
})

t.test('a damaged list of before is an error of its keeper, not a verdict on the next list', async t => {
  const [before, next] = [listOf('first'), listOf('second adds the tablet')]
  const { userId } = parseDeviceList(next)
  for (const damaged of [before.with(0, 0), before.subarray(1), new Uint8Array()])
    t.equal(
      codeOf(() => judgeDeviceList(userId, damaged, next)),
      'MALFORMED',
    )
  t.equal(judgeDeviceList(userId, before.with(0, 0), next.with(0, 0)).kind, 'refused')
})

t.test('with any octet changed, a list is refused', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const accepted: string[] = []
  for (const { name, user_id, previous, next } of vectors.judged.slice(0, 6)) {
    const bytes = listOf(next)
    for (let at = 0; at < bytes.length; at++) {
      const changed = bytes.with(at, bytes[at]! ^ (1 + Math.floor(random() * 255)))
      const before = previous === undefined ? undefined : listOf(previous)
      if (judgeDeviceList(BigInt(user_id), before, changed).kind !== 'refused')
        accepted.push(`${name}: octet ${at}`)
    }
  }
  t.same(accepted, [], `seed ${seed}`)
})

t.test('octets put in, left out or moved make no list', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const accepted: number[] = []
  const [bytes, other] = [listOf('second adds the tablet'), listOf('ten devices')]
  for (let round = 0; round < 300; round++) {
    const from = Math.floor(random() * bytes.length)
    const length = 1 + Math.floor(random() * 200)
    const piece = other.slice(from, from + length)
    const changed = Buffer.concat([
      bytes.subarray(0, from),
      piece,
      bytes.subarray(from + Math.floor(random() * 200)),
    ])
    if (changed.equals(bytes)) continue
    if (judgeDeviceList(parseDeviceList(bytes).userId, listOf('first'), changed).kind !== 'refused')
      accepted.push(round)
  }
  t.same(accepted, [], `seed ${seed}`)
})

t.test('content that no list has is not encoded', async t => {
  const list = parseDeviceList(listOf('second adds the tablet'))
  for (const wrong of [
    { userId: -1n },
    { userId: 2n ** 64n },
    { seq: -1 },
    { devices: [] },
    { devices: [...list.devices].reverse() },
    { previousHash: new Uint8Array(31) },
    { signature: new Uint8Array(63) },
    { signerDeviceId: 5n },
  ]) {
    t.equal(
      codeOf(() => encodeDeviceList({ ...list, ...wrong })),
      'MALFORMED',
    )
  }
})

t.test('the higher s of a signature becomes the lower one', async t => {
  const low = listOf('second adds the tablet')
  const high = fromHex(vectors.judged.find(({ reason }) => reason === 'high-s')!.next)
  t.notSame(high, low)
  t.same(withLowS(high.slice(-64)), low.slice(-64))
  t.same(withLowS(low.slice(-64)), low.slice(-64))
})

t.test('a signing key is an uncompressed point on the curve', async t => {
  const key = parseDeviceList(listOf('first')).devices[0]!.signingKey
  t.ok(isP256Point(key))
  t.notOk(isP256Point(key.with(64, key[64]! ^ 1)))
  t.notOk(isP256Point(key.with(0, 2)))
  t.notOk(isP256Point(key.subarray(0, 64)))
  t.notOk(isP256Point(new Uint8Array(65).fill(0).with(0, 4)))
})

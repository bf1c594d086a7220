/** Declared sets of devices: their form, the names in them, and how two of them differ. */

import { createHash } from 'node:crypto'
import t from 'tap'
import {
  changesOfMembers,
  hashOfMembers,
  memberNames,
  readKeyMembers,
} from '../../../src/domain/calls/key-members.ts'
import { deviceOf, keysFor } from '../../support/call-driver.ts'
import { framed, memberEntry, memberOctets, membersOf, type NamedDevice } from '../../support/key-members.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'

const SENDER = deviceOf(1)
const [SECOND, THIRD] = [deviceOf(2), deviceOf(3)]
const MAP = keysFor([SECOND, THIRD])
const ALL = [SENDER, SECOND, THIRD]

/** The code of a refusal; undefined for a set that is taken. */
function faultOf(text: string, map: Readonly<Record<string, string>> = MAP): string | undefined {
  const read = readKeyMembers(text, map, SENDER)
  if (read.kind === 'key-members') return undefined
  t.match(read, { code: 'VALIDATION_FAILED', errors: [{ pointer: '/keyMembers' }] })
  return read.errors?.[0]?.code
}

function mapOf(devices: readonly NamedDevice[]): Readonly<Record<string, string>> {
  return Object.fromEntries(devices.map(({ userId, deviceId }) => [`${userId}_${deviceId}`, 'a key']))
}

t.test('a set of the devices of the map and the sender is taken as it is', async t => {
  const octets = memberOctets(ALL)
  t.same(readKeyMembers(octets.toString('base64'), MAP, SENDER), { kind: 'key-members', octets })
  t.same([...memberNames(octets)], ['1_101', '2_201', '3_301'])
  t.equal(faultOf(membersOf(ALL), keysFor(ALL)), undefined, 'a key for the sender changes nothing')
  t.equal(faultOf(membersOf([SENDER]), {}), undefined, 'a sender may be alone')
})

t.test('a set has one to 321 devices, and no octet besides', async t => {
  const most = Array.from({ length: 320 }, (_, at) => deviceOf(at + 2))
  t.equal(faultOf(membersOf([SENDER, ...most]), mapOf(most)), undefined)
  const more = [...most, deviceOf(900)]
  t.equal(faultOf(membersOf([SENDER, ...more]), mapOf(more)), 'LENGTH')
  t.equal(faultOf(Buffer.alloc(16_000).toString('base64')), 'LENGTH')
  const octets = memberOctets(ALL)
  const wrong = [
    Buffer.alloc(0),
    Buffer.alloc(1),
    framed([]),
    octets.subarray(0, -1),
    Buffer.concat([octets, Buffer.alloc(1)]),
    Buffer.concat([Buffer.from([0, 2]), octets.subarray(2)]),
    Buffer.concat([Buffer.from([0, 4]), octets.subarray(2)]),
  ]
  for (const each of wrong) t.equal(faultOf(each.toString('base64')), 'LENGTH')
})

t.test('a text that is no canonical base64 is refused', async t => {
  const text = membersOf(ALL)
  for (const wrong of [
    `${text}\n`,
    ` ${text}`,
    text.replace(/=+$/, ''),
    `${text}=`,
    'x',
    text.replace('A', '-'),
  ])
    t.equal(faultOf(wrong), 'FORMAT')
})

t.test('devices ascend as numbers, first by user, and none stands twice', async t => {
  const ids = [
    [9n, 5n],
    [10n, 4n],
    [10n, 40n],
    [10n, 2n ** 64n - 1n],
    [2n ** 63n, 1n],
  ].map(([userId, deviceId]) => ({ userId: userId!, deviceId: deviceId! }))
  const map = mapOf(ids)
  const entries = [SENDER, ...ids].map(device => memberEntry(device))
  t.equal(faultOf(framed(entries).toString('base64'), map), undefined)
  for (let at = 1; at < entries.length; at++) {
    const swapped = entries.with(at, entries[at - 1]!).with(at - 1, entries[at]!)
    t.equal(faultOf(framed(swapped).toString('base64'), map), 'ORDER')
    const doubled = entries.with(at, entries[at - 1]!)
    t.equal(faultOf(framed(doubled).toString('base64'), map), 'ORDER')
  }
  const twoKeys = framed([memberEntry(SENDER, 1), memberEntry(SENDER, 2), ...entries.slice(1)])
  t.equal(faultOf(twoKeys.toString('base64'), map), 'ORDER', 'not with two keys either')
})

t.test('a set that lacks a device of the map or the sender, or has an extra one, is refused', async t => {
  for (const devices of [
    [SENDER, SECOND],
    [SECOND, THIRD],
    [...ALL, deviceOf(4)],
    [SENDER, SECOND, deviceOf(4)],
    [SENDER, SECOND, deviceOf(3, 2)],
  ])
    t.equal(faultOf(membersOf(devices)), 'MISMATCH')
  t.equal(faultOf(membersOf([deviceOf(1, 2), SECOND, THIRD])), 'MISMATCH', 'another device of the sender')
})

t.test('the hash covers a line of its own and the octets', async t => {
  const octets = memberOctets(ALL)
  const expected = createHash('sha256').update('callsign call members v1\n').update(octets).digest()
  t.same(hashOfMembers(octets), expected)
})

t.test('a device with another key is removed and added', async t => {
  const after = framed([memberEntry(SENDER), memberEntry(SECOND, 1), memberEntry(THIRD)])
  t.same(changesOfMembers(memberOctets(ALL), after), {
    added: memberEntry(SECOND, 1),
    removed: ['2_201'],
  })
  t.same(changesOfMembers(after, after), { added: Buffer.alloc(0), removed: [] })
})

t.test('sets differ by the entries that one has and the other lacks', async t => {
  const random = randomFrom(seedOf())
  const devices = Array.from({ length: 12 }, (_, at) => deviceOf(at + 1))
  for (let run = 0; run < 500; run++) {
    const draw = () =>
      devices.filter(() => random() < 0.6).map(device => memberEntry(device, random() < 0.2 ? 1 : 0))
    const [before, after] = [draw(), draw()]
    const lacks = (entries: readonly Buffer[], entry: Buffer) => !entries.some(each => each.equals(entry))
    const { added, removed } = changesOfMembers(framed(before), framed(after))
    t.same(added, Buffer.concat(after.filter(entry => lacks(before, entry))))
    t.same(removed, [...memberNames(framed(before.filter(entry => lacks(after, entry))))])
  }
})

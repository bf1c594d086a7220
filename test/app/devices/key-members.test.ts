/** Sets of devices that a key is sealed for, against a naive version in hexadecimal. */

import { createHash } from 'node:crypto'
import t from 'tap'
import { type KeyHolder, keyHolder } from '../../../src/app/devices/call-key.ts'
import { changedSet, hashOfSet, keyMembersOf, readKeyMembers } from '../../../src/app/devices/key-members.ts'
import { fromHex, toHex } from '../../support/bytes.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'

const random = randomFrom(seedOf())
const below = (end: number) => Math.floor(random() * end)
const shuffled = <Item>(items: readonly Item[]) =>
  items
    .map(item => ({ item, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)

/** Ids whose decimal and binary order differ, some of them the largest. */
const IDS = ['1', '2', '9', '10', '255', '256', `${2n ** 53n - 1n}`, `${2n ** 63n}`, `${2n ** 64n - 1n}`]
const ALL = IDS.flatMap(userId => IDS.map(deviceId => holderOf(userId, deviceId)))

function holderOf(userId: string, deviceId: string, key = `${userId} ${deviceId}`): KeyHolder {
  const publicKey = createHash('sha512').update(key).digest('base64')
  return keyHolder(userId, deviceId, publicKey)
}

function someHolders(max: number): KeyHolder[] {
  return shuffled(ALL).slice(0, 1 + below(max))
}

function entryOf({ userId, deviceId, keyHash }: KeyHolder): string {
  const id = (decimal: string) => BigInt(decimal).toString(16).padStart(16, '0')
  return id(userId) + id(deviceId) + toHex(keyHash)
}

/** The set of these entries as they stand, in base64. */
function textOf(entries: readonly string[], count = entries.length): string {
  return Buffer.from(fromHex(count.toString(16).padStart(4, '0') + entries.join(''))).toString('base64')
}

const naiveSet = (holders: readonly KeyHolder[]) => textOf(holders.map(entryOf).toSorted())

t.test('devices in any order make the same set, and come out again by user and device', async t => {
  for (let round = 0; round < 200; round++) {
    const holders = someHolders(20)
    const keyMembers = keyMembersOf(holders)
    t.equal(keyMembers, naiveSet(holders))
    const members = readKeyMembers(keyMembers)
    const before = (one: KeyHolder, other: KeyHolder) => (entryOf(one) < entryOf(other) ? -1 : 1)
    const inOrder = holders.toSorted(before)
    t.same(
      members,
      inOrder.map(({ userId, name, keyHash }) => ({ userId, name, keyHash })),
    )
  }
})

t.test('the hash is of all octets of the set', async t => {
  const holders = someHolders(5)
  const set = Buffer.from(naiveSet(holders), 'base64')
  const digest = createHash('sha256').update('callsign call members v1\n').update(set).digest('hex')
  t.equal(toHex(hashOfSet(keyMembersOf(holders))), digest)
  const [first, ...others] = holders as [KeyHolder, ...KeyHolder[]]
  const otherKey = [holderOf(first.userId, first.deviceId, 'another key'), ...others]
  t.not(toHex(hashOfSet(keyMembersOf(otherKey))), digest, 'also of the keys')
})

t.test('a set has each device once, in one order, and nothing else', async t => {
  const [one, other] = [holderOf('1', '1'), holderOf('1', '2')]
  const entries = [one, other].map(entryOf)
  t.same(readKeyMembers(textOf(entries)).length, 2)
  const otherKey = holderOf('1', '1', 'another key')
  const sets = {
    'in another order': textOf(entries.toReversed()),
    'with a device twice': textOf([entries[0]!, ...entries]),
    'with a device twice, by two keys': textOf([one, otherKey].map(entryOf).toSorted()),
    'of none': textOf([]),
    'of more than it says': textOf(entries, 1),
    'of fewer than it says': textOf(entries, 3),
    'an octet longer': textOf([...entries, '00'], 2),
    'cut off': textOf([entries[0]!, entries[1]!.slice(2)], 2),
    'of no octets': '',
    'of one octet': 'AA==',
    'no base64': '?',
    'a base64 of two spellings': `${textOf(entries)} `,
  }
  for (const [what, set] of Object.entries(sets)) t.throws(() => readKeyMembers(set), what)
  for (const holders of [[one, one], [one, otherKey], []])
    t.throws(() => keyMembersOf(holders), RangeError, `made of ${holders.length}`)
})

t.test('a set has at most 321 devices', async t => {
  const holders = Array.from({ length: 322 }, (_, at) => holderOf('7', `${at}`))
  t.equal(readKeyMembers(keyMembersOf(holders.slice(1))).length, 321)
  t.throws(() => keyMembersOf(holders), RangeError)
  t.throws(() => readKeyMembers(naiveSet(holders)), RangeError)
})

t.test('a change makes of one set the other', async t => {
  for (let round = 0; round < 200; round++) {
    const [before, after] = [someHolders(12), someHolders(12)]
    const added = after.filter(one => !before.includes(one))
    const removed = before.filter(one => !after.includes(one)).map(({ name }) => name)
    const change = { added: Buffer.from(fromHex(added.map(entryOf).join(''))).toString('base64'), removed }
    t.equal(changedSet(keyMembersOf(before), change), keyMembersOf(after))
  }
})

t.test('a device with a changed key is removed and added', async t => {
  const [old, now, other] = [holderOf('1', '1'), holderOf('1', '1', 'another key'), holderOf('2', '2')]
  const added = Buffer.from(fromHex(entryOf(now))).toString('base64')
  const before = keyMembersOf([old, other])
  t.equal(changedSet(before, { added, removed: ['1_1'] }), keyMembersOf([now, other]))
  t.throws(() => changedSet(before, { added, removed: [] }), RangeError, 'else it would come twice')
})

t.test('a change that leaves no set is refused', async t => {
  const before = keyMembersOf([holderOf('1', '1')])
  const half = Buffer.alloc(47).toString('base64')
  t.throws(() => changedSet(before, { added: half, removed: [] }), RangeError)
  t.throws(() => changedSet(before, { added: '', removed: ['1_1'] }), RangeError, 'with nobody left')
  t.throws(() => changedSet('', { added: '', removed: [] }), RangeError, 'of what is no set')
  t.equal(changedSet(before, { added: '', removed: ['2_2'] }), before, 'who was not in it can go')
})

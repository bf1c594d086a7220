/**
 * The set of devices that a call's key is sealed for (docs/check/crypto.md). Its hash is sealed with the key, so each device
 * learns who else has it.
 */

import { sha256 } from '@noble/hashes/sha2.js'
import { decodeBase64, encodeBase64 } from '../../log/base64.ts'
import type { Bytes, KeyHolder } from './call-key.ts'
import { concat } from './octets.ts'

/** A device in a set. */
export interface KeyMember {
  readonly userId: string
  /** `<userId>_<deviceId>` */
  readonly name: string
  /** SHA-256 of its logged public key: a name may have had another key before. */
  readonly keyHash: Bytes
}

/** How a set differs from the one before, as `key_update` tells it. */
export interface SetChange {
  /** Entries of the set, base64. */
  readonly added: string
  /** Names. */
  readonly removed: readonly string[]
}

/** Where a set may be found; whether it is the one, its hash says. */
export interface SetHints {
  readonly sets: readonly string[]
  /** To one of these. */
  readonly change?: SetChange
}

/** A set as it travels: the base64 of its octets. Throws `RangeError` for a name that comes twice or is none. */
export function keyMembersOf(holders: readonly KeyHolder[]): string {
  return setOf(holders.map(entryOf))
}

/** The devices in a set. Throws `RangeError` for any other text. */
export function readKeyMembers(keyMembers: string): readonly KeyMember[] {
  return entriesOf(checkedSet(decodeBase64(keyMembers))).map(memberOf)
}

/** 32 octets. Throws `RangeError` for any other text. */
export function hashOfSet(keyMembers: string): Bytes {
  return Uint8Array.from(sha256(concat(PURPOSE, checkedSet(decodeBase64(keyMembers)))))
}

/** The set after a change. Throws `RangeError` where it can't be applied. */
export function changedSet(keyMembers: string, { added, removed }: SetChange): string {
  const octets = decodeBase64(added)
  if (octets.length % ENTRY_BYTES !== 0) throw new RangeError('what was added is no list of devices')
  const isLeft = (entry: Bytes) => !removed.includes(memberOf(entry).name)
  const left = entriesOf(checkedSet(decodeBase64(keyMembers))).filter(isLeft)
  return setOf([...left, ...chunksOf(octets)])
}

function setOf(entries: readonly Bytes[]): string {
  const count = Uint8Array.of(entries.length >> 8, entries.length & 255)
  return encodeBase64(checkedSet(concat(count, ...entries.toSorted(compareEntries))))
}

function entryOf({ userId, deviceId, keyHash }: KeyHolder): Bytes {
  const entry = new Uint8Array(ENTRY_BYTES)
  const view = new DataView(entry.buffer)
  view.setBigUint64(0, BigInt(userId))
  view.setBigUint64(8, BigInt(deviceId))
  entry.set(keyHash, NAME_BYTES)
  return entry
}

function memberOf(entry: Bytes): KeyMember {
  const view = new DataView(entry.buffer, entry.byteOffset)
  const userId = `${view.getBigUint64(0)}`
  return { userId, name: `${userId}_${view.getBigUint64(8)}`, keyHash: entry.slice(NAME_BYTES) }
}

/** Throws unless the octets are a set in its one order. */
function checkedSet(octets: Uint8Array): Bytes {
  const set = Uint8Array.from(octets)
  const count = (set[0] ?? 0) * 256 + (set[1] ?? 0)
  if (count === 0 || count > MEMBERS_MAX || set.length !== 2 + count * ENTRY_BYTES)
    throw new RangeError(`${set.length} octets are no set of devices`)
  const entries = entriesOf(set)
  const isInOrder = entries.every((entry, at) => at === 0 || compareEntries(entries[at - 1]!, entry) < 0)
  if (!isInOrder) throw new RangeError('the devices of a set are not in their order')
  return set
}

function entriesOf(set: Bytes): Bytes[] {
  return chunksOf(set.subarray(2))
}

function chunksOf(octets: Uint8Array): Bytes[] {
  const count = octets.length / ENTRY_BYTES
  return Array.from({ length: count }, (_, at) =>
    Uint8Array.from(octets.subarray(at * ENTRY_BYTES, (at + 1) * ENTRY_BYTES)),
  )
}

/** By user, then by device. */
function compareEntries(one: Bytes, other: Bytes): number {
  const at = one.findIndex((octet, at) => at < NAME_BYTES && octet !== other[at])
  return at < 0 ? 0 : one[at]! - other[at]!
}

const PURPOSE = new TextEncoder().encode('callsign call members v1\n')
const [NAME_BYTES, ENTRY_BYTES] = [16, 48]
/** Those of a key map, and the sender. */
const MEMBERS_MAX = 321

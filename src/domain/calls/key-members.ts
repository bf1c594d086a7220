/**
 * The devices that an epoch's key is sealed for, as the sealer declares them: `n u16 ‖ n x (userId u64 ‖ deviceId u64 ‖
 * SHA-256 of the public key 32)`, big-endian, ascending by userId, then deviceId. The server checks form and names;
 * devices check the key hashes.
 */

import { createHash } from 'node:crypto'
import type { FieldError } from '../../errors.ts'
import type { CallDeviceRef, KeySet } from './call.ts'
import { type CallRefused, refused, type SentKeyMap } from './call-command.ts'
import { ENTRIES_MAX, keyMapName } from './key-map.ts'

/** A set of the right form. */
export interface KeyMembers {
  readonly kind: 'key-members'
  readonly octets: Uint8Array
}

/** The set that a text stands for; its names must be those of the map and the sender's. */
export function readKeyMembers(
  text: string,
  map: SentKeyMap,
  sender: CallDeviceRef,
): KeyMembers | CallRefused {
  // Before anything of its length is decoded.
  if (text.length > MEMBERS_CHARS_MAX) return refusedMembers(WRONG_LENGTH)
  const octets = Buffer.from(text, 'base64')
  if (octets.toString('base64') !== text) return refusedMembers(NOT_BASE64)
  const fault = faultOfForm(octets) ?? faultOfNames(octets, map, keyMapName(sender))
  return fault === undefined ? { kind: 'key-members', octets } : refusedMembers(fault)
}

/** Why this text, sent with the present epoch's key, is not the epoch's kept set. */
export function refusalOfOtherMembers(text: string, kept: KeySet | undefined): CallRefused | undefined {
  const isKept = kept !== undefined && bufferOf(kept.members).toString('base64') === text
  return isKept ? undefined : refusedMembers(NOT_KEPT)
}

/** The devices' names, as a map of keys has them. */
export function* memberNames(octets: Uint8Array): Generator<string> {
  const set = bufferOf(octets)
  for (let at = COUNT_BYTES; at < set.length; at += ENTRY_BYTES) yield nameAt(set, at)
}

/** SHA-256, as sealed keys and `key_update` have it. */
export function hashOfMembers(octets: Uint8Array): Uint8Array {
  return createHash('sha256').update(HASH_PREFIX).update(octets).digest()
}

export interface MemberChanges {
  /** Whole entries, ascending. */
  readonly added: Uint8Array
  /** Names. */
  readonly removed: readonly string[]
}

/** Entries of one set that the set before lacks, and vice versa: a device with another key counts as both. */
export function changesOfMembers(before: Uint8Array, after: Uint8Array): MemberChanges {
  const [old, present] = [bufferOf(before), bufferOf(after)]
  const added: Uint8Array[] = []
  const removed: string[] = []
  let [oldAt, at] = [COUNT_BYTES, COUNT_BYTES]
  while (oldAt < old.length || at < present.length) {
    const order = orderOf(old, oldAt, present, at)
    const isSame = order === 0 && isSameEntry(old, oldAt, present, at)
    if (!isSame && order <= 0) removed.push(nameAt(old, oldAt))
    if (!isSame && order >= 0) added.push(present.subarray(at, at + ENTRY_BYTES))
    if (order <= 0) oldAt += ENTRY_BYTES
    if (order >= 0) at += ENTRY_BYTES
  }
  return { added: Buffer.concat(added), removed }
}

/** By name; a set that is at its end comes last. */
function orderOf(old: Buffer, oldAt: number, present: Buffer, at: number): number {
  if (oldAt >= old.length) return 1
  if (at >= present.length) return -1
  return compareNames(old, oldAt, present, at)
}

function faultOfForm(set: Buffer): MemberFault | undefined {
  const count = set.length < COUNT_BYTES ? 0 : set.readUInt16BE(0)
  const isOfLength = count >= 1 && count <= MEMBERS_MAX && set.length === COUNT_BYTES + count * ENTRY_BYTES
  if (!isOfLength) return WRONG_LENGTH
  for (let at = COUNT_BYTES + ENTRY_BYTES; at < set.length; at += ENTRY_BYTES) {
    if (compareNames(set, at - ENTRY_BYTES, set, at) >= 0) return WRONG_ORDER
  }
  return undefined
}

/** No name stands twice in the set, so equal counts are equal names. */
function faultOfNames(set: Buffer, map: SentKeyMap, senderName: string): MemberFault | undefined {
  const count = Object.keys(map).length + (Object.hasOwn(map, senderName) ? 0 : 1)
  if (set.length !== COUNT_BYTES + count * ENTRY_BYTES) return WRONG_NAMES
  for (const name of memberNames(set)) {
    if (name !== senderName && !Object.hasOwn(map, name)) return WRONG_NAMES
  }
  return undefined
}

function nameAt(set: Buffer, at: number): string {
  return `${set.readBigUInt64BE(at)}_${set.readBigUInt64BE(at + 8)}`
}

function compareNames(one: Buffer, oneAt: number, other: Buffer, otherAt: number): number {
  return one.compare(other, otherAt, otherAt + NAME_BYTES, oneAt, oneAt + NAME_BYTES)
}

function isSameEntry(one: Buffer, oneAt: number, other: Buffer, otherAt: number): boolean {
  return one.compare(other, otherAt, otherAt + ENTRY_BYTES, oneAt, oneAt + ENTRY_BYTES) === 0
}

/** The same memory. */
function bufferOf(octets: Uint8Array): Buffer {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.length)
}

function refusedMembers(fault: MemberFault): CallRefused {
  const errors = [{ pointer: '/keyMembers', ...fault }]
  return refused('VALIDATION_FAILED', 'the key members break a rule', { errors })
}

type MemberFault = Omit<FieldError, 'pointer'>

const COUNT_BYTES = 2
const NAME_BYTES = 16
const ENTRY_BYTES = NAME_BYTES + 32
/** A key map's entries and the sender. */
const MEMBERS_MAX = ENTRIES_MAX + 1
const MEMBERS_CHARS_MAX = 4 * Math.ceil((COUNT_BYTES + MEMBERS_MAX * ENTRY_BYTES) / 3)
const HASH_PREFIX = 'callsign call members v1\n'

const NOT_BASE64 = { code: 'FORMAT', detail: 'not canonical base64' }
const WRONG_LENGTH = {
  code: 'LENGTH',
  detail: `a set has ${COUNT_BYTES} bytes and ${ENTRY_BYTES} for each of 1 to ${MEMBERS_MAX} devices`,
}
const WRONG_ORDER = { code: 'ORDER', detail: 'not ascending by user and device, each device once' }
const WRONG_NAMES = { code: 'MISMATCH', detail: 'not the devices of the keys and the sender' }
const NOT_KEPT = { code: 'MISMATCH', detail: 'not the set of this epoch' }

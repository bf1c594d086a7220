/** The form of a call's people and their devices in its sealed rows. See `call-form.ts`. */

import type {
  Attendance,
  CallDevice,
  CallDeviceRef,
  KnownInviter,
  Participant,
  ParticipantState,
} from '../../domain/calls/call.ts'
import type { KeyAlgorithm } from '../../domain/devices/public-key.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { type OctetReader, type OctetWriter, readList, Words, writeList } from '../tables/octets.ts'

export function writeParticipant(to: OctetWriter, participant: Participant): void {
  writeList(to, participant.devices, writeDevice)
  writePerson(to, participant)
}

export function readParticipant(from: OctetReader): Participant {
  return readPerson(from, readList(from, readDevice))
}

/** How many there are, and each that differs, with its place; devices where they differ. */
export function writeChangedPeople(
  to: OctetWriter,
  before: readonly Participant[],
  after: readonly Participant[],
): void {
  to.uint16(after.length)
  for (let at = 0; at < after.length; at++) {
    const [was, is] = [before[at], after[at]!]
    if (was === is) continue
    to.uint16(at)
    const hasSameDevices = was?.devices === is.devices
    to.flag(!hasSameDevices)
    if (!hasSameDevices) writeList(to, is.devices, writeDevice)
    writePerson(to, is)
  }
  to.uint16(NO_PLACE)
}

export function readChangedPeople(from: OctetReader, before: readonly Participant[]): readonly Participant[] {
  const after = before.slice(0, from.uint16())
  for (let at = from.uint16(); at !== NO_PLACE; at = from.uint16()) {
    const devices = from.flag() ? readList(from, readDevice) : before[at]!.devices
    after[at] = readPerson(from, devices)
  }
  return after
}

/** A participant without the devices, which have long keys. */
function writePerson(to: OctetWriter, person: Omit<Participant, 'devices'>): void {
  const { inviter, attendance } = person
  to.uint64(person.userId)
  to.text(person.displayName)
  STATES.write(to, person.state)
  to.uint64(person.invitedBy)
  to.float64(person.invitedAtMs)
  if (to.isThere(inviter)) {
    to.flag(inviter.isContact)
    if (to.isThere(inviter.alias)) to.text(inviter.alias)
  }
  to.flag(person.isVideo)
  to.flag(person.isOnGoing)
  if (to.isThere(attendance)) writeAttendance(to, attendance)
  if (to.isThere(person.joinedAtMs)) to.float64(person.joinedAtMs)
  if (to.isThere(person.leftAtMs)) to.float64(person.leftAtMs)
  to.float64(person.talkedMs)
  if (to.isThere(person.declinedOn)) to.uint64(person.declinedOn)
  to.flag(person.isWithheld ?? false)
}

function readPerson(from: OctetReader, devices: readonly CallDevice[]): Participant {
  // No member comes after a spread, which V8 takes ten times as long for.
  const person: Participant = {
    userId: from.uint64() as UserId,
    displayName: from.text(),
    state: STATES.read(from),
    invitedBy: from.uint64() as UserId,
    invitedAtMs: from.float64(),
    inviter: from.flag() ? readInviter(from) : undefined,
    isVideo: from.flag(),
    isOnGoing: from.flag(),
    devices,
    attendance: from.flag() ? readAttendance(from) : undefined,
    joinedAtMs: from.flag() ? from.float64() : undefined,
    leftAtMs: from.flag() ? from.float64() : undefined,
    talkedMs: from.float64(),
    declinedOn: from.flag() ? (from.uint64() as DeviceId) : undefined,
  }
  return from.flag() ? { ...person, isWithheld: true } : person
}

function readInviter(from: OctetReader): KnownInviter {
  const isContact = from.flag()
  return from.flag() ? { isContact, alias: from.text() } : { isContact }
}

function writeDevice(to: OctetWriter, { deviceId, encryptedAESKey, sealedBy }: CallDevice): void {
  to.uint64(deviceId)
  if (to.isThere(encryptedAESKey)) to.base64(encryptedAESKey)
  if (to.isThere(sealedBy)) writeRef(to, sealedBy)
}

function readDevice(from: OctetReader): CallDevice {
  return {
    deviceId: from.uint64() as DeviceId,
    encryptedAESKey: from.flag() ? from.base64() : undefined,
    sealedBy: from.flag() ? readRef(from) : undefined,
  }
}

function writeAttendance(to: OctetWriter, attendance: Attendance): void {
  to.uint64(attendance.deviceId)
  to.text(attendance.publicKeyHash)
  ALGORITHMS.write(to, attendance.keyAlgorithm)
  to.flag(attendance.isOnline)
  to.flag(attendance.hadSocket)
  to.float64(attendance.seenAtMs)
  if (to.isThere(attendance.admittedAtMs)) to.float64(attendance.admittedAtMs)
  if (to.isThere(attendance.feedIds)) writeList(to, attendance.feedIds, writeFeed)
}

function readAttendance(from: OctetReader): Attendance {
  const attendance: Attendance = {
    deviceId: from.uint64() as DeviceId,
    publicKeyHash: from.text(),
    keyAlgorithm: ALGORITHMS.read(from),
    isOnline: from.flag(),
    hadSocket: from.flag(),
    seenAtMs: from.float64(),
  }
  const admitted = from.flag() ? { ...attendance, admittedAtMs: from.float64() } : attendance
  return from.flag() ? { ...admitted, feedIds: readList(from, readFeed) } : admitted
}

function writeFeed(to: OctetWriter, feedId: number): void {
  to.float64(feedId)
}

function readFeed(from: OctetReader): number {
  return from.float64()
}

export function writeRef(to: OctetWriter, { userId, deviceId }: CallDeviceRef): void {
  to.uint64(userId)
  to.uint64(deviceId)
}

export function readRef(from: OctetReader): CallDeviceRef {
  return { userId: from.uint64() as UserId, deviceId: from.uint64() as DeviceId }
}

export const STATE_NUMBERS: Readonly<Record<ParticipantState, number>> = {
  invited: 0,
  ringing: 1,
  joined: 2,
  left: 3,
  lost: 4,
  declined: 5,
  busy: 6,
  missed: 7,
  removed: 8,
}
const STATES = new Words(STATE_NUMBERS)
const ALGORITHMS = new Words<KeyAlgorithm>({ 'P-256': 0, 'RSA-2048': 1 })
/** More people than a call ever has. */
const NO_PLACE = 0xffff

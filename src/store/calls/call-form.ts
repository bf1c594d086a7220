/**
 * The form of a call in its sealed rows: whole, or as the changes from one call to the next. A call shares by reference
 * all that a change leaves alone, so the changes are found by comparing references.
 *
 * Stored rows have the order of this file: a change to it raises `STORE_FORM`.
 */

import type {
  Call,
  CallEndReason,
  CallMoment,
  CallStatus,
  KeySet,
  MomentKind,
  Quiet,
  RejoinAsk,
  SentKeys,
} from '../../domain/calls/call.ts'
import type { CallId, DeviceId, UserId } from '../../domain/ids.ts'
import { OctetReader, OctetWriter, readList, Words, writeList } from '../tables/octets.ts'
import {
  readChangedPeople,
  readParticipant,
  readRef,
  STATE_NUMBERS,
  writeChangedPeople,
  writeParticipant,
  writeRef,
} from './participant-form.ts'

export function packCall(call: Call): Uint8Array {
  const to = WRITER.begin()
  writeOrigin(to, call)
  writeState(to, call)
  writeKeys(to, call)
  writeList(to, call.rejoinAsks, writeAsk)
  writeList(to, call.participants, writeParticipant)
  writeList(to, call.timeLine, writeMoment)
  return to.taken()
}

export function unpackCall(octets: Uint8Array): Call {
  const from = new OctetReader(octets)
  const origin = readOrigin(from)
  const state = readState(from)
  const keys = readKeys(from)
  // Three spreads took twice as long as all the rest.
  return {
    callId: origin.callId,
    version: state.version,
    roomId: state.roomId,
    isRoomNamed: origin.isRoomNamed,
    gateway: state.gateway,
    status: state.status,
    isVideo: origin.isVideo,
    initiatorId: origin.initiatorId,
    hostUserId: state.hostUserId,
    createdAtMs: origin.createdAtMs,
    startedAtMs: state.startedAtMs,
    endedAtMs: state.endedAtMs,
    endReason: state.endReason,
    endedBy: state.endedBy,
    startedWith: origin.startedWith,
    keyEpoch: state.keyEpoch,
    lastKeys: keys.lastKeys,
    epochKeys: keys.epochKeys,
    keySets: keys.keySets,
    quiet: state.quiet,
    rejoinAsks: readList(from, readAsk),
    participants: readList(from, readParticipant),
    timeLine: readList(from, readMoment),
  }
}

/** Those of several steps may stand one behind the other. Undefined for a call that was not made of the one before. */
export function packChanges(before: Call, after: Call): Uint8Array | undefined {
  if (!isOfOneOrigin(before, after)) return undefined
  const to = WRITER.begin()
  writeState(to, after)
  const hasSameKeys =
    after.keySets === before.keySets &&
    after.lastKeys === before.lastKeys &&
    after.epochKeys === before.epochKeys
  to.flag(!hasSameKeys)
  if (!hasSameKeys) writeKeys(to, after)
  const hasSameAsks = after.rejoinAsks === before.rejoinAsks
  to.flag(!hasSameAsks)
  if (!hasSameAsks) writeList(to, after.rejoinAsks, writeAsk)
  writeChangedPeople(to, before.participants, after.participants)
  writeNewMoments(to, before.timeLine, after.timeLine)
  return to.taken()
}

/** The call after all the steps. */
export function withPackedChanges(call: Call, octets: Uint8Array): Call {
  const from = new OctetReader(octets)
  let next = call
  while (!from.isAtEnd) {
    next = {
      ...next,
      ...readState(from),
      ...(from.flag() && readKeys(from)),
      ...(from.flag() && { rejoinAsks: readList(from, readAsk) }),
      participants: readChangedPeople(from, next.participants),
      timeLine: readNewMoments(from, next.timeLine),
    }
  }
  return next
}

/** Members that never change. */
type Origin = Pick<Call, 'callId' | 'isRoomNamed' | 'isVideo' | 'initiatorId' | 'createdAtMs' | 'startedWith'>
type Keys = Pick<Call, 'keySets' | 'lastKeys' | 'epochKeys'>
type State = Omit<Call, keyof Origin | keyof Keys | 'rejoinAsks' | 'participants' | 'timeLine'>

function isOfOneOrigin(before: Call, after: Call): boolean {
  return (
    after.startedWith === before.startedWith &&
    after.callId === before.callId &&
    after.isRoomNamed === before.isRoomNamed &&
    after.isVideo === before.isVideo &&
    after.initiatorId === before.initiatorId &&
    after.createdAtMs === before.createdAtMs
  )
}

function writeOrigin(to: OctetWriter, origin: Origin): void {
  to.uint64(origin.callId)
  to.flag(origin.isRoomNamed)
  to.flag(origin.isVideo)
  to.uint64(origin.initiatorId)
  to.float64(origin.createdAtMs)
  to.uint64(origin.startedWith.deviceId)
  to.octets(origin.startedWith.digest)
}

function readOrigin(from: OctetReader): Origin {
  return {
    callId: from.uint64() as CallId,
    isRoomNamed: from.flag(),
    isVideo: from.flag(),
    initiatorId: from.uint64() as UserId,
    createdAtMs: from.float64(),
    startedWith: { deviceId: from.uint64() as DeviceId, digest: from.octets() },
  }
}

function writeState(to: OctetWriter, state: State): void {
  to.float64(state.version)
  to.float64(state.roomId)
  if (to.isThere(state.gateway)) to.text(state.gateway)
  STATUSES.write(to, state.status)
  to.uint64(state.hostUserId)
  if (to.isThere(state.startedAtMs)) to.float64(state.startedAtMs)
  if (to.isThere(state.endedAtMs)) to.float64(state.endedAtMs)
  if (to.isThere(state.endReason)) END_REASONS.write(to, state.endReason)
  if (to.isThere(state.endedBy)) to.uint64(state.endedBy)
  to.float64(state.keyEpoch)
  if (!to.isThere(state.quiet)) return
  QUIETS.write(to, state.quiet.kind)
  to.float64(state.quiet.sinceMs)
}

function readState(from: OctetReader): State {
  return {
    version: from.float64(),
    roomId: from.float64(),
    gateway: from.flag() ? from.text() : undefined,
    status: STATUSES.read(from),
    hostUserId: from.uint64() as UserId,
    startedAtMs: from.flag() ? from.float64() : undefined,
    endedAtMs: from.flag() ? from.float64() : undefined,
    endReason: from.flag() ? END_REASONS.read(from) : undefined,
    endedBy: from.flag() ? (from.uint64() as UserId) : undefined,
    keyEpoch: from.float64(),
    quiet: from.flag() ? { kind: QUIETS.read(from), sinceMs: from.float64() } : undefined,
  }
}

function writeKeys(to: OctetWriter, { keySets, lastKeys, epochKeys }: Keys): void {
  writeList(to, keySets, writeKeySet)
  if (to.isThere(lastKeys)) writeSentKeys(to, lastKeys)
  if (to.isThere(epochKeys)) writeSentKeys(to, epochKeys)
}

function readKeys(from: OctetReader): Keys {
  return {
    keySets: readList(from, readKeySet),
    lastKeys: from.flag() ? readSentKeys(from) : undefined,
    epochKeys: from.flag() ? readSentKeys(from) : undefined,
  }
}

function writeKeySet(to: OctetWriter, { epoch, members }: KeySet): void {
  to.float64(epoch)
  to.octets(members)
}

function readKeySet(from: OctetReader): KeySet {
  return { epoch: from.float64(), members: from.octets() }
}

function writeSentKeys(to: OctetWriter, { epoch, deviceId, userId, digest }: SentKeys): void {
  to.float64(epoch)
  to.uint64(deviceId)
  to.uint64(userId)
  to.octets(digest)
}

function readSentKeys(from: OctetReader): SentKeys {
  return {
    epoch: from.float64(),
    deviceId: from.uint64() as DeviceId,
    userId: from.uint64() as UserId,
    digest: from.octets(),
  }
}

function writeAsk(to: OctetWriter, ask: RejoinAsk): void {
  writeRef(to, ask)
  if (to.isThere(ask.nonce)) to.text(ask.nonce)
  to.float64(ask.askedAtMs)
  to.float64(ask.asked)
  writeList(to, ask.answeredBy, writeRef)
}

function readAsk(from: OctetReader): RejoinAsk {
  return {
    userId: from.uint64() as UserId,
    deviceId: from.uint64() as DeviceId,
    nonce: from.flag() ? from.text() : undefined,
    askedAtMs: from.float64(),
    asked: from.float64(),
    answeredBy: readList(from, readRef),
  }
}

function writeMoment(to: OctetWriter, { atMs, kind, userIds, byUserId }: CallMoment): void {
  to.float64(atMs)
  MOMENTS.write(to, kind)
  writeList(to, userIds, writeUser)
  if (to.isThere(byUserId)) to.uint64(byUserId)
}

function readMoment(from: OctetReader): CallMoment {
  const moment = { atMs: from.float64(), kind: MOMENTS.read(from), userIds: readList(from, readUser) }
  return from.flag() ? { ...moment, byUserId: from.uint64() as UserId } : moment
}

function writeUser(to: OctetWriter, userId: UserId): void {
  to.uint64(userId)
}

function readUser(from: OctetReader): UserId {
  return from.uint64() as UserId
}

/** How many of the oldest are gone, and the new ones. */
function writeNewMoments(to: OctetWriter, before: readonly CallMoment[], after: readonly CallMoment[]): void {
  const gone = after.length === 0 ? before.length : before.indexOf(after[0]!)
  const first = gone === -1 ? before.length : gone
  const kept = before.length - first
  const isSame = after.length >= kept && after[kept - 1] === before.at(-1)
  to.uint16(isSame ? first : before.length)
  writeList(to, isSame ? after.slice(kept) : after, writeMoment)
}

function readNewMoments(from: OctetReader, before: readonly CallMoment[]): readonly CallMoment[] {
  const kept = before.slice(from.uint16())
  return [...kept, ...readList(from, readMoment)]
}

const STATUSES = new Words<CallStatus>({
  ringing: 0,
  active: 1,
  ended: 2,
  cancelled: 3,
  declined: 4,
  missed: 5,
  failed: 6,
})
const END_REASONS = new Words<CallEndReason>({
  hangup: 0,
  cancelled: 1,
  declined: 2,
  unanswered: 3,
  caller_lost: 4,
  empty: 5,
  alone: 6,
  limit: 7,
  removed: 8,
  operator: 9,
  suspended: 10,
  internal: 11,
})
const MOMENTS = new Words<MomentKind>({
  ...STATE_NUMBERS,
  started: 32,
  push_taken: 33,
  unreachable: 34,
  moved: 35,
  media_ready: 36,
  media_lost: 37,
  ended: 38,
})
const QUIETS = new Words<Quiet['kind']>({ empty: 0, alone: 1 })

/** Packing is synchronous, so one writer serves all calls. */
const WRITER = new OctetWriter()

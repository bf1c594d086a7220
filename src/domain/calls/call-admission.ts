/** The room at the media gateway lets devices of the call in, or is gone. */

import {
  type Call,
  entryOf,
  isOver,
  isSameDevice,
  joinedDevices,
  joinedOn,
  keySetOf,
  participantOf,
  withParticipant,
} from './call.ts'
import type { CallChange, CallOccurrence } from './call-command.ts'
import { mediaReadyNotice } from './call-effect.ts'
import type { DeviceEffect } from './call-notice.ts'
import { keyMapName } from './key-map.ts'
import { memberNames } from './key-members.ts'

/** `answered` are devices that read it in a reply, and need no message. All the rest get new tokens before theirs end. */
export function withAdmitted(
  before: Call,
  { gateway, devices, answered, nowMs }: Extract<CallOccurrence, { kind: 'media-admitted' }>,
): CallChange {
  if (isOver(before)) return { kind: 'changed', call: before }
  // A device that was let in at another gateway has to hear of this one.
  const call = before.gateway === gateway ? before : { ...withoutRoom(before).call, gateway }
  let next = call
  const told: DeviceEffect[] = []
  for (const device of devices) {
    const attendance = joinedOn(next, device)?.attendance
    const { admittedAtMs = Number.NEGATIVE_INFINITY } = attendance ?? {}
    if (attendance === undefined || nowMs < admittedAtMs + RENEWED_MS) continue
    next = withParticipant(next, device.userId, { attendance: { ...attendance, admittedAtMs: nowMs } })
    if (answered.some(other => isSameDevice(other, device))) continue
    told.push(mediaReadyNotice(call, entryOf(call, device), nowMs))
  }
  return { kind: 'changed', call: next, told }
}

/** A feed is one device's: an earlier device's claim to it ends. A gateway that had the room before has no word in it. */
export function withFeeds(
  call: Call,
  { gateway, device, feedIds }: Extract<CallOccurrence, { kind: 'media-feeds' }>,
): CallChange {
  const known = joinedOn(call, device)?.attendance?.feedIds ?? []
  const isKnown = known.length === feedIds.length && feedIds.every((feed, at) => feed === known[at])
  const isOfCall = call.gateway === gateway && joinedOn(call, device) !== undefined
  if (isOver(call) || !isOfCall || isKnown) return { kind: 'changed', call }
  const next = joinedDevices(call).reduce((before, other) => {
    const isIt = isSameDevice(other, device)
    const { feedIds: others = [], ...attendance } = joinedOn(before, other)!.attendance!
    const theirs = isIt ? feedIds : others.filter(feed => !feedIds.includes(feed))
    return isIt || theirs.length < others.length
      ? withParticipant(before, other.userId, { attendance: { ...attendance, feedIds: theirs } })
      : before
  }, call)
  return { kind: 'changed', call: next }
}

/**
 * The call in a room that a removed device never heard of. A room stays if the start named it, or if a device in the call is
 * not in the present key's set: such a client may know the first room alone.
 */
export function withOtherRoom(call: Call, roomId: number): Call {
  const set = keySetOf(call, call.keyEpoch)
  const inSet = new Set(set && memberNames(set.members))
  const allFollow = joinedDevices(call).every(device => inSet.has(keyMapName(device)))
  // Without a gateway no device was ever admitted.
  const wasEntered = call.participants.some(({ attendance }) => attendance?.admittedAtMs !== undefined)
  return call.isRoomNamed || !allFollow || !wasEntered ? call : withoutRoom({ ...call, roomId }).call
}

/** The room is gone; it is made again, at another gateway perhaps. */
export function withoutRoom(call: Call): CallChange {
  let next: Call = call.gateway === undefined ? call : { ...call, gateway: undefined }
  for (const { userId } of joinedDevices(call)) {
    const attendance = participantOf(next, userId)?.attendance
    if (attendance === undefined) continue
    const { admittedAtMs, feedIds, ...others } = attendance
    if (admittedAtMs === undefined && feedIds === undefined) continue
    next = withParticipant(next, userId, { attendance: others })
  }
  return { kind: 'changed', call: next }
}

/** Tokens are good for half an hour at least. */
const RENEWED_MS = 15 * 60_000

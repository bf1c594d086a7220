/**
 * Who may enter a call's room at the media gateway. The gateway is driven outside and may be slow or away; the call only
 * notes which of the devices that are in it the room lets in by now.
 */

import { type Call, type CallDeviceRef, isJoined, joinedOn } from './call.ts'

/** A device's entry to a room. Its tokens follow from these members and the time. */
export interface RoomEntry {
  readonly roomId: number
  readonly device: CallDeviceRef
}

/** The room as one reader of the call may see it. */
export interface CallMedia {
  readonly isReady: boolean
  /** Set when the reader's device is in the call and the room lets it in. */
  readonly entry: RoomEntry | undefined
}

export function mediaOf(call: Call, device: CallDeviceRef): CallMedia {
  const own = joinedOn(call, device)
  if (own === undefined) return { isReady: call.participants.some(isAdmitted), entry: undefined }
  return isAdmitted(own)
    ? { isReady: true, entry: entryOf(call, device) }
    : { isReady: false, entry: undefined }
}

/** The device's entry to the call's room. */
export function entryOf({ roomId }: Call, { userId, deviceId }: CallDeviceRef): RoomEntry {
  return { roomId, device: { userId, deviceId } }
}

function isAdmitted(participant: Call['participants'][number]): boolean {
  return isJoined(participant) && participant.attendance?.admittedAtMs !== undefined
}

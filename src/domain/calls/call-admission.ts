/** The room at the media gateway lets devices of the call in, or is gone. */

import {
  type Call,
  type CallDeviceRef,
  isOver,
  isSameDevice,
  joinedDevices,
  joinedOn,
  participantOf,
  withParticipant,
} from './call.ts'
import { type CallChange, changed } from './call-command.ts'
import { entryOf } from './call-media.ts'
import { type DeviceEffect, mediaReadyNotice } from './call-notice.ts'

/** `answered` are devices that read it in a reply, and need no message. */
export function withAdmitted(
  call: Call,
  admitted: readonly CallDeviceRef[],
  answered: readonly CallDeviceRef[],
): CallChange {
  let next = call
  const told: DeviceEffect[] = []
  for (const device of isOver(call) ? [] : admitted) {
    const attendance = joinedOn(next, device)?.attendance
    if (attendance === undefined || attendance.isAdmitted) continue
    next = withParticipant(next, device.userId, { attendance: { ...attendance, isAdmitted: true } })
    if (answered.some(other => isSameDevice(other, device))) continue
    told.push(mediaReadyNotice(call, entryOf(call, device)))
  }
  return changed(next, told)
}

/** The room is gone; it is made again. */
export function withoutRoom(call: Call): CallChange {
  let next = call
  for (const { userId } of joinedDevices(call)) {
    const attendance = participantOf(next, userId)?.attendance
    if (attendance?.isAdmitted !== true) continue
    const { isAdmitted: _, ...others } = attendance
    next = withParticipant(next, userId, { attendance: others })
  }
  return changed(next)
}

/**
 * The last step of a push's form, which the thread that sends takes: its members become payload. They are sealed for a device
 * with a key for that; else the call's key is left out where the push would be too large with it. `fcm.ts` has the same for
 * Google.
 */

import type { ApnsPush } from './apns-link.ts'
import { type PushMembers, withoutKey } from './push-content.ts'
import { sealedCallId, sealPush } from './sealed-push.ts'

/** As it goes to Apple. */
export function finishedApnsPush(push: ApnsPush): Omit<ApnsPush, 'sealing'> {
  const { sealing, collapseId, ...open } = push
  const { aps, ...members } = push.payload
  if (sealing === undefined) {
    const isTooLarge = bytesOf(push.payload) > apnsPayloadBytesMax(push.pushType)
    return isTooLarge ? { ...push, payload: { aps, ...withoutKey(members as PushMembers) } } : push
  }
  const collapse = collapseId === undefined ? {} : { collapseId: sealedCallId(sealing, collapseId) }
  return { ...open, ...collapse, payload: { aps, sealed: sealPush(sealing, members as PushMembers) } }
}

/** Apple's limit on a payload, in bytes of JSON. */
export function apnsPayloadBytesMax(pushType: ApnsPush['pushType']): number {
  return pushType === 'voip' ? 5_120 : 4_096
}

export function bytesOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value))
}

/**
 * The last step of a push's form, which the thread that sends takes: its members become payload. They are sealed for a device
 * with a key for that; else the call's key is left out where the push would be too large with it.
 */

import type { ApnsPush } from './apns-link.ts'
import type { FcmPush } from './fcm-push.ts'
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

/** As it goes to Google, which takes only texts. */
export function finishedFcmPush({ sealing, data, ...push }: FcmPush): FinishedFcmPush {
  if (sealing !== undefined) return { ...push, data: { sealed: sealPush(sealing, data as PushMembers) } }
  const texts = textsOf(data)
  const isTooLarge = bytesOf(texts) > FCM_DATA_BYTES_MAX
  return { ...push, data: isTooLarge ? textsOf(withoutKey(data as PushMembers)) : texts }
}

export interface FinishedFcmPush extends Omit<FcmPush, 'data' | 'sealing'> {
  readonly data: Readonly<Record<string, string>>
}

/** Apple's limit on a payload, in bytes of JSON. */
export function apnsPayloadBytesMax(pushType: ApnsPush['pushType']): number {
  return pushType === 'voip' ? 5_120 : 4_096
}

function textsOf(members: FcmPush['data']): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, String(value)]))
}

function bytesOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value))
}

/** Names and values together; the JSON around them, which is counted here too, is not Google's. */
const FCM_DATA_BYTES_MAX = 4_096

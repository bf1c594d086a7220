/** The senders of pushes, by provider. Each takes pushes of its own form; all are plain data, which JSON keeps whole. */

import { type ApnsOptions, ApnsSender } from './apns.ts'
import type { ApnsPush } from './apns-link.ts'
import type { FcmPush } from './fcm.ts'
import { type FcmOptions, FcmSender } from './fcm.ts'
import type { DeliveryOutcome } from './outcome.ts'
import { type WebPush, WebPushSender, type WebPushSettings } from './web-push.ts'

/** Those of the providers in use. They cross to a thread, which has a clock of its own. */
export interface PushSettings {
  readonly apns?: Omit<ApnsOptions, 'nowMs'>
  readonly fcm?: Omit<FcmOptions, 'nowMs'>
  readonly webPush?: Omit<WebPushSettings, 'nowMs' | 'sockets'>
}

interface PushOf {
  readonly apns: ApnsPush
  readonly fcm: FcmPush
  readonly webPush: WebPush
}

export type PushSenderName = keyof PushSettings & keyof PushOf

export type PushSenders = {
  readonly [Name in PushSenderName]?: { send(push: PushOf[Name]): Promise<DeliveryOutcome> }
}

/** Throws, with a sentence for the operator, where a key is none. */
export function openPushSenders({ apns, fcm, webPush }: PushSettings) {
  return {
    ...(apns && { apns: new ApnsSender(apns) }),
    ...(fcm && { fcm: new FcmSender(fcm) }),
    ...(webPush && { webPush: new WebPushSender(webPush) }),
  }
}

/** Shared by stories of calls: the server, people who are contacts, a call that rings, a call that is on. */

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { ReceivedPush } from './apns-stand-in.ts'
import { Rehearsal } from './rehearsal.ts'
import { type Body, befriend, Phone } from './stompjs-phone.ts'

export function rehearse(t: Test): Promise<Rehearsal> {
  return Rehearsal.start(t, { dataFolder: join(t.testdir(), 'data') })
}

/** Two people who are contacts, each with a phone, not connected. */
export async function friends(story: Rehearsal): Promise<[ann: Phone, bob: Phone]> {
  const ann = await Phone.unpack(story, 'ann')
  const bob = await Phone.unpack(story, 'bob')
  await befriend(ann, bob)
  return [ann, bob]
}

export interface StartedCall {
  readonly callId: string
  readonly callKey: Uint8Array<ArrayBuffer>
  readonly encryptedAESKeys: Readonly<Record<string, string>>
  readonly record: Body
}

/** Calls all devices of these people. */
export async function startCall(caller: Phone, ...callees: readonly Phone[]): Promise<StartedCall> {
  const calleeIds = callees.map(({ userId }) => userId)
  const callKey = new Uint8Array(randomBytes(32))
  const encryptedAESKeys = await caller.sealed(callKey, await caller.devicesOf(...calleeIds))
  const start = { calleeIds, encryptedAESKeys, isVideo: false }
  const record = await caller.get(201, 'POST /app/api/call/start', start)
  return { callId: record.callId, callKey, encryptedAESKeys, record }
}

/** The push for an event to a device, when it has come. */
export async function pushOf(story: Rehearsal, phone: Phone, eventId: string): Promise<ReceivedPush> {
  const { apns } = story.world
  for (let count = 1; ; count++) {
    await apns.received(count)
    const push = apns.pushes.find(
      ({ token, payload }) =>
        payload.eventId === eventId && (token === phone.voipToken || token === phone.apnsToken),
    )
    if (push !== undefined) return push
  }
}

/** Everybody hangs up the phone, and the server's log holds nothing of what they kept to themselves. */
export async function endStory(t: Test, story: Rehearsal, ...phones: readonly Phone[]): Promise<void> {
  for (const phone of phones) await phone.disconnect()
  await story.endWithoutLeaks(t)
}

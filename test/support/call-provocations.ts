/** How to hear each error code of calls: stories of people who are all contacts of the first, each with one device. */

import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import type { ErrorCode } from '../../src/errors.ts'
import { newDevice, newUser } from './application.ts'
import type { Heard, Story } from './provocations.ts'
import { openTestApi, type TestApi } from './test-api.ts'

export interface Phone {
  readonly userId: UserId
  readonly deviceId: DeviceId
  /** A token of the device's session. */
  readonly token: string
}

interface Calls {
  readonly phones: readonly Phone[]
  get(phone: Phone, path: string): Promise<Heard>
  post(phone: Phone, path: string, body?: object): Promise<Heard>
  /** Starts a call, by the first phone unless `by` names one, and returns its id. */
  start(callees: readonly Phone[], by?: Phone, more?: object): Promise<Heard>
}

function callStory(count: number, tell: (calls: Calls) => Promise<Heard>): Story {
  return async t => {
    const whole = await openTestApi(t)
    const phones = await Promise.all(Array.from({ length: count }, () => newPhone(whole)))
    const [first, ...others] = phones
    for (const other of others) await befriend(whole, first!, other)
    const post: Calls['post'] = (phone, path, body = {}) =>
      whole.send(`POST /app/api/call/${path}`, { token: phone.token, body })
    return tell({
      phones,
      get: (phone, path) => whole.send(`GET /app/api/call/${path}`, { token: phone.token }),
      post,
      start: (callees, by = first!, more = {}) =>
        post(by, 'start', { ...callTo(callees), isVideo: false, ...more }),
    })
  }
}

export async function newPhone({ world }: TestApi): Promise<Phone> {
  const { userId, token } = await newUser(world)
  const { deviceId } = await newDevice(world, userId)
  return { userId, deviceId, token }
}

export async function befriend({ send }: TestApi, one: Phone, other: Phone): Promise<void> {
  for (const [{ token }, { userId: targetUserId }] of [
    [one, other],
    [other, one],
  ] as const) {
    await send('POST /app/api/friend-request/by-id', { token, body: { targetUserId } })
  }
}

export function callTo(callees: readonly Phone[]) {
  return { calleeIds: callees.map(({ userId }) => userId), encryptedAESKeys: keysFor(callees) }
}

function keysFor(phones: readonly Phone[]): Record<string, string> {
  const keys = phones.map(
    ({ userId, deviceId }, at) => [`${userId}_${deviceId}`, Buffer.alloc(113, at + 1)] as const,
  )
  return Object.fromEntries(keys.map(([device, key]) => [device, key.toString('base64')]))
}

/** A call from the first phone to the rest; the named ones have joined. */
function inCall(
  count: number,
  joined: readonly number[],
  tell: (calls: Calls, callId: string) => Promise<Heard>,
) {
  return callStory(count, async calls => {
    const { callId } = (await calls.start(calls.phones.slice(1))).body
    for (const at of joined) await calls.post(calls.phones[at]!, `${callId}/join`)
    return tell(calls, callId)
  })
}

export const CALL_PROVOCATIONS: Readonly<Partial<Record<ErrorCode, Story>>> = {
  TURN_NOT_CONFIGURED: async t => {
    const whole = await openTestApi(t, { isDevelopment: false })
    const { token } = await newUser(whole.world)
    return whole.send('GET /credentials', { token })
  },
  CALL_NOT_FOUND: callStory(1, ({ phones, post }) => post(phones[0]!, '4503599627370497/join')),
  CALLEE_NOT_CONTACT: callStory(3, ({ phones, start }) => start([phones[2]!], phones[1])),
  DEVICE_LIST_MISMATCH: callStory(2, ({ phones, start }) =>
    start([phones[1]!], undefined, { encryptedAESKeys: {} }),
  ),
  PLAINTEXT_KEY_SUSPECTED: callStory(2, ({ phones, start }) => {
    const device = `${phones[1]!.userId}_${phones[1]!.deviceId}`
    const encryptedAESKeys = { [device]: Buffer.alloc(32, 1).toString('base64') }
    return start([phones[1]!], undefined, { encryptedAESKeys })
  }),
  ALREADY_IN_CALL: callStory(3, async ({ phones, start }) => {
    await start([phones[1]!])
    return start([phones[2]!])
  }),
  CALL_CROSSED: callStory(2, async ({ phones, start }) => {
    await start([phones[1]!])
    return start([phones[0]!], phones[1])
  }),
  CALL_ID_TAKEN: callStory(2, async ({ phones, start }) => {
    await start([phones[1]!], undefined, { callId: CHOSEN_ID })
    return start([phones[1]!], undefined, { callId: CHOSEN_ID, isVideo: true })
  }),
  ROOM_IN_USE: callStory(3, async ({ phones, start }) => {
    await start([phones[1]!], phones[0], { roomId: 7 })
    return start([phones[0]!], phones[2], { roomId: 7 })
  }),
  CALL_ENDED: inCall(2, [1], async ({ phones, post }, callId) => {
    await post(phones[0]!, 'end', { callId })
    return post(phones[1]!, `${callId}/join`)
  }),
  CALL_FULL: callStory(33, async ({ phones, post, start }) => {
    const { callId } = (await start(phones.slice(1, 32))).body
    await post(phones[1]!, `${callId}/join`)
    return post(phones[0]!, `${callId}/invite`, callTo([phones[32]!]))
  }),
  NOT_HOST: inCall(3, [1, 2], ({ phones, post }, callId) => post(phones[1]!, 'end', { callId })),
  NOT_PARTICIPANT: inCall(3, [1], ({ phones, post }, callId) =>
    post(phones[2]!, `${callId}/invite`, callTo([phones[0]!])),
  ),
  CALL_NOT_ACTIVE: inCall(2, [], ({ phones, post }, callId) => post(phones[1]!, `${callId}/request-rejoin`)),
  REJOIN_REQUIRED: inCall(3, [1, 2], async ({ phones, post }, callId) => {
    await post(phones[1]!, `${callId}/leave`)
    return post(phones[1]!, `${callId}/join`)
  }),
  NO_ACTIVE_PARTICIPANT: inCall(2, [1], async ({ phones, post }, callId) => {
    for (const phone of phones) await post(phone, `${callId}/leave`)
    return post(phones[1]!, `${callId}/request-rejoin`)
  }),
  EPOCH_CONFLICT: inCall(2, [1], ({ phones, post }, callId) =>
    post(phones[0]!, `${callId}/keys`, {
      epoch: 9,
      reason: 'rotation',
      encryptedAESKeys: keysFor([phones[1]!]),
    }),
  ),
  KEY_MEMBERS_NOT_FOUND: inCall(2, [1], ({ phones, get }, callId) =>
    get(phones[0]!, `${callId}/key-members?epoch=1`),
  ),
}

const CHOSEN_ID = '6117204471893025'

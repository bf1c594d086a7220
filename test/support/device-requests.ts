/** Devices that register through the operations, and how they are listed. */

import { generateKeyPairSync } from 'node:crypto'
import type { Test } from 'tap'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { newSession, newUser, type TestAnswer } from './application.ts'
import { openTestApi, type TestApi } from './test-api.ts'

/** The base64 of a key that no other device has: X9.63 of P-256. */
export function newKey(): string {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(-65).toString('base64')
}

/** Options of a set-up in which devices register. */
export const WITH_LOG = { log: 'appended', config: { stepUpS: 600 } } as const

export const REGISTER = 'POST /app/api/register_device'

/** Registers a key with the session of this token. */
export function registerDevice(
  { send }: TestApi,
  { token }: { readonly token: string },
  publicKey = newKey(),
  more: object = {},
): Promise<TestAnswer> {
  return send(REGISTER, { token, body: { publicKey, ...more } })
}

/** Ids of the devices that are listed, in their order. */
export async function deviceIds({ send }: TestApi, { token }: { token: string }): Promise<string[]> {
  const { body } = await send('GET /app/api/devices', { token })
  return body.items.map(({ deviceId }: { deviceId: string }) => deviceId)
}

/** The id that a text in an answer stands for. */
export function idOf(text: string): DeviceId {
  return BigInt(text) as DeviceId
}

/** A row of the store. */
export function activeDevice({ world }: TestApi, { userId }: { userId: UserId }, id: string) {
  return world.database.view(view => world.devices.active(view, userId, idOf(id)))
}

/** Messages about devices: `<kind> <deviceId> except <deviceId>`. */
export function toldOfDevices({ told }: TestApi): string[] {
  return told.flatMap(({ body, except }) =>
    'deviceId' in body ? [`${body.kind} ${body.deviceId} except ${except}`] : [],
  )
}

/** A user with a registered device, and a second session of theirs with a device of its own. */
export async function twoDevices(t: Test) {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const first: string = (await registerDevice(api, ann)).body.deviceId
  const other = await newSession(api.world, ann.userId)
  const second: string = (await registerDevice(api, other)).body.deviceId
  return { api, ann, other, first, second }
}

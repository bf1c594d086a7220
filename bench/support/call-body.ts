/** A caller's request. */

import { randomBytes } from 'node:crypto'
import type { Person } from './people.ts'

/** Of `POST call/start`: everybody is called, with a key for each of their devices. */
export function startBody(callees: readonly Person[]): string {
  const names = callees.flatMap(({ userId, devices }) =>
    devices.map(({ deviceId }) => `${userId}_${deviceId}`),
  )
  const encryptedAESKeys = Object.fromEntries(
    names.map(name => [name, randomBytes(SEALED_KEY_BYTES).toString('base64')]),
  )
  return JSON.stringify({ calleeIds: callees.map(({ userId }) => userId), encryptedAESKeys, isVideo: true })
}

/** A point of P-256, a nonce, a key of 32 bytes and a tag. */
export const SEALED_KEY_BYTES = 125

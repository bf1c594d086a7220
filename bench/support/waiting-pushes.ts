/** Pushes that wait in the outbox of a store, written to it while no server runs. */

import { randomBytes } from 'node:crypto'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import { newEventId } from '../../src/domain/ids.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { developmentKeys } from '../../src/server/development/development-keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { OUTBOX } from '../../src/store/messages/message-tables.ts'
import { OutboxStore } from '../../src/store/messages/outbox-store.ts'
import type { Person, PushProvider } from './people.ts'

/** Has each device told of so many missed calls; a call is missed by ten devices, whose pushes share a change. */
export async function addWaitingPushes(
  dataFolder: string,
  provider: PushProvider,
  people: readonly Person[],
  each: number,
): Promise<void> {
  const database = LmdbStore.open(dataFolder)
  const { secret } = developmentKeys(dataFolder).keys
  const outbox = new OutboxStore(database, deriveSecrets(Buffer.from(secret, 'base64')), randomBytes)
  const devices = people.flatMap(({ userId, devices }) =>
    devices.map(({ deviceId }) => ({
      userId: BigInt(userId) as UserId,
      deviceId: BigInt(deviceId) as DeviceId,
    })),
  )
  const nowMs = Date.now()
  const missCall = (callId: CallId, from: number) =>
    database.change(change => {
      for (const { userId, deviceId } of devices.slice(from, from + CALLEES)) {
        const notice = {
          kind: 'call_missed',
          callId,
          version: 2,
          callerId: devices[0]!.userId,
          callerName: 'Ann Example',
          displayName: 'Ann Example',
          alias: undefined,
          isContact: true,
          isVideo: true,
          atMs: nowMs,
          eventId: newEventId(randomBytes),
          sentAtMs: nowMs,
        } as const
        outbox.add(change, {
          channel: 'push',
          userId,
          deviceId,
          notice,
          expiresAtMs: nowMs + DAY_MS,
          provider,
        })
      }
    })
  let callId = 4_503_599_627_370_496n
  for (let round = 0; round < each; round++) {
    const calls: Promise<void>[] = []
    for (let at = 0; at < devices.length; at += CALLEES) calls.push(missCall(callId++ as CallId, at))
    await Promise.all(calls)
  }
  await database.close()
}

/** How many rows of the outbox are left. */
export async function countWaitingRows(dataFolder: string): Promise<number> {
  const database = LmdbStore.open(dataFolder)
  const count = database.view(view => [...view.range(OUTBOX, {})].length)
  await database.close()
  return count
}

const CALLEES = 10
const DAY_MS = 86_400_000

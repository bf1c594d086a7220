/** A log in a store and its appender, in one process. */

import { createHash } from 'node:crypto'
import { logAppenderKind } from '../../actors/log-appender.ts'
import type { LogAppenderMessage } from '../../actors/messages.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { PublishedLog } from '../../src/keyserver/published-log.ts'
import { type Alongside, KeyRegistration } from '../../src/keyserver/registration.ts'
import { parseEntry } from '../../src/log/entry.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import type { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { createLog, SIGNER } from './stored-log.ts'

export type LogInStore = Awaited<ReturnType<typeof openLog>>

/** Has its log made where the store has none. */
export async function openLog(database: LmdbStore, isFrozen = false) {
  const store = new LogStore(database)
  if (store.maker() === undefined) await createLog(store)
  const published = new PublishedLog(store, SIGNER)
  const fatal = (error: unknown) => {
    throw error
  }
  const system = new ActorSystem({ world: realWorld(), fatal })
  const kind = logAppenderKind({
    store,
    signer: SIGNER,
    publishedSize: () => published.size,
    publish: head => published.publish(head),
    fatal,
  })
  const appender: Ref<LogAppenderMessage> = system.define(kind)('log')
  await appender.ask<number>(reply => ({ kind: 'open', reply }), 10_000)
  const vrf = { hash: async (userId: bigint, deviceId: bigint) => hashOf(`${userId}_${deviceId}`) }
  const registration = new KeyRegistration(isFrozen, vrf, key =>
    appender.ask<number>(reply => ({ kind: 'append', ...key, reply }), 10_000),
  )
  const register = (userId: UserId, deviceId: DeviceId, publicKey: string, alongside?: Alongside) =>
    registration.register({ userId, deviceId, publicKey, alongside })
  return { store, system, register, entries: () => entriesOf(store) }
}

function entriesOf(store: LogStore): string[] {
  const { treeSize } = store.head()!
  return Array.from({ length: treeSize }, (_, index) => {
    const { userId, deviceId } = store.identity(index)!
    const { publicKey, vrfHash } = parseEntry(store.entryVolatile(index))
    const name = `${userId}_${deviceId}`
    if (!hashOf(name).equals(vrfHash)) throw new Error(`entry ${index} is under another hash than ${name}`)
    return `${name} ${publicKey}`
  })
}

function hashOf(name: string): Buffer {
  return createHash('sha512').update(name).digest()
}

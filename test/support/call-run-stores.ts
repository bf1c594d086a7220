/**
 * The stores of one life of the server in a seeded run, over a database in memory. A room's decision is noted before
 * a planted mistake can change it, and the stored rows after.
 */

import type { ConnectionInbox } from '../../actors/stomp-connection/deps.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import { INBOX_KEPT_MS, queueOf } from '../../src/domain/messages/inbox.ts'
import type { Badge } from '../../src/domain/messages/notice.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { SessionStore } from '../../src/store/accounts/session-store.ts'
import { CallHistoryStore } from '../../src/store/calls/call-history-store.ts'
import { CallStore } from '../../src/store/calls/call-store.ts'
import { DeviceListStore } from '../../src/store/devices/device-list-store.ts'
import { DeviceStore } from '../../src/store/devices/device-store.ts'
import { Restrictions } from '../../src/store/devices/restrictions.ts'
import { Expiries } from '../../src/store/engine/expiries.ts'
import type { Change, View } from '../../src/store/engine/store.ts'
import { DeviceInbox } from '../../src/store/messages/device-inbox.ts'
import { type InboxEntry, InboxStore } from '../../src/store/messages/inbox-store.ts'
import { LocalInboxWrites } from '../../src/store/messages/inbox-writes.ts'
import { Notices } from '../../src/store/messages/notices.ts'
import type { StoreDeps } from '../../src/store/tables/deps.ts'
import { IdempotencyStore } from '../../src/store/tables/idempotency-store.ts'
import { type PlantedBug, plantInCalls, plantInInbox, plantInNotices, type RoomCalls } from './call-bugs.ts'
import { nameOf, type RunNote } from './call-run-ledger.ts'
import type { RoomWatch } from './call-run-watch.ts'
import type { MemoryStore } from './memory-store.ts'
import type { SeededRandom } from './world.ts'

export interface RunStoresParts {
  readonly database: MemoryStore<RunNote>
  readonly bug: PlantedBug | undefined
  readonly draw: SeededRandom
  readonly watch: RoomWatch
  readonly randomBytes: (length: number) => Uint8Array
  readonly nowMs: () => number
  readonly soon: (run: () => void) => void
  readonly onFault: (error: unknown) => void
  readonly isConnected: (userId: UserId, deviceId: DeviceId) => boolean
}

export type RunStores = ReturnType<typeof openRunStores>

export function openRunStores({ database: memory, bug, draw, watch, ...rest }: RunStoresParts) {
  const database = memory
  const expiries = new Expiries()
  const parts = { ...rest, database, expiries, secrets: SECRETS }
  const devices = new DeviceStore(database)
  const sessions = new SessionStore({ database, expiries, lifetimes: LIFETIMES })
  const inbox = new NotedInbox(memory, parts)
  const plantedInbox = plantInNotices(bug, inbox)
  const outbox = { add: () => undefined }
  const restrictions = new Restrictions(database, devices, new DeviceListStore())
  const notices = new Notices({ ...parts, devices, restrictions, inbox: plantedInbox, outbox })
  const history = new CallHistoryStore({ ...parts, historyDays: 90 })
  const idempotency = new IdempotencyStore(expiries, SECRETS, parts.randomBytes)
  const auditLog = { add: () => undefined }
  const calls = new CallStore({ ...parts, inbox: plantedInbox, notices, history, idempotency, auditLog })
  const deviceInbox = new DeviceInbox({ ...parts, inbox, writes: new LocalInboxWrites(database, inbox) })
  return {
    database,
    expiries,
    restrictions,
    devices,
    deviceLists: new DeviceListStore(),
    sessions,
    inbox,
    notices,
    history,
    keptReplies: idempotency,
    deviceInbox,
    badgeOf(view: View, userId: UserId): Badge {
      const missedCalls = history.missedOf(view, userId)
      return { total: missedCalls, friendRequests: 0, missedCalls }
    },
    /** As rooms and connections see them. */
    roomCalls: decidedCalls(plantInCalls(bug, storedCalls(calls, memory), draw), memory, watch),
    connectionInbox: plantInInbox(bug, connectionInboxOf(deviceInbox)),
    // Whom one may call is not what these runs are about.
    accounts: {
      read: (_: View, userId: UserId) => ({ displayName: `User ${userId}`, settings: {} }),
      displayNameOf: (_: View, userId: UserId) => `User ${userId}`,
    },
    contacts: { linkOf: () => ({ sinceMs: 0 }), blockedAtMs: () => undefined, haveCircle: () => false },
  }
}

class NotedInbox extends InboxStore {
  readonly #memory: MemoryStore<RunNote>

  constructor(memory: MemoryStore<RunNote>, parts: StoreDeps) {
    super(parts)
    this.#memory = memory
  }

  override append(change: Change, userId: UserId, deviceId: DeviceId, entry: InboxEntry): number {
    const offset = super.append(change, userId, deviceId, entry)
    const { item, expiresAtMs = Number.POSITIVE_INFINITY } = entry
    const endsAtMs = Math.min(expiresAtMs, change.nowMs + INBOX_KEPT_MS)
    const message = { offset, queue: queueOf(item), item, expiresAtMs: endsAtMs }
    this.#memory.note({ kind: 'put', device: nameOf({ userId, deviceId }), message })
    return offset
  }

  override settle(change: Change, userId: UserId, deviceId: DeviceId, offsets: Iterable<number>): void {
    super.settle(change, userId, deviceId, offsets)
    this.#memory.note({ kind: 'settled', device: nameOf({ userId, deviceId }), offsets: [...offsets] })
  }

  override eraseDevice(change: Change, userId: UserId, deviceId: DeviceId): void {
    super.eraseDevice(change, userId, deviceId)
    this.#memory.note({ kind: 'erased', device: nameOf({ userId, deviceId }) })
  }
}

function storedCalls(calls: CallStore, memory: MemoryStore<RunNote>): RoomCalls {
  const asked = new Map<CallId, object>()
  return {
    open: callId => calls.open(callId),
    read: (view, callId) => calls.read(view, callId),
    live: () => calls.live(),
    confirm: callId => calls.confirm(callId),
    apply(decision, nowMs, beside) {
      const { call, ended } = decision
      for (const each of ended ? [ended.call, call] : [call]) memory.noteAhead({ kind: 'stored', call: each })
      const before = memory.lastAsked
      const durable = calls.apply(decision, nowMs, beside)
      if (memory.lastAsked === before) memory.noteOf(asked.get(call.callId)!)
      else asked.set(call.callId, memory.lastAsked!)
      return durable
    },
  }
}

function decidedCalls(calls: RoomCalls, memory: MemoryStore<RunNote>, watch: RoomWatch): RoomCalls {
  return {
    ...calls,
    apply(decision, nowMs, beside) {
      const { call, ended } = decision
      const { callId } = call
      const command = { ...watch.command!, nowMs }
      if (ended !== undefined) {
        const otherId = ended.call.callId
        const gone = { kind: 'deadline', nowMs } as const
        memory.noteAhead({ kind: 'decided', callId: otherId, command: gone, effects: ended.effects })
        watch.noteAsked(otherId)
      }
      memory.noteAhead({ kind: 'decided', callId, command, effects: decision.effects })
      const kept = beside?.kept
      if (kept !== undefined && command.kind === 'start') {
        memory.noteAhead({ kind: 'kept', name: `${kept.request.scope} ${kept.request.key}` })
      }
      watch.noteAsked(callId as CallId)
      return calls.apply(decision, nowMs, beside)
    },
  }
}

function connectionInboxOf(inbox: DeviceInbox): ConnectionInbox {
  return {
    head: inbox.head.bind(inbox),
    after: inbox.after.bind(inbox),
    isSettling: inbox.isSettling.bind(inbox),
    settleSoon: inbox.settleSoon.bind(inbox),
    settleNow: inbox.settleNow.bind(inbox),
    get failedSettles() {
      return inbox.failedSettles
    },
    change: inbox.change.bind(inbox),
    markDelivered: inbox.markDelivered.bind(inbox),
  }
}

const LIFETIMES = { accessS: 3_600, refreshS: 86_400, sessionS: 86_400 }
const SECRETS = deriveSecrets(Buffer.alloc(32, 7))

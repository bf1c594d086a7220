/**
 * Reads the whole application out of a data directory, beside the server or after it, and reports half-done changes:
 * a transaction's writes must be there whole, or not at all. Beyond `fsck`, it checks rows that take the secret, and
 * that only the application has registered keys.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { checkRows } from '../../src/check/rows/row-check.ts'
import { type Call, hasPart, isOver, isPending, type Participant } from '../../src/domain/calls/call.ts'
import { activeRowOf } from '../../src/domain/calls/call-history.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { callInvitedTo } from '../../src/domain/messages/inbox.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { CallStore } from '../../src/store/calls/call-store.ts'
import { CALL_HISTORY } from '../../src/store/calls/call-tables.ts'
import { placeInKey, readMemory, readPlace } from '../../src/store/calls/history-rows.ts'
import { DeviceStore } from '../../src/store/devices/device-store.ts'
import { Expiries } from '../../src/store/engine/expiries.ts'
import { idInKey } from '../../src/store/engine/keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { InboxStore } from '../../src/store/messages/inbox-store.ts'
import { storedTable } from './stored-table.ts'

export interface Audit {
  readonly faults: readonly string[]
  /** How many of each were looked at. */
  readonly counts: Readonly<Record<'devices' | 'calls' | 'invitations' | 'rows', number>>
}

/** The secrets are those of a development server, beside its store or in `keysFrom`. */
export async function auditStore(dataFolder: string, keysFrom = dataFolder): Promise<Audit> {
  const { CALLSIGN_SECRET = '' } = parseEnv(readFileSync(join(keysFrom, 'development-keys.env'), 'utf8'))
  const database = LmdbStore.openReadOnly(dataFolder)
  try {
    return new Auditor(database, deriveSecrets(Buffer.from(CALLSIGN_SECRET, 'base64'))).audit()
  } finally {
    await database.close()
  }
}

class Auditor {
  readonly #database: LmdbStore
  readonly #inbox: InboxStore
  readonly #calls: CallStore
  readonly #devices: DeviceStore
  readonly #log: LogStore
  readonly #faults: string[] = []

  constructor(database: LmdbStore, secrets: ReturnType<typeof deriveSecrets>) {
    const base = { database, secrets, expiries: new Expiries(), randomBytes: never, onNews: never }
    this.#database = database
    this.#inbox = new InboxStore(base)
    this.#calls = new CallStore({
      ...base,
      inbox: this.#inbox,
      notices: { tellDevice: never },
      history: { put: never },
      idempotency: { keep: never },
      auditLog: { add: never },
    })
    this.#devices = new DeviceStore(database)
    this.#log = new LogStore(database)
  }

  audit(): Audit {
    const { told, unread, rows } = checkRows(this.#database)
    for (const { table, key, detail } of told) this.#faults.push(`${table}, ${key}: ${detail}`)
    this.#assert(unread.length === 0, `${unread} were not read`)
    const counts = {
      devices: this.#auditDevices(),
      calls: this.#auditCalls(),
      invitations: this.#auditInboxes(),
      rows,
    }
    return { faults: this.#faults, counts }
  }

  #assert(isSo: boolean, sentence: string): void {
    if (!isSo) this.#faults.push(sentence)
  }

  /** Each log entry belongs to a device, or to one being registered. */
  #auditDevices(): number {
    const { treeSize = 0 } = this.#log.head() ?? {}
    for (let index = 0; index < treeSize; index++) {
      const { userId, deviceId } = this.#log.identity(index)!
      const ids = [userId as UserId, deviceId as DeviceId] as const
      const isKnown =
        this.#database.view(view => this.#devices.read(view, ...ids)) ??
        this.#database.view(view => this.#devices.pendingDevice(view, ...ids))
      this.#assert(isKnown !== undefined, `entry ${index} of the log has no device`)
    }
    return treeSize
  }

  /** Each device that rings has its invitation, and each who is in the call, or was, remembers it. */
  #auditCalls(): number {
    const live = this.#calls.live()
    for (const call of live) {
      for (const participant of call.participants) this.#auditParticipant(call, participant)
    }
    const ended = this.#database.view(view => [...view.keys(storedTable('calls-ended'))])
    for (const callId of ended.map(key => idInKey(key, 0))) {
      this.#assert(!live.some(call => call.callId === callId), `call ${callId} is live and over`)
      const call = this.#database.view(view => this.#calls.read(view, callId))
      this.#assert(call !== undefined && isOver(call), `call ${callId} is over`)
      const present = call?.participants.filter(({ userId }) => hasPart(call, userId)) ?? []
      for (const { userId } of present) {
        this.#assert(this.#remembers(userId, callId), `${userId} does not remember ${callId}`)
      }
    }
    return live.length + ended.length
  }

  #auditParticipant(call: Call, participant: Participant): void {
    const { callId } = call
    const { userId, devices } = participant
    const isActive = activeRowOf(call, userId) !== undefined
    const isOver = OVER_FOR.has(participant.state)
    const isRight = this.#remembers(userId, callId) ? !isActive : !isOver || isActive
    this.#assert(isRight, `${userId}, who is ${participant.state}, and their memory of ${callId}`)
    if (!isPending(participant)) return
    for (const { deviceId } of devices) {
      this.#assert(
        this.#invitationsOf(userId, deviceId).includes(callId),
        `${deviceId} rings without an invitation`,
      )
    }
  }

  /** Each invitation is to a call that rings. */
  #auditInboxes(): number {
    const ringing = new Set(
      this.#calls
        .live()
        .flatMap(({ callId, participants }) =>
          participants
            .filter(isPending)
            .flatMap(({ devices }) => devices.map(({ deviceId }) => `${deviceId} ${callId}`)),
        ),
    )
    const keys = this.#database.view(view => [...view.keys(storedTable('devices'))])
    const invitations = keys.flatMap(key => {
      const [userId, deviceId] = [idInKey(key, 0) as UserId, idInKey(key, 1) as DeviceId]
      return this.#invitationsOf(userId, deviceId).map(callId => `${deviceId} ${callId}`)
    })
    for (const each of invitations) this.#assert(ringing.has(each), `an invitation without a call: ${each}`)
    return invitations.length
  }

  #remembers(userId: UserId, callId: bigint): boolean {
    this.#memories ??= new Set(
      this.#database
        .view(view => [...view.range(CALL_HISTORY)])
        .filter(({ value }) => readMemory(userId, value) !== undefined)
        .map(({ key }) => `${idInKey(key, 0)} ${readPlace(placeInKey(key)).id}`),
    )
    return this.#memories.has(`${userId} ${callId}`)
  }

  #memories: ReadonlySet<string> | undefined

  #invitationsOf(userId: UserId, deviceId: DeviceId): bigint[] {
    const messages = this.#database.view(view =>
      this.#inbox.after(view, userId, deviceId, {
        offset: 0,
        limit: Number.POSITIVE_INFINITY,
        nowMs: ALL_TIMES,
      }),
    )
    return messages.flatMap(({ item }) => callInvitedTo(item) ?? [])
  }
}

/** States in which a call has ended for a person who was never in it. */
const OVER_FOR = new Set<Participant['state']>(['declined', 'busy', 'missed', 'removed'])

/** An audit writes nothing. */
function never(): never {
  throw new Error('an audit only reads')
}

/** Before anything expires. */
const ALL_TIMES = 0

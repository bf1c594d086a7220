/** The assembly of the rooms of calls: their parts, their callers, and the durable changes that they act on. */

import { type CallRoomDeps, callRoomKind } from '../../actors/calls/call-room.ts'
import type { CallRoomMessage } from '../../actors/messages.ts'
import { keptCallReply } from '../api/calls/calls.ts'
import { CommandIntake } from '../api/calls/command-intake.ts'
import type { ApiDeps, AskRoom } from '../api/deps.ts'
import type { OperateRoom } from '../api/server-api/deps.ts'
import type { CallReply, CallRequest } from '../domain/calls/call-command.ts'
import { UnansweredRings } from '../domain/calls/unanswered-rings.ts'
import type { Presence } from '../domain/devices/presence.ts'
import type { CallId, DeviceId, UserId } from '../domain/ids.ts'
import { newEventId } from '../domain/ids.ts'
import type { Rates } from '../domain/rates.ts'
import { TokenBuckets } from '../domain/token-bucket.ts'
import { SignalError } from '../errors.ts'
import { RATE_KEYS_MAX } from '../limits.ts'
import type { DevConsole } from '../operations/console/console.ts'
import type { Metrics } from '../operations/metrics.ts'
import type { Ref } from '../runtime/actor.ts'
import type { ActorSystem } from '../runtime/system.ts'
import type { IdForm } from '../schema/json.ts'
import { CallFactsReader } from '../store/calls/call-facts.ts'
import { CallIndex } from '../store/calls/call-index.ts'
import type { Stores } from './application-stores.ts'

export interface CallRoomsDeps {
  readonly system: Pick<ActorSystem, 'define'>
  readonly stores: Pick<
    Stores,
    'database' | 'calls' | 'accounts' | 'devices' | 'deviceLists' | 'contacts' | 'keptReplies'
  >
  readonly presence: Presence
  /** By default one of its own. */
  readonly index?: CallIndex
  /** Undefined where no rate counts, in development. */
  readonly rateLimits: Rates | undefined
  /** Undefined likewise. */
  readonly requestRates: ApiDeps['requestRates']
  readonly idsAs: IdForm
  /** See `ApiDeps`. */
  readonly admit?: ApiDeps['admit']
  readonly monotonicMs: () => number
  readonly randomBytes: (length: number) => Uint8Array
  readonly metrics: Pick<Metrics, 'callCommands' | 'loweredPushes'>
  /** See `CallRoomDeps`. */
  readonly mediaRoom?: CallRoomDeps['mediaRoom']
  readonly gatewayFor?: CallRoomDeps['gatewayFor']
  /** Called with each decision; absent but in development. */
  readonly devConsole?: Pick<DevConsole, 'onDecided'> | undefined
}

export class CallRooms {
  readonly index: CallIndex
  /** The room of a call, by decimal id. */
  readonly of: (callId: string) => Ref<CallRoomMessage>
  readonly #stores: CallRoomsDeps['stores']
  readonly #intake: CommandIntake

  constructor(deps: CallRoomsDeps) {
    const { system, stores, presence, rateLimits, idsAs, monotonicMs, randomBytes, metrics, devConsole } =
      deps
    const { index = new CallIndex() } = deps
    this.index = index
    this.#stores = stores
    this.#intake = new CommandIntake({ ...stores, requestRates: deps.requestRates })
    this.of = system.define<CallRoomMessage>(
      callRoomKind({
        store: stores.calls,
        index,
        facts: new CallFactsReader({ ...stores, index, randomBytes }),
        presence,
        keptReply: (kind, reply) => keptCallReply(kind, reply, deps),
        ...(rateLimits && {
          rings: new UnansweredRings(new TokenBuckets(rateLimits['call-ring'], RATE_KEYS_MAX)),
          keyRates: new TokenBuckets(rateLimits['call-keys'], RATE_KEYS_MAX),
        }),
        mediaRoom: deps.mediaRoom,
        gatewayFor: deps.gatewayFor,
        newEventId: () => newEventId(randomBytes),
        idsAs,
        admit: deps.admit,
        monotonicMs,
        decisions: metrics.callCommands,
        loweredPushes: metrics.loweredPushes,
        console: devConsole,
      }),
    )
    stores.database.subscribe('signed-out', ({ userId, deviceId }) =>
      this.tellCallsOf(userId, { kind: 'device-signed-out', by: { userId, deviceId } }),
    )
    stores.database.subscribe('device-removed', ({ userId, deviceId }) =>
      this.tellCallsOf(userId, { kind: 'device-removed', by: { userId, deviceId } }),
    )
    stores.database.subscribe('restriction-changed', ({ userId, deviceId, isRestricted }) => {
      if (isRestricted) this.tellCallsOf(userId, { kind: 'device-signed-out', by: { userId, deviceId } })
    })
    stores.database.subscribe('blocked', ({ userId, otherId }) =>
      this.#tellRoomsOf(userId, { kind: 'inviter-blocked', userId, inviterId: otherId }),
    )
    stores.database.subscribe('account-ended', ({ userId }) =>
      this.#tellRoomsOf(userId, { kind: 'account-ended', userId }),
    )
    stores.database.subscribe('account-suspended', ({ userId }) => this.#onSuspended(userId))
  }

  /** Starts the rooms of live calls, as the process starts. */
  resume(): void {
    const { accounts, calls, database } = this.#stores
    const live = [...calls.live()]
    for (const call of live) {
      this.index.put(call)
      // The room sets its timer.
      this.of(String(call.callId)).tellControl({ kind: 'deadline' })
    }
    // A crash may have come between a suspension and the end of its user's calls.
    const people = new Set(live.flatMap(({ participants }) => participants.map(({ userId }) => userId)))
    database.view(view => {
      for (const userId of people)
        if (accounts.read(view, userId)?.suspension !== undefined) this.#onSuspended(userId)
    })
  }

  readonly ask: AskRoom = (callId, command, idempotent) => {
    const room = this.of(String(callId))
    return this.#intake.take(callId, command, idempotent, () =>
      answered(room.ask(reply => ({ kind: 'command', command, idempotent, reply }), ROOM_DEADLINE_MS)),
    )
  }

  readonly operate: OperateRoom = (callId, command, { audit, idempotent }) => {
    const room = this.of(String(callId))
    return this.#intake.once(idempotent, () =>
      answered(
        room.ask(reply => ({ kind: 'operator', command, audit, idempotent, reply }), ROOM_DEADLINE_MS),
      ),
    )
  }

  /** Notes a request of the device, which shows that it is there, with or without a socket. */
  readonly onSeen = (userId: UserId, deviceId: DeviceId): void => {
    for (const callId of this.index.callsWith(userId, deviceId)) {
      const command: CallRequest = { kind: 'device-seen', by: { userId, deviceId } }
      this.of(String(callId)).tell({ kind: 'command', command })
    }
  }

  /** A push that rings at the user has been taken. */
  readonly onRingTaken = (callId: CallId, userId: UserId): void => {
    if (this.index.callsOf(userId).includes(callId))
      this.of(String(callId)).tellControl({ kind: 'ring-taken', userId })
  }

  /** Goes ahead of other messages for the rooms of the user's calls. */
  tellCallsOf(userId: UserId, command: CallRequest): void {
    this.#tellRoomsOf(userId, { kind: 'command', command })
  }

  #onSuspended(userId: UserId): void {
    this.#tellRoomsOf(userId, { kind: 'account-suspended', userId })
  }

  #tellRoomsOf(userId: UserId, message: CallRoomMessage): void {
    for (const callId of this.index.callsOf(userId)) this.of(String(callId)).tellControl(message)
  }
}

async function answered(asking: Promise<CallReply>): Promise<CallReply> {
  try {
    return await asking
  } catch (cause) {
    if (!(cause instanceof SignalError) || cause.code !== 'DEADLINE_EXCEEDED') throw cause
    throw new SignalError('OVERLOADED', 'the call has too much to do', { cause })
  }
}

/** A room answers when its decision is durable: a disk slower than this is a broken disk. */
export const ROOM_DEADLINE_MS = 10_000

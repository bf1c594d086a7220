/**
 * Calls and STOMP put together: the actors of connections, users, topics and rooms, what each is told by the others,
 * and by the application. It holds no rule. Besides `start.ts` the only file of `src` that names actors.
 */

import { callRoomKind, resumeCalls } from '../../actors/call-room.ts'
import { devTopicKind } from '../../actors/dev-topic.ts'
import { leaveTopic } from '../../actors/live-topic.ts'
import type {
  CallRoomMessage,
  DevTopicMessage,
  PresenceMessage,
  Revoked,
  StompConnectionMessage,
} from '../../actors/messages.ts'
import { LiveConnections, presenceKind, tellBadge, tellNews } from '../../actors/presence.ts'
import { stompConnectionKind } from '../../actors/stomp-connection/connection.ts'
import type { ConnectedDevice, StompCalls } from '../../actors/stomp-connection/deps.ts'
import { acceptInto } from '../../actors/stomp-connection/intake.ts'
import { userView } from '../api/accounts/user-view.ts'
import { keptCallReply } from '../api/calls/calls.ts'
import type { AskRoom } from '../api/deps.ts'
import type { CallRequest } from '../domain/calls/call-command.ts'
import { UnansweredRings } from '../domain/calls/unanswered-rings.ts'
import type { CallId, DeviceId, UserId } from '../domain/ids.ts'
import { type Badge, type Notice, newEventId } from '../domain/messages/notice.ts'
import type { Rates } from '../domain/rates.ts'
import { TokenBuckets } from '../domain/token-bucket.ts'
import { SignalError } from '../errors.ts'
import { RATE_KEYS_MAX } from '../limits.ts'
import type { DevConsole } from '../operations/console/console.ts'
import type { Metrics } from '../operations/metrics.ts'
import type { Ref } from '../runtime/actor.ts'
import { wholeMs } from '../runtime/clock.ts'
import type { ActorSystem } from '../runtime/system.ts'
import { eventBody } from '../schema/event.ts'
import { formatJson, type IdForm } from '../schema/json.ts'
import { CallFactsReader } from '../store/calls/call-facts.ts'
import { CallIndex } from '../store/calls/call-index.ts'
import type { Store } from '../store/engine/store.ts'
import type { Accept, Connection } from '../transport/connection.ts'
import { problemOf } from '../transport/problem.ts'
import type { Application } from './application.ts'

export interface SignallingDeps {
  readonly system: ActorSystem
  readonly isDevelopment: boolean
  /** Undefined where no rate counts, in development. */
  readonly rateLimits: Rates | undefined
  readonly idsAs: IdForm
  readonly version: string
  readonly nowMs: () => number
  readonly monotonicMs: () => number
  readonly randomBytes: (length: number) => Uint8Array
  readonly metrics: Metrics
  /** Told what happens; absent but in development. */
  readonly devConsole?: Pick<DevConsole, 'onDecided' | 'onPresence'> | undefined
  /** Told of a fault of ours, with the connection that met it. */
  readonly onFault: (error: unknown, connectionId: string) => void
}

/**
 * Made before the application, which tells it things from the start; `open` joins the two. Until then nobody is
 * connected and nobody calls.
 */
export class Signalling {
  readonly connections = new LiveConnections()
  readonly callIndex = new CallIndex()
  readonly #deps: SignallingDeps
  readonly #users: (userId: string) => Ref<PresenceMessage>
  #rooms: ((callId: string) => Ref<CallRoomMessage>) | undefined
  #stompConnections: ((connectionId: string) => Ref<StompConnectionMessage>) | undefined
  #accept: Accept | undefined
  #isDraining = false

  constructor(deps: SignallingDeps) {
    this.#deps = deps
    const { connections } = this
    this.#users = deps.system.define(
      presenceKind({
        connections,
        onPresence: (userId, deviceId, isOnline) => {
          deps.devConsole?.onPresence(userId, deviceId, isOnline)
          this.#tellCalls(userId, {
            kind: isOnline ? 'device-online' : 'device-offline',
            by: { userId, deviceId },
          })
        },
      }),
    )
  }

  /** Defines what works on the application's stores, and has the rooms of live calls go on. */
  open(application: Application): void {
    const { system } = this.#deps
    this.#rooms = system.define<CallRoomMessage>(this.#roomKind(application))
    const topics = system.define<DevTopicMessage>(devTopicKind())
    this.#stompConnections = system.define<StompConnectionMessage>(this.#connectionKind(application, topics))
    this.#accept = acceptInto(this.#stompConnections, this.#whetherDraining)
    this.subscribeTo(application.stores.database)
    resumeCalls(application.stores.calls.live(), this.callIndex, this.#rooms)
  }

  readonly accept: Accept = connection => {
    if (this.#accept === undefined) throw new Error('connections are taken once the application is open')
    return this.#accept(connection)
  }

  readonly askRoom: AskRoom = async (callId, command, idempotent) => {
    const room = this.#room(String(callId))
    try {
      return await room.ask(reply => ({ kind: 'command', command, idempotent, reply }), ASK_DEADLINE_MS)
    } catch (cause) {
      if (!(cause instanceof SignalError) || cause.code !== 'DEADLINE_EXCEEDED') throw cause
      throw new SignalError('OVERLOADED', 'the call has too much to do', { cause })
    }
  }

  /** A request of the device came: it is there, whether it has a socket or not. */
  readonly onSeen = (userId: UserId, deviceId: DeviceId): void => {
    for (const callId of this.callIndex.callsWith(userId, deviceId)) {
      const command: CallRequest = { kind: 'device-seen', by: { userId, deviceId } }
      this.#room(String(callId)).tell({ kind: 'command', command })
    }
  }

  /**
   * Tells the clients of these connections to reconnect, in this order, spread over `ms`. A connection that comes
   * later is told at once.
   */
  async drain(connections: readonly Pick<Connection, 'id'>[], ms: number): Promise<void> {
    const connectionOf = this.#stompConnections
    if (connectionOf === undefined) return
    this.#isDraining = true
    const steps = Math.min(DRAIN_STEPS, Math.ceil(connections.length / DRAINED_AT_ONCE))
    const share = Math.ceil(connections.length / Math.max(1, steps))
    for (let step = 0; step < steps; step++) {
      for (const { id } of connections.slice(step * share, (step + 1) * share)) {
        connectionOf(id).tellControl({ kind: 'dismissed', why: 'draining' })
      }
      await new Promise(resolve => setTimeout(resolve, ms / DRAIN_STEPS))
    }
  }

  /** Connections and rooms hear of what durable changes say has happened. */
  subscribeTo(store: Pick<Store, 'subscribe'>): void {
    const { connections } = this
    store.subscribe('inbox-news', ({ userId, deviceId }) =>
      tellNews({ connections }, this.#users, userId, deviceId),
    )
    store.subscribe('badge-changed', ({ userId }) => tellBadge({ connections }, this.#users, userId))
    store.subscribe('session-ended', ({ userId, sessionId }) =>
      this.#revoke(userId, { kind: 'session', sessionId }),
    )
    store.subscribe('signed-out', ({ userId, deviceId }) =>
      this.#tellCalls(userId, { kind: 'device-signed-out', by: { userId, deviceId } }),
    )
    store.subscribe('device-removed', ({ userId, deviceId }) => {
      this.#revoke(userId, { kind: 'device', deviceId })
      this.#tellCalls(userId, { kind: 'device-removed', by: { userId, deviceId } })
    })
    store.subscribe('blocked', ({ userId, otherId }) =>
      this.#tellRooms(userId, { kind: 'inviter-blocked', userId, inviterId: otherId }),
    )
    store.subscribe('account-ended', ({ userId }) =>
      this.#tellRooms(userId, { kind: 'account-ended', userId }),
    )
  }

  /** Ahead of what else waits for the rooms of the user's calls. */
  #tellRooms(userId: UserId, message: CallRoomMessage): void {
    for (const callId of this.callIndex.callsOf(userId)) this.#room(String(callId)).tellControl(message)
  }

  #room(callId: string): Ref<CallRoomMessage> {
    if (this.#rooms === undefined) throw new Error('rooms are there once the application is open')
    return this.#rooms(callId)
  }

  #tellCalls(userId: UserId, command: CallRequest): void {
    for (const callId of this.callIndex.callsOf(userId)) {
      this.#room(String(callId)).tellControl({ kind: 'command', command })
    }
  }

  #revoke(userId: UserId, revoked: Revoked): void {
    // Also when nobody is known to be there: who has just signed in may be on the way to it.
    this.#users(String(userId)).tellControl({ kind: 'revoked', revoked })
  }

  #roomKind({ stores }: Application) {
    const { rateLimits, idsAs, monotonicMs, randomBytes, metrics, devConsole } = this.#deps
    return callRoomKind({
      store: stores.calls,
      index: this.callIndex,
      facts: new CallFactsReader({ ...stores, index: this.callIndex, randomBytes }),
      presence: this.connections,
      keptReply: (kind, reply) => keptCallReply(kind, reply, idsAs),
      ...(rateLimits && {
        rings: new UnansweredRings(new TokenBuckets(rateLimits['call-ring'], RATE_KEYS_MAX)),
      }),
      newEventId: this.#newEventId,
      idsAs,
      monotonicMs,
      onDecided(command, call, effects) {
        metrics.callCommands.inc({ kind: command.kind })
        devConsole?.onDecided(command, call, effects)
      },
    })
  }

  #connectionKind({ stores, authentication }: Application, topics: (name: string) => Ref<DevTopicMessage>) {
    const { version, isDevelopment, rateLimits, idsAs, metrics, onFault } = this.#deps
    // V8 keeps whole numbers in place; each fraction would be an object, for each connection and frame.
    const monotonicMs = wholeMs(this.#deps.monotonicMs)
    const failedConnects = rateLimits && new TokenBuckets(rateLimits['failed-connect'], RATE_KEYS_MAX)
    return stompConnectionKind({
      server: `callsign/${version}`,
      isDevelopment,
      areRatesLimited: rateLimits !== undefined,
      isDraining: this.#whetherDraining,
      monotonicMs,
      newEventId: this.#newEventId,
      authenticate: authorization => authentication.requesterOf(authorization),
      failedConnects,
      inbox: stores.deviceInbox,
      badgeOf: userId => stores.database.view(view => stores.badgeOf(view, userId)),
      eventBody: (notice: Notice, { userId, deviceId }: ConnectedDevice, badge: Badge | undefined) =>
        formatJson(
          eventBody(notice, {
            deviceId,
            user: () => stores.database.view(view => userView(view, stores, userId, deviceId)),
            badge,
          }),
          idsAs,
        ),
      calls: this.#calls,
      users: this.#users,
      topics,
      problemOf,
      onFault,
      onEnded: reason => metrics.stompEndings.inc({ reason }),
    })
  }

  readonly #whetherDraining = (): boolean => this.#isDraining

  readonly #newEventId = (): string => newEventId(this.#deps.randomBytes)

  readonly #calls: StompCalls = {
    command: (callId, by, said) => this.askRoom(BigInt(callId) as CallId, { ...said, by }),
    subscribe: async (callId, by, subscriber, tag) => {
      const room = this.#room(callId)
      await room.ask(reply => ({ kind: 'subscribe', by, subscriber, tag, reply }), ASK_DEADLINE_MS)
    },
    unsubscribe: (callId, connectionId) => leaveTopic(this.#room(callId), connectionId),
  }
}

/** A room answers when its decision is durable: a disk slower than this is a broken disk. */
const ASK_DEADLINE_MS = 10_000
const DRAIN_STEPS = 20
const DRAINED_AT_ONCE = 50

/**
 * The assembly of STOMP: the actors of connections, of users' presence and of topics, and their news of durable
 * changes.
 */

import { devTopicKind } from '../../actors/dev-topic.ts'
import { frontPresenceKind } from '../../actors/front-presence.ts'
import { leaveTopic } from '../../actors/live-topic.ts'
import type {
  DevTopicMessage,
  PresenceMessage,
  Revoked,
  StompConnectionMessage,
} from '../../actors/messages.ts'
import {
  type DismissalOf,
  type LiveConnections,
  presenceKind,
  tellBadge,
  tellNews,
} from '../../actors/presence.ts'
import { stompConnectionKind } from '../../actors/stomp-connection/connection.ts'
import type { StompCalls, StompConnectionDeps } from '../../actors/stomp-connection/deps.ts'
import { EventFrames } from '../../actors/stomp-connection/event-frames.ts'
import { acceptInto, type RunConnect } from '../../actors/stomp-connection/intake.ts'
import { type UserViewDeps, userView } from '../api/accounts/user-view.ts'
import { chooseLanguage, type Language } from '../delivery/texts.ts'
import { lasts } from '../domain/accounts/session.ts'
import type { UserId } from '../domain/ids.ts'
import { newEventId } from '../domain/ids.ts'
import type { DevConsole } from '../operations/console/console.ts'
import type { Metrics } from '../operations/metrics.ts'
import type { Ref } from '../runtime/actor.ts'
import { wholeMs } from '../runtime/clock.ts'
import type { ActorSystem } from '../runtime/system.ts'
import type { Admit } from '../schema/call.ts'
import type { IdForm } from '../schema/json.ts'
import type { Accept, Connection } from '../transport/connection.ts'
import { problemOf } from '../transport/problem.ts'
import type { ReadStores } from './application-stores.ts'
import { type CallRooms, ROOM_DEADLINE_MS } from './call-rooms.ts'

/** The presence of a user, by decimal id. */
type PresenceOf = (userId: string) => Ref<PresenceMessage>

/** The actors that connections speak to. */
export interface SpokenTo {
  readonly users: PresenceOf
  readonly topics: (name: string) => Ref<DevTopicMessage>
  readonly rooms: Pick<CallRooms, 'of' | 'ask'>
}

export interface SignallingDeps {
  readonly system: Pick<ActorSystem, 'define'>
  readonly stores: Pick<ReadStores, 'database' | 'deviceInbox' | keyof UserViewDeps>
  readonly actors: SpokenTo
  readonly connections: LiveConnections
  /** See `StompConnectionDeps`. */
  readonly authenticate: StompConnectionDeps['authenticate']
  readonly runConnect: RunConnect
  readonly hasTestTopics: boolean
  /** Undefined where no rate counts, in development. */
  readonly admission: StompConnectionDeps['admission']
  readonly idsAs: IdForm
  /** See `Admit`. */
  readonly admit?: Admit | undefined
  /** The language of refusals for clients that ask for none. */
  readonly language: Language
  readonly version: string
  readonly monotonicMs: () => number
  readonly randomBytes: (length: number) => Uint8Array
  readonly metrics: Pick<Metrics, 'stompEndings'>
  /** Called with a fault of ours, and the connection that met it. */
  readonly onFault: (error: unknown, connectionId: string) => void
}

export class Signalling {
  /** Takes a connection that has just been opened. */
  readonly accept: Accept
  readonly #deps: SignallingDeps
  readonly #users: PresenceOf
  readonly #stompConnections: (connectionId: string) => Ref<StompConnectionMessage>
  #isDraining = false

  constructor(deps: SignallingDeps) {
    const { system, stores, connections, actors } = deps
    this.#deps = deps
    this.#users = actors.users
    this.#stompConnections = system.define<StompConnectionMessage>(this.#connectionKind())
    this.accept = acceptInto(this.#stompConnections, this.#whetherDraining, deps.runConnect)
    stores.database.subscribe('inbox-news', ({ userId, deviceId }) => tellNews(connections, userId, deviceId))
    stores.database.subscribe('badge-changed', ({ userId }) => tellBadge(connections, userId))
    stores.database.subscribe('session-ended', ({ userId, sessionId }) =>
      this.#revoke(userId, { kind: 'session', sessionId }),
    )
    stores.database.subscribe('device-removed', ({ userId, deviceId }) =>
      this.#revoke(userId, { kind: 'device', deviceId }),
    )
    stores.database.subscribe('restriction-changed', ({ userId, deviceId }) =>
      this.#revoke(userId, { kind: 'restriction', deviceId }),
    )
  }

  /**
   * Tells the clients of these connections to reconnect, in this order, spread over `ms`. A connection that comes
   * later hears it at once. `sleep` waits between two steps.
   */
  async drain(
    connections: readonly Pick<Connection, 'id'>[],
    ms: number,
    sleep: (ms: number) => Promise<unknown>,
  ): Promise<void> {
    this.#isDraining = true
    const steps = Math.min(DRAIN_STEPS, Math.ceil(connections.length / DRAINED_AT_ONCE))
    const share = Math.ceil(connections.length / Math.max(1, steps))
    for (let step = 0; step < steps; step++) {
      for (const { id } of connections.slice(step * share, (step + 1) * share)) {
        this.#stompConnections(id).tellControl({ kind: 'dismissed', why: 'draining' })
      }
      await sleep(ms / DRAIN_STEPS)
    }
  }

  /** In a front: has the clients of these connections connect again, but for those that follow a call. */
  move(connections: Iterable<Pick<Connection, 'id'>>): void {
    for (const { id } of connections) this.#stompConnections(id).tellControl({ kind: 'moved' })
  }

  /** In a front: ends connections that depend on news of the lost writer which the next one doesn't have. */
  onWriterLost(connections: Iterable<Pick<Connection, 'id'>>): void {
    for (const { id } of connections) this.#stompConnections(id).tellControl({ kind: 'writer-lost' })
  }

  #revoke(userId: UserId, revoked: Revoked): void {
    // Also without a known connection: a user who has just signed in may be on the way.
    this.#users(String(userId)).tellControl({ kind: 'revoked', revoked })
  }

  #connectionKind() {
    const {
      version,
      hasTestTopics,
      admission,
      idsAs,
      admit,
      language,
      metrics,
      stores,
      authenticate,
      onFault,
    } = this.#deps
    // V8 keeps whole numbers in place; each fraction would be an object, for each connection and frame.
    const monotonicMs = wholeMs(this.#deps.monotonicMs)
    return stompConnectionKind({
      server: `callsign/${version}`,
      hasTestTopics,
      areRatesLimited: admission !== undefined,
      isDraining: this.#whetherDraining,
      monotonicMs,
      newEventId: this.#newEventId,
      authenticate,
      restrictionOf: stores.restrictions.current,
      admission,
      inbox: stores.deviceInbox,
      badgeOf: userId => stores.database.view(view => stores.badgeOf(view, userId)),
      frames: new EventFrames({
        idsAs,
        admit,
        userOf: ({ userId, deviceId }) =>
          stores.database.view(view => userView(view, stores, userId, deviceId)),
      }),
      calls: this.#callsOf(),
      users: this.#users,
      topics: this.#deps.actors.topics,
      problemOf,
      languageOf: header => chooseLanguage(header, language),
      onFault,
      onEnded: reason => metrics.stompEndings.inc({ reason }),
    })
  }

  readonly #whetherDraining = (): boolean => this.#isDraining

  readonly #newEventId = (): string => newEventId(this.#deps.randomBytes)

  #callsOf(): StompCalls {
    const { rooms } = this.#deps.actors
    return {
      command: rooms.ask,
      subscribe: async (callId, by, subscriber, tag) => {
        const room = rooms.of(callId)
        await room.ask(reply => ({ kind: 'subscribe', by, subscriber, tag, reply }), ROOM_DEADLINE_MS)
      },
      unsubscribe: (callId, connectionId) => leaveTopic(rooms.of(callId), connectionId),
    }
  }
}

/** By what the store says now. */
export function dismissalBy({
  sessions,
  restrictions,
}: {
  readonly sessions: Pick<ReadStores['sessions'], 'current'>
  readonly restrictions: Pick<ReadStores['restrictions'], 'current'>
}): DismissalOf {
  return (userId, { deviceId, sessionName, isRestricted }) => {
    if (!lasts(sessions.current(sessionName))) return 'session_revoked'
    const isRestrictedNow = restrictions.current({ userId, deviceId }) !== undefined
    return isRestricted === isRestrictedNow ? undefined : 'restriction_changed'
  }
}

/** In the writer: its own actors. */
export function ownActors(
  system: Pick<ActorSystem, 'define'>,
  rooms: Pick<CallRooms, 'of' | 'ask' | 'tellCallsOf'>,
  {
    connections,
    dismissalOf,
    devConsole,
  }: {
    readonly connections: LiveConnections
    readonly dismissalOf: DismissalOf
    /** Shows connections that come and go; absent but in development. */
    readonly devConsole?: Pick<DevConsole, 'onPresence'> | undefined
  },
): SpokenTo {
  const users = presenceKind(connections, dismissalOf, (userId, deviceId, isOnline) => {
    devConsole?.onPresence(userId, deviceId, isOnline)
    const kind = isOnline ? 'device-online' : 'device-offline'
    rooms.tellCallsOf(userId, { kind, by: { userId, deviceId } })
  })
  return {
    users: system.define<PresenceMessage>(users),
    topics: system.define<DevTopicMessage>(devTopicKind()),
    rooms,
  }
}

/** In a front: the writer's actors. The front's own actors pass news that it finds itself to its connections. */
export function actorsOfFront(
  system: Pick<ActorSystem, 'define'>,
  connections: LiveConnections,
  writers: SpokenTo,
): SpokenTo {
  const users = frontPresenceKind(connections, writers.users)
  return { ...writers, users: system.define<PresenceMessage>(users) }
}

const DRAIN_STEPS = 20
const DRAINED_AT_ONCE = 50

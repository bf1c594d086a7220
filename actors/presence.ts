/**
 * Presence of one user (id = the user's id, decimal): the live connections of the user's devices, the newest for each
 * device. Ends connections of ended sessions and deleted devices, and tells calls which devices come and go.
 *
 * `LiveConnections` holds the connections beside the actors. So they outlive an actor that failed or was passivated, and
 * any part of the server can ask whether a device is connected, or tell it news.
 */

import type { Presence } from '../src/domain/devices/presence.ts'
import type { DeviceId, UserId } from '../src/domain/ids.ts'
import { CONNECTIONS_PER_USER_MAX } from '../src/limits.ts'
import type { Actor, ActorKind } from '../src/runtime/actor.ts'
import { sessionName } from '../src/store/accounts/session-store.ts'
import type {
  Dismissal,
  LiveConnection,
  PresenceMessage,
  Revoked,
  StompConnectionMessage,
} from './messages.ts'

/** The live connections of all users, oldest first for each user. */
export class LiveConnections implements Presence {
  readonly #byUser = new Map<UserId, readonly LiveConnection[]>()
  #count = 0

  get count(): number {
    return this.#count
  }

  isConnected(userId: UserId, deviceId: DeviceId): boolean {
    return this.of(userId).some(connection => connection.deviceId === deviceId)
  }

  hasRestricted(userId: UserId): boolean {
    return this.of(userId).some(({ isRestricted }) => isRestricted)
  }

  of(userId: UserId): readonly LiveConnection[] {
    return this.#byUser.get(userId) ?? NONE
  }

  /** Each with its user. */
  *all(): Iterable<readonly [UserId, LiveConnection]> {
    for (const [userId, connections] of this.#byUser) for (const each of connections) yield [userId, each]
  }

  set(userId: UserId, connections: readonly LiveConnection[]): void {
    this.#count += connections.length - this.of(userId).length
    if (connections.length === 0) this.#byUser.delete(userId)
    else this.#byUser.set(userId, connections)
  }
}

/**
 * Why a connection that comes can't stay, if so: its session has ended, or its device may do more or less. A front may have
 * let it in that did not know of it yet.
 */
export type DismissalOf = (userId: UserId, connection: LiveConnection) => Dismissal | undefined
/** Notified when a device comes or goes: its calls have to know. */
type OnPresence = (userId: UserId, deviceId: DeviceId, isOnline: boolean) => void

export function presenceKind(
  connections: LiveConnections,
  dismissalOf: DismissalOf,
  onPresence: OnPresence,
): ActorKind<PresenceMessage> {
  return {
    // Operators know the kind by this name: metrics carry it as a label.
    kind: 'presence',
    // All its messages travel in the control lane.
    mailboxMessagesMax: 0,
    onFailure: 'rebuild',
    idleMs: IDLE_MS,
    create: id => new UserPresence(connections, dismissalOf, onPresence, id),
  }
}

/**
 * Tells the device's connections, but none that finds news by itself. One that attaches after this reads the inbox by itself.
 * Departure from a message to the user's actor: a turn for each message of a call took as long as to find its connection.
 */
export function tellNews(connections: LiveConnections, userId: UserId, deviceId: DeviceId): void {
  for (const { deviceId: each, ref, isFollower } of connections.of(userId)) {
    if (each === deviceId && isFollower !== true) ref.tellOr(NEWS, OVERRUN)
  }
}

/** Tells a user's connections that the badge may have changed. */
export function tellBadge(connections: LiveConnections, userId: UserId): void {
  for (const { ref } of connections.of(userId)) ref.tellOr(BADGE, OVERRUN)
}

class UserPresence implements Actor<PresenceMessage> {
  readonly #live: LiveConnections
  readonly #dismissalOf: DismissalOf
  readonly #onPresence: OnPresence
  readonly #userId: UserId

  constructor(live: LiveConnections, dismissalOf: DismissalOf, onPresence: OnPresence, id: string) {
    this.#live = live
    this.#dismissalOf = dismissalOf
    this.#onPresence = onPresence
    this.#userId = BigInt(id) as UserId
  }

  receive(message: PresenceMessage): void {
    switch (message.kind) {
      case 'attached':
        return this.#onAttached(message.connection)
      case 'detached':
        return this.#onDetached(message.connectionId)
      case 'revoked':
        return this.#onRevoked(message.revoked)
    }
  }

  #onAttached(connection: LiveConnection): void {
    const { deviceId } = connection
    const why = this.#dismissalOf(this.#userId, connection)
    if (why !== undefined) return this.#dismiss(connection, why)
    const before = this.#connections
    const replaced = before.find(each => each.deviceId === deviceId)
    const others = before.filter(each => each.deviceId !== deviceId)
    this.#keep(others.slice(-(CONNECTIONS_PER_USER_MAX - 1)).concat(connection))
    if (replaced !== undefined) this.#dismiss(replaced, 'replaced')
    else this.#tellPresence(deviceId, true)
    for (const oldest of others.slice(0, -(CONNECTIONS_PER_USER_MAX - 1))) {
      this.#dismiss(oldest, 'too_many_connections')
      this.#tellPresence(oldest.deviceId, false)
    }
    // It may have read inbox and badge already; news since then reached no connection.
    connection.ref.tellOr(ATTACHED, OVERRUN)
  }

  #onDetached(connectionId: string): void {
    const gone = this.#connections.find(({ ref }) => ref.id === connectionId)
    // A newer connection replaced it, so its device is still here.
    if (gone === undefined) return
    this.#keep(this.#connections.filter(each => each !== gone))
    this.#tellPresence(gone.deviceId, false)
  }

  #onRevoked(revoked: Revoked): void {
    const why = DISMISSALS[revoked.kind]
    const gone = this.#connections.filter(connection => isRevoked(connection, revoked))
    this.#keep(this.#connections.filter(connection => !gone.includes(connection)))
    for (const connection of gone) {
      this.#dismiss(connection, why)
      this.#tellPresence(connection.deviceId, false)
    }
  }

  get #connections(): readonly LiveConnection[] {
    return this.#live.of(this.#userId)
  }

  #keep(connections: readonly LiveConnection[]): void {
    this.#live.set(this.#userId, connections)
  }

  #dismiss({ ref }: LiveConnection, why: Dismissal): void {
    ref.tellControl({ kind: 'dismissed', why })
  }

  #tellPresence(deviceId: DeviceId, isOnline: boolean): void {
    this.#onPresence(this.#userId, deviceId, isOnline)
  }
}

function isRevoked(connection: LiveConnection, revoked: Revoked): boolean {
  switch (revoked.kind) {
    case 'session':
      return connection.sessionName === sessionName(revoked.sessionId)
    case 'device':
    case 'restriction':
      return connection.deviceId === revoked.deviceId
  }
}

const DISMISSALS: Readonly<Record<Revoked['kind'], Dismissal>> = {
  session: 'session_revoked',
  device: 'device_removed',
  restriction: 'restriction_changed',
}
const NONE: readonly LiveConnection[] = []
const ATTACHED: StompConnectionMessage = { kind: 'attached' }
const NEWS: StompConnectionMessage = { kind: 'news' }
const BADGE: StompConnectionMessage = { kind: 'badge' }
const OVERRUN: StompConnectionMessage = { kind: 'overrun' }
const IDLE_MS = 60_000

/**
 * A user's live connections (id = the user's id, decimal): one for each device, the newest. It passes on that a
 * device's inbox has something new and that the badge may be another, ends connections whose session or device is gone, and tells calls who is there.
 *
 * The connections themselves are kept beside the actors: they outlive an actor that failed or was passivated, so that
 * nobody becomes deaf by it, and whether a device is connected can be asked at any time.
 */

import type { DeviceId, UserId } from '../src/domain/ids.ts'
import { CONNECTIONS_PER_USER_MAX } from '../src/limits.ts'
import type { Actor, ActorKind, Ref } from '../src/runtime/actor.ts'
import { sessionName } from '../src/store/session-store.ts'
import type { Dismissal, StompSessionMessage } from './stomp-session/world.ts'

export type UserSessionMessage =
  /** A device has signed in. In the control lane, like everything but `news` and `badge`. */
  | { readonly kind: 'attached'; readonly connection: LiveConnection }
  | { readonly kind: 'detached'; readonly connectionId: string }
  /** The inbox of a device has something new. */
  | { readonly kind: 'news'; readonly deviceId: DeviceId }
  /** The user's badge may be another. */
  | { readonly kind: 'badge' }
  | { readonly kind: 'revoked'; readonly revoked: Revoked }

/** What is no more: a session, or a device with its sessions. */
export type Revoked =
  | { readonly kind: 'session'; readonly sessionId: Uint8Array }
  | { readonly kind: 'device'; readonly deviceId: DeviceId }

export interface LiveConnection {
  readonly id: string
  readonly deviceId: DeviceId
  /** The session's id as `sessionName` has it. */
  readonly sessionName: string
  readonly session: Ref<StompSessionMessage>
}

/** The live connections of everybody, oldest first for each user. */
export class LiveConnections {
  readonly #byUser = new Map<string, readonly LiveConnection[]>()
  #count = 0

  get count(): number {
    return this.#count
  }

  isConnected(userId: UserId, deviceId: DeviceId): boolean {
    return this.of(String(userId)).some(connection => connection.deviceId === deviceId)
  }

  of(userId: string): readonly LiveConnection[] {
    return this.#byUser.get(userId) ?? NONE
  }

  set(userId: string, connections: readonly LiveConnection[]): void {
    this.#count += connections.length - this.of(userId).length
    if (connections.length === 0) this.#byUser.delete(userId)
    else this.#byUser.set(userId, connections)
  }
}

export interface UserSessionWorld {
  readonly connections: LiveConnections
  /** A device has come, or has gone: for the calls it has a part in. */
  readonly onPresence: (userId: UserId, deviceId: DeviceId, isOnline: boolean) => void
}

export function userSessionKind(world: UserSessionWorld): ActorKind<UserSessionMessage> {
  return {
    kind: 'user-session',
    mailboxMessagesMax: MAILBOX_MESSAGES_MAX,
    onFailure: 'rebuild',
    idleMs: IDLE_MS,
    create: id => new UserSession(world, id),
  }
}

/** Tells a device's connection, if it has one, that its inbox has something new. */
export function tellNews(
  { connections }: Pick<UserSessionWorld, 'connections'>,
  users: (userId: string) => Ref<UserSessionMessage>,
  userId: UserId,
  deviceId: DeviceId,
): void {
  if (!connections.isConnected(userId, deviceId)) return
  const user = users(String(userId))
  // News that is not passed on is a message that waits until the next one.
  if (user.tell({ kind: 'news', deviceId }) === 'overloaded') user.tellControl({ kind: 'news', deviceId })
}

/** Tells a user's connections, if there are any, that the badge may be another. */
export function tellBadge(
  { connections }: Pick<UserSessionWorld, 'connections'>,
  users: (userId: string) => Ref<UserSessionMessage>,
  userId: UserId,
): void {
  if (connections.of(String(userId)).length === 0) return
  const user = users(String(userId))
  if (user.tell({ kind: 'badge' }) === 'overloaded') user.tellControl({ kind: 'badge' })
}

class UserSession implements Actor<UserSessionMessage> {
  readonly #world: UserSessionWorld
  readonly #id: string

  constructor(world: UserSessionWorld, id: string) {
    this.#world = world
    this.#id = id
  }

  receive(message: UserSessionMessage): void {
    switch (message.kind) {
      case 'attached':
        return this.#onAttached(message.connection)
      case 'detached':
        return this.#onDetached(message.connectionId)
      case 'news':
        return this.#onNews(message.deviceId)
      case 'badge':
        for (const { session } of this.#connections) this.#pass(session, BADGE)
        return
      case 'revoked':
        return this.#onRevoked(message.revoked)
    }
  }

  #onAttached(connection: LiveConnection): void {
    const { deviceId } = connection
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
    // It may have looked into the inbox and at the badge already; what came since was news for nobody.
    this.#pass(connection.session, ATTACHED)
  }

  #onDetached(connectionId: string): void {
    const gone = this.#connections.find(({ id }) => id === connectionId)
    // It was replaced, and its device is still there.
    if (gone === undefined) return
    this.#keep(this.#connections.filter(each => each !== gone))
    this.#tellPresence(gone.deviceId, false)
  }

  #onNews(deviceId: DeviceId): void {
    for (const { deviceId: each, session } of this.#connections) {
      if (each === deviceId) this.#pass(session, NEWS)
    }
  }

  #onRevoked(revoked: Revoked): void {
    const why = revoked.kind === 'device' ? 'device_removed' : 'session_revoked'
    const gone = this.#connections.filter(connection => isRevoked(connection, revoked))
    this.#keep(this.#connections.filter(connection => !gone.includes(connection)))
    for (const connection of gone) {
      this.#dismiss(connection, why)
      this.#tellPresence(connection.deviceId, false)
    }
  }

  get #connections(): readonly LiveConnection[] {
    return this.#world.connections.of(this.#id)
  }

  #keep(connections: readonly LiveConnection[]): void {
    this.#world.connections.set(this.#id, connections)
  }

  #dismiss({ session }: LiveConnection, why: Dismissal): void {
    session.tellControl({ kind: 'dismissed', why })
  }

  #pass(session: Ref<StompSessionMessage>, message: StompSessionMessage): void {
    if (session.tell(message) === 'overloaded') session.tellControl(OVERRUN)
  }

  #tellPresence(deviceId: DeviceId, isOnline: boolean): void {
    this.#world.onPresence(BigInt(this.#id) as UserId, deviceId, isOnline)
  }
}

function isRevoked(connection: LiveConnection, revoked: Revoked): boolean {
  switch (revoked.kind) {
    case 'session':
      return connection.sessionName === sessionName(revoked.sessionId)
    case 'device':
      return connection.deviceId === revoked.deviceId
  }
}

const NONE: readonly LiveConnection[] = []
const ATTACHED: StompSessionMessage = { kind: 'attached' }
const NEWS: StompSessionMessage = { kind: 'news' }
const BADGE: StompSessionMessage = { kind: 'badge' }
const OVERRUN: StompSessionMessage = { kind: 'overrun' }
/** Each is a word that there is something. */
const MAILBOX_MESSAGES_MAX = 1_024
const IDLE_MS = 60_000

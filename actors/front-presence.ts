/**
 * Presence of one user at a front (id = the user's id, decimal): the user's connections that are here. The front tells them
 * of news, which it finds in the changes that it follows, so that a message to many devices costs the writer nothing for each.
 * Everything else the writer tells them itself: it hears of each that comes and goes.
 */

import type { UserId } from '../src/domain/ids.ts'
import type { Actor, ActorKind, Ref } from '../src/runtime/actor.ts'
import type { LiveConnection, PresenceMessage } from './messages.ts'
import type { LiveConnections } from './presence.ts'

/** `connections` are those of this front, `atWriter` the user's presence at the writer. */
export function frontPresenceKind(
  connections: LiveConnections,
  atWriter: (userId: string) => Ref<PresenceMessage>,
): ActorKind<PresenceMessage> {
  return {
    kind: 'presence',
    // All its messages travel in the control lane.
    mailboxMessagesMax: 0,
    onFailure: 'rebuild',
    idleMs: IDLE_MS,
    create: id => new FrontPresence(connections, atWriter(id), id),
  }
}

class FrontPresence implements Actor<PresenceMessage> {
  readonly #connections: LiveConnections
  readonly #atWriter: Ref<PresenceMessage>
  readonly #userId: UserId

  constructor(connections: LiveConnections, atWriter: Ref<PresenceMessage>, id: string) {
    this.#connections = connections
    this.#atWriter = atWriter
    this.#userId = BigInt(id) as UserId
  }

  receive(message: PresenceMessage): void {
    switch (message.kind) {
      case 'attached':
        return this.#onAttached(message.connection)
      case 'detached':
        this.#keep(this.#here.filter(({ ref }) => ref.id !== message.connectionId))
        return this.#atWriter.tellControl(message)
      case 'revoked':
        // The writer tells them.
        return
    }
  }

  #onAttached(connection: LiveConnection): void {
    this.#keep(this.#here.concat(connection))
    this.#atWriter.tellControl({ kind: 'attached', connection: { ...connection, isFollower: true } })
  }

  get #here(): readonly LiveConnection[] {
    return this.#connections.of(this.#userId)
  }

  #keep(connections: readonly LiveConnection[]): void {
    this.#connections.set(this.#userId, connections)
  }
}

const IDLE_MS = 60_000

/** From sockets into the mailboxes of their actors. */

import type { Ref } from '../../src/runtime/actor.ts'
import type { Accept, ConnectionEvents } from '../../src/transport/connection.ts'
import type { StompConnectionMessage } from '../messages.ts'
import type { StompConnectionDeps } from './deps.ts'
import { Unread } from './unread.ts'

/** Gives each socket its actor. */
export function acceptInto(
  connections: (connectionId: string) => Ref<StompConnectionMessage>,
  isDraining: StompConnectionDeps['isDraining'],
): Accept {
  return connection => {
    const ref = connections(connection.id)
    const unread = new Unread()
    // A server that is about to end takes no messages either.
    if (ref.tell({ kind: 'open', connection, unread }) === 'overloaded') {
      if (isDraining()) connection.end(1012, 'draining')
      else connection.end(1013, 'overloaded')
    }
    return new Intake(ref, unread)
  }
}

class Intake implements ConnectionEvents {
  readonly #ref: Ref<StompConnectionMessage>
  readonly #unread: Unread

  constructor(ref: Ref<StompConnectionMessage>, unread: Unread) {
    this.#ref = ref
    this.#unread = unread
  }

  onBytes(bytes: Uint8Array): void {
    // Lent until this returns, and the actor's turn may come later.
    const added = this.#unread.add(Buffer.from(bytes))
    if (added === 'waiting') return
    const isFull = added === 'full' || this.#ref.tell(BYTES) === 'overloaded'
    if (isFull) this.#ref.tellControl({ kind: 'overrun' })
  }

  onDrain(): void {
    this.#ref.tellControl({ kind: 'drained' })
  }

  onClosed(): void {
    // Behind what came before it, as long as there is room.
    this.#ref.tellOr({ kind: 'closed' }, { kind: 'closed' })
  }
}

const BYTES: StompConnectionMessage = { kind: 'bytes' }

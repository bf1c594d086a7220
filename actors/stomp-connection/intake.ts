/** From sockets into the mailboxes of their actors. */

import type { Ref } from '../../src/runtime/actor.ts'
import type { Accept, ConnectionEvents } from '../../src/transport/connection.ts'
import type { StompConnectionMessage } from '../messages.ts'
import type { StompConnectionDeps } from './deps.ts'
import { Unread } from './unread.ts'

/** Has the first octets of a client read when their turn has come. `isConnect`: they may hold its CONNECT. */
export type RunConnect = (read: () => void, isConnect: boolean) => void

/** Gives each socket its actor. */
export function acceptInto(
  connections: (connectionId: string) => Ref<StompConnectionMessage>,
  isDraining: StompConnectionDeps['isDraining'],
  runConnect: RunConnect,
): Accept {
  return connection => {
    const ref = connections(connection.id)
    const unread = new Unread()
    // A server that is about to end takes no messages either.
    if (ref.tell({ kind: 'open', connection, unread }) === 'overloaded') {
      if (isDraining()) connection.end(1012, 'draining')
      else connection.end(1013, 'overloaded')
    }
    return new Intake(ref, unread, runConnect)
  }
}

class Intake implements ConnectionEvents {
  readonly #ref: Ref<StompConnectionMessage>
  readonly #unread: Unread
  readonly #runConnect: RunConnect
  /** Pieces still to come that wait for their turn. */
  #newPieces = NEW_PIECES
  /** Whether no frame has ended so far. */
  #isConnect = true
  #isOver = false

  constructor(ref: Ref<StompConnectionMessage>, unread: Unread, runConnect: RunConnect) {
    this.#ref = ref
    this.#unread = unread
    this.#runConnect = runConnect
  }

  onBytes(bytes: Uint8Array): void {
    // Lent until this returns, and the actor's turn may come later.
    const added = this.#unread.add(Buffer.from(bytes))
    if (added === 'waiting') return
    if (added === 'full') return this.#ref.tellControl({ kind: 'overrun' })
    if (this.#newPieces === 0) return this.#tellBytes()
    this.#newPieces--
    const isConnect = this.#isConnect
    this.#isConnect &&= !bytes.includes(FRAME_END)
    this.#runConnect(() => {
      if (!this.#isOver) this.#tellBytes()
    }, isConnect)
  }

  #tellBytes(): void {
    if (this.#ref.tell(BYTES) === 'overloaded') this.#ref.tellControl({ kind: 'overrun' })
  }

  onDrain(): void {
    this.#ref.tellControl({ kind: 'drained' })
  }

  onClosed(): void {
    this.#isOver = true
    // Behind what came before it, as long as there is room.
    this.#ref.tellOr({ kind: 'closed' }, { kind: 'closed' })
  }
}

/** A CONNECT, then the subscriptions. */
const NEW_PIECES = 2
const FRAME_END = 0
const BYTES: StompConnectionMessage = { kind: 'bytes' }

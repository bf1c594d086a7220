/**
 * A front's port to the writer, over one link after another as the writer changes. Each writer needs the list of
 * connections, so the port keeps them and announces them to the next writer.
 */

import type { PendingAsk } from '../runtime/ask.ts'
import type { Port } from '../runtime/port.ts'
import type { Link } from './link/link.ts'
import type { MessageToWriter } from './messages.ts'

interface Attached {
  readonly userId: string
  readonly message: unknown
}

export class WriterPort implements Port {
  #link: Link | undefined
  /** By connection. */
  readonly #attached = new Map<string, Attached>()
  readonly isClosed = false

  /** Messages now go over this link; undefined while there is no writer. */
  use(link: Link | undefined): void {
    this.#link = link
    if (link === undefined) return
    for (const { userId, message } of this.#attached.values()) link.tellControl(PRESENCE, userId, message)
  }

  /** To the writer, if there is one; it may wait some milliseconds for the next message. */
  sendSoon(message: MessageToWriter): void {
    this.#link?.sendSoon(message)
  }

  tell(kind: string, id: string, message: unknown, instead?: unknown): boolean {
    return this.#link?.tell(kind, id, message, instead) ?? false
  }

  tellControl(kind: string, id: string, message: unknown): boolean {
    const isKept = kind === PRESENCE && this.#keep(id, message as PresenceNews)
    return (this.#link?.tellControl(kind, id, message) ?? false) || isKept
  }

  ask(kind: string, id: string, ask: PendingAsk<never>, deadlineMs: number): boolean {
    return this.#link?.ask(kind, id, ask, deadlineMs) ?? false
  }

  /** Whether the port keeps it for the next writer. */
  #keep(userId: string, message: PresenceNews): boolean {
    switch (message.kind) {
      case 'attached':
        this.#attached.set(message.connection.ref.id, { userId, message })
        return true
      case 'detached':
        this.#attached.delete(message.connectionId)
        return true
      default:
        return false
    }
  }
}

type PresenceNews =
  | { readonly kind: 'attached'; readonly connection: { readonly ref: { readonly id: string } } }
  | { readonly kind: 'detached'; readonly connectionId: string }
  | { readonly kind: 'other' }

const PRESENCE = 'presence'

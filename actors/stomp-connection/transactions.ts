/**
 * What SEND, ACK and NACK ask for, and the transactions that put it off until COMMIT (STOMP 1.2, "BEGIN"). A frame that can
 * be refused by looking at it becomes no action.
 */

import type { InboxPosition } from '../../src/domain/messages/inbox-position.ts'
import { TRANSACTION_BYTES_MAX, TRANSACTION_FRAMES_MAX, TRANSACTIONS_MAX } from '../../src/limits.ts'
import type { SaidCallCommand } from '../../src/schema/call-request.ts'
import type { Headers } from '../../src/stomp/frame.ts'
import type { DevelopmentItem } from '../../src/store/messages/inbox-writes.ts'
import { limitRefusal, protocolRefusal } from './refusal.ts'

export type Action =
  | { readonly kind: 'publish'; readonly topic: string; readonly headers: Headers; readonly body: Uint8Array }
  | { readonly kind: 'keep'; readonly item: DevelopmentItem }
  | {
      readonly kind: 'command'
      readonly callId: string
      readonly said: SaidCallCommand
      /** Octets it was said in. */
      readonly bytes: number
    }
  | Acknowledgement

/** The content of an ACK or NACK. */
export interface Acknowledgement {
  readonly kind: 'acknowledge'
  readonly messageId: string
  /** The named position in an inbox, if the name is one. */
  readonly position: InboxPosition | undefined
  /** Whether it names a message that no inbox keeps, sent after the one at the position. */
  readonly isLive: boolean
  /** Where the frame names one; in 1.1 it has to. */
  readonly subscriptionId: string | undefined
  /** `keep`: this device could not use it, and may be given it on another connection. */
  readonly outcome: 'settle' | 'keep'
}

/** The open transactions of one connection; they end with it. A broken rule throws a `ConnectionRefusal`. */
export class Transactions {
  readonly #open = new Map<string, Action[]>()
  /** Octets kept in all of them. */
  #bytes = 0

  begin(id: string): void {
    if (this.#open.has(id)) throw protocolRefusal('transaction_open', 'the transaction is open already')
    if (this.#open.size >= TRANSACTIONS_MAX) {
      throw limitRefusal('too_many_transactions', `more than ${TRANSACTIONS_MAX} open transactions`)
    }
    this.#open.set(id, [])
  }

  add(id: string, action: Action): void {
    const actions = this.#actionsOf(id)
    if (actions.length >= TRANSACTION_FRAMES_MAX) {
      throw limitRefusal(
        'transaction_too_large',
        `more than ${TRANSACTION_FRAMES_MAX} frames in a transaction`,
      )
    }
    this.#bytes += bytesOf(action)
    if (this.#bytes > TRANSACTION_BYTES_MAX) {
      throw limitRefusal(
        'transaction_too_large',
        `more than ${TRANSACTION_BYTES_MAX} bytes in open transactions`,
      )
    }
    actions.push(action)
  }

  /** Ends a transaction, and hands its actions to the caller. */
  take(id: string): readonly Action[] {
    const actions = this.#actionsOf(id)
    this.#open.delete(id)
    for (const action of actions) this.#bytes -= bytesOf(action)
    return actions
  }

  /** Throws unless the transaction is open. */
  assertOpen(id: string): void {
    this.#actionsOf(id)
  }

  #actionsOf(id: string): Action[] {
    const actions = this.#open.get(id)
    if (actions === undefined) throw protocolRefusal('transaction_unknown', 'no such transaction is open')
    return actions
  }
}

/** Octets that are kept of a frame: of its body, and of what its headers say in the client's own words. */
function bytesOf(action: Action): number {
  switch (action.kind) {
    case 'publish':
      return action.body.length + charsOf(action.headers)
    case 'keep':
      return action.item.body.length + charsOf(action.item.headers.flat())
    case 'command':
      return action.bytes
    case 'acknowledge':
      return action.messageId.length + (action.subscriptionId?.length ?? 0)
  }
}

function charsOf(headers: Headers): number {
  let chars = 0
  for (const text of headers) chars += text.length
  return chars
}

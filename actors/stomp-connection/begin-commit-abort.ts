/** BEGIN, COMMIT and ABORT (STOMP 1.2, "BEGIN", "COMMIT", "ABORT"). A transaction that is open when its connection ends is aborted. */

import { restrictionError } from '../../src/domain/devices/restriction.ts'
import type { Frame } from '../../src/stomp/frame.ts'
import { perform } from './effects.ts'
import { askedBy, requiredHeader } from './headers.ts'
import type { ConnectionState } from './state.ts'
import { type Action, Transactions } from './transactions.ts'

/** STOMP 1.2, "BEGIN": the header `transaction` is required, and names no other open transaction. */
export function onBegin(connection: ConnectionState, frame: Frame): void {
  connection.transactions ??= new Transactions()
  connection.transactions.begin(requiredHeader(frame, 'transaction'))
  connection.order.receipt(frame.header('receipt'))
}

/**
 * STOMP 1.2, "COMMIT": the frames of the transaction take effect together. A SEND of before a restriction has none. Throws that.
 */
export function onCommit(connection: ConnectionState, frame: Frame): void {
  const actions = takeTransaction(connection, frame)
  if (actions.some(({ kind }) => kind !== 'acknowledge')) {
    const restriction = connection.deps.restrictionOf(connection.device)
    if (restriction !== undefined) throw restrictionError(restriction)
  }
  perform(connection, actions, askedBy(frame))
}

/** STOMP 1.2, "ABORT": the frames of the transaction take no effect. */
export function onAbort(connection: ConnectionState, frame: Frame): void {
  takeTransaction(connection, frame)
  connection.order.receipt(frame.header('receipt'))
}

function takeTransaction({ transactions }: ConnectionState, frame: Frame): readonly Action[] {
  const id = requiredHeader(frame, 'transaction')
  return (transactions ?? new Transactions()).take(id)
}

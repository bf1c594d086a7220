/** SEND (STOMP 1.2, "SEND"; contract 7.2): a command to a call, or a message to the development surface. */

import { parseCallCommand } from '../../src/schema/call-request.ts'
import type { Frame } from '../../src/stomp/frame.ts'
import { userHeaders } from '../../src/stomp/user-headers.ts'
import type { DevelopmentItem } from '../../src/store/messages/inbox-writes.ts'
import { carryOut } from './effects.ts'
import { askedBy, destinationOf, forbidden, requiredHeader, transactionOf } from './headers.ts'
import type { ConnectionState } from './state.ts'
import type { Action } from './transactions.ts'

export function onSend(connection: ConnectionState, frame: Frame): void {
  const transaction = transactionOf(connection, frame)
  carryOut(connection, askedBy(frame), readAction(connection, frame), transaction)
}

/** STOMP 1.2, "SEND": `destination` is required. Throws a `SignalError` for one that takes no such message. */
function readAction(connection: ConnectionState, frame: Frame): Action {
  const destination = destinationOf(connection, requiredHeader(frame, 'destination'))
  const { headers, body } = frame
  switch (destination.kind) {
    case 'call-command': {
      const { callId, command } = destination
      const said = parseCallCommand(command, body)
      return { kind: 'command', callId, said, bytes: body.length }
    }
    case 'dev-topic':
      return { kind: 'publish', topic: destination.name, headers: userHeaders(headers), body }
    case 'queue':
      if (!destination.queue.startsWith('dev.')) break
      return { kind: 'keep', item: developmentItem(destination.queue, frame) }
  }
  throw forbidden('nothing can be sent there')
}

/** STOMP 1.2, "SEND": headers of the client's own go on to the receiver. */
function developmentItem(queue: string, { headers, body }: Frame): DevelopmentItem {
  const kept = userHeaders(headers)
  const pairs = Array.from(
    { length: kept.length / 2 },
    (_, at) => [kept[2 * at]!, kept[2 * at + 1]!] as const,
  )
  return { kind: 'dev', queue, headers: pairs, body }
}

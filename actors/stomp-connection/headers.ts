/** Headers that several commands read: those a frame must have, those its answer needs, transactions and destinations. */

import { restrictionError } from '../../src/domain/devices/restriction.ts'
import { SignalError } from '../../src/errors.ts'
import { type Destination, parseDestination } from '../../src/stomp/destination.ts'
import type { ClientCommand, Frame } from '../../src/stomp/frame.ts'
import { protocolRefusal } from './refusal.ts'
import type { ConnectionState } from './state.ts'

/** A frame, as far as its answer needs it. */
export interface Asked {
  readonly command: ClientCommand
  readonly destination: string | undefined
  readonly receipt: string | undefined
}

export function askedBy(frame: Frame): Asked {
  const { command } = frame
  return { command, destination: frame.header('destination'), receipt: frame.header('receipt') }
}

/** Returns a header that the frame must have (STOMP 1.2, "Frames and Headers"). Throws a `ConnectionRefusal`. */
export function requiredHeader(frame: Frame, name: string): string {
  const value = frame.header(name)
  if (value === undefined) throw missingHeader(frame.command, name)
  return value
}

export function missingHeader(command: string, name: string): Error {
  return protocolRefusal('header_missing', `${command} needs the header ${name}`)
}

/**
 * Returns the open transaction that a SEND, ACK or NACK belongs to; undefined for none. STOMP 1.2, "SEND", "ACK": the header
 * `transaction` names a transaction that BEGIN has opened. Throws a `ConnectionRefusal`.
 */
export function transactionOf({ transactions }: ConnectionState, frame: Frame): string | undefined {
  const id = frame.header('transaction')
  if (id === undefined) return undefined
  if (transactions === undefined) throw protocolRefusal('transaction_unknown', 'no transaction is open')
  transactions.assertOpen(id)
  return id
}

/**
 * Returns what a destination names. Throws `NOT_FOUND` or `DESTINATION_FORBIDDEN`, from the name alone. A restricted device
 * may use only the destinations that `isOpen` allows: any other throws its restriction.
 */
export function destinationOf(
  { device, deps }: ConnectionState,
  text: string,
  isOpen?: (destination: Destination) => boolean,
): Destination {
  const { hasTestTopics } = deps
  const destination = parseDestination(text, { userId: String(device.userId), hasTestTopics })
  switch (destination) {
    case 'unknown':
      throw new SignalError('NOT_FOUND', 'there is no such destination: /asyncapi.json names them all')
    case 'foreign':
      throw forbidden("another user's destinations are theirs alone")
    case 'wildcard':
      throw forbidden('a destination is named in full, without wildcards')
    default:
      break
  }
  const restriction = isOpen?.(destination) ? undefined : deps.restrictionOf(device)
  if (restriction !== undefined) throw restrictionError(restriction)
  return destination
}

export function forbidden(message: string): SignalError {
  return new SignalError('DESTINATION_FORBIDDEN', message)
}

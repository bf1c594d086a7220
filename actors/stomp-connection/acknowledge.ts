/** ACK and NACK (STOMP 1.2, "ACK", "NACK"; contract 7.2): which message, and whether this connection was given it. */

import { isLiveId, parsePosition } from '../../src/domain/messages/inbox-position.ts'
import type { Frame, StompVersion } from '../../src/stomp/frame.ts'
import { carryOut } from './effects.ts'
import { askedBy, requiredHeader, transactionOf } from './headers.ts'
import { protocolRefusal } from './refusal.ts'
import type { ConnectionState } from './state.ts'
import type { LiveSubscription, QueueSubscription } from './subscription.ts'
import type { Acknowledgement } from './transactions.ts'

/** Throws a `ConnectionRefusal` for a message that this connection was never given. */
export function onAcknowledge(connection: ConnectionState, frame: Frame): void {
  const transaction = transactionOf(connection, frame)
  const acknowledgement = readAcknowledgement(frame, connection.peer.version)
  if (!isKnown(connection, acknowledgement) && !mayBeOfAuto(connection, acknowledgement)) {
    const cause = causeOfUnknown(connection, acknowledgement)
    throw protocolRefusal('message_unknown', `the ${frame.command} ${cause}`)
  }
  carryOut(connection, askedBy(frame), acknowledgement, transaction)
}

/**
 * STOMP 1.2, "ACK": the header `id` is the `ack` of the MESSAGE. STOMP 1.1 and 1.0 name it by `message-id`, 1.1 together
 * with `subscription`. Choice: a NACK with `requeue:false` drops the message, as in RabbitMQ. Throws a `ConnectionRefusal`.
 */
function readAcknowledgement(frame: Frame, version: StompVersion): Acknowledgement {
  const messageId = requiredHeader(frame, version === '1.2' ? 'id' : 'message-id')
  const subscriptionId = frame.header('subscription')
  if (subscriptionId === undefined && version === '1.1') requiredHeader(frame, 'subscription')
  const isKept = frame.command === 'NACK' && frame.header('requeue') !== 'false'
  const position = parsePosition(messageId)
  const isLive = position !== undefined && isLiveId(messageId)
  const outcome = isKept ? 'keep' : 'settle'
  return { kind: 'acknowledge', messageId, position, isLive, subscriptionId, outcome }
}

function isKnown(
  { inbox, live }: ConnectionState,
  { messageId, position, isLive, subscriptionId }: Acknowledgement,
): boolean {
  // Badges are not remembered: an acknowledgement does nothing for one.
  if (isLive) return inbox !== undefined
  if (position !== undefined && inbox?.find(position, subscriptionId) !== undefined) return true
  return live.some(subscription => subscription.wasGiven(messageId))
}

/**
 * Choice: an acknowledgement on an `auto` subscription does nothing, since some clients acknowledge everything. Live
 * subscriptions keep no list in that mode, so any id that is none of the inbox may be theirs.
 */
function mayBeOfAuto(
  { live, inbox }: ConnectionState,
  { position, subscriptionId }: Acknowledgement,
): boolean {
  if (subscriptionId === undefined) return position === undefined && live.some(({ mode }) => mode === 'auto')
  const isMeant = ({ named, mode }: LiveSubscription | QueueSubscription) =>
    mode === 'auto' && named.id === subscriptionId
  return live.some(isMeant) || (inbox?.subscriptions.some(isMeant) ?? false)
}

function causeOfUnknown(connection: ConnectionState, { position, subscriptionId }: Acknowledgement): string {
  if (subscriptionId !== undefined && !connection.hasSubscription(subscriptionId)) {
    return 'names a subscription that is not there'
  }
  const { userId, deviceId } = connection.device
  const head = connection.deps.inbox.head(userId, deviceId)
  const isInInbox = position?.epoch === head.epoch && position.offset < head.givenBelow
  if (isInInbox) return 'names a message that an earlier connection was given, it comes again on this one'
  return connection.peer.version === '1.2'
    ? 'has an id that no MESSAGE of this connection had as its ack header'
    : 'has a message-id that no MESSAGE of this connection had'
}

/**
 * SEND, ACK and NACK, and the COMMIT that does what they put off: first the commands of calls, which may be refused, in
 * order up to one that is; then all that touches the inbox, in one transaction of the store; then what is published. So a
 * COMMIT that is refused has settled nothing: what it acknowledges comes again on the next connection.
 */

import { SignalError } from '../../src/errors.ts'
import type { Frame } from '../../src/stomp/frame.ts'
import { userHeaders } from '../../src/stomp/user-headers.ts'
import type { DevelopmentItem, InboxChange } from '../../src/store/messages/device-inbox.ts'
import {
  type Acknowledgement,
  type Action,
  developmentItem,
  readAcknowledgement,
  unknownMessage,
} from './action.ts'
import { type Asked, askedBy, type Desk } from './desk.ts'
import type { QueueSubscription } from './inbox-delivery.ts'
import { holderBefore } from './live-badge.ts'
import { protocolRefusal } from './refusal.ts'
import { destinationOf, forbidden, type LiveSubscription, requiredHeader } from './subscription.ts'

export function onSend(desk: Desk, frame: Frame): void {
  const transaction = openTransaction(desk, frame)
  const action = sendAction(desk, frame)
  if (transaction === undefined) perform(desk, [action], askedBy(frame))
  else putOff(desk, transaction, action, frame)
}

/** ACK and NACK. Throws a `ConnectionRefusal` for a message that this connection was never given. */
export function onAcknowledge(desk: Desk, frame: Frame): void {
  const transaction = openTransaction(desk, frame)
  const acknowledgement = readAcknowledgement(frame, desk.peer.version)
  if (!isKnown(desk, acknowledgement) && !mayBeOfAuto(desk, acknowledgement)) {
    throw unknownMessage(frame, causeOfUnknown(desk, acknowledgement))
  }
  const action: Action = { kind: 'acknowledge', ...acknowledgement }
  if (transaction === undefined) perform(desk, [action], askedBy(frame))
  else putOff(desk, transaction, action, frame)
}

/** Carries out frames' actions, and answers the frame that triggered them. */
export function perform(desk: Desk, actions: readonly Action[], asked: Asked): void {
  const settled: number[] = []
  const sent: DevelopmentItem[] = []
  const commands: Command[] = []
  const published: Publication[] = []
  for (const action of actions) {
    if (action.kind === 'acknowledge') for (const offset of acknowledge(desk, action)) settled.push(offset)
    else if (action.kind === 'keep') sent.push(action.item)
    else if (action.kind === 'command') commands.push(action)
    else published.push(action)
  }
  desk.settleBefore(asked.receipt)
  const isOnlySettling = sent.length + commands.length + published.length === 0 && asked.receipt === undefined
  if (isOnlySettling) desk.settleSoon(settled)
  else {
    carryOut(desk, commands, asked, () =>
      changeInbox(desk, { settled, sent }, asked, () => publish(desk, published, asked)),
    )
  }
  // An acknowledgement makes room, whether it settled anything or not.
  if (desk.inbox?.makeRoom()) desk.pump()
}

type Command = Extract<Action, { kind: 'command' }>
type Publication = Extract<Action, { kind: 'publish' }>

function carryOut(desk: Desk, commands: readonly Command[], asked: Asked, next: () => void): void {
  if (commands.length === 0) return next()
  desk.after(inTurn(desk, commands), failure =>
    failure === undefined ? next() : desk.refuse(asked, failure),
  )
}

/** Up to the first that is refused. */
async function inTurn({ deps, device }: Desk, commands: readonly Command[]): Promise<void> {
  for (const { callId, said } of commands) await deps.calls.command(callId, device, said)
}

function changeInbox(desk: Desk, change: InboxChange, asked: Asked, next: () => void): void {
  if (change.settled.length + change.sent.length === 0) return next()
  const { userId, deviceId } = desk.device
  const changed = desk.deps.inbox.change(userId, deviceId, change)
  desk.after(changed, failure => (failure === undefined ? next() : desk.refuse(asked, failure)))
}

function publish(desk: Desk, published: readonly Publication[], asked: Asked): void {
  for (const { topic, headers, body } of published) {
    const told = desk.deps.topics(topic).tell({ kind: 'publish', headers, body })
    if (told === 'overloaded') return desk.refuse(asked, new SignalError('OVERLOADED', 'the topic is full'))
  }
  desk.receiptInOrder(asked.receipt)
}

/** Throws a `SignalError` for what may not be sent, or not there. */
function sendAction(desk: Desk, frame: Frame): Action {
  const destination = destinationOf(desk, requiredHeader(frame, 'destination'))
  const { headers, body } = frame
  switch (destination.kind) {
    case 'call-command': {
      const { callId, command } = destination
      const said = desk.deps.calls.parse(command, body)
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

/** The transaction a frame belongs to, which has to be open; undefined for none. */
function openTransaction(desk: Desk, frame: Frame): string | undefined {
  const id = frame.header('transaction')
  if (id === undefined) return undefined
  if (desk.transactions === undefined) throw protocolRefusal('transaction_unknown', 'no transaction is open')
  desk.transactions.assertOpen(id)
  return id
}

/** This RECEIPT says that the transaction has the frame; the COMMIT's says that it is done. */
function putOff(desk: Desk, transaction: string, action: Action, frame: Frame): void {
  desk.transactions!.add(transaction, action)
  desk.receiptInOrder(frame.header('receipt'))
}

function isKnown(desk: Desk, { messageId, position, isLive, subscriptionId }: Acknowledgement): boolean {
  // Badges are not remembered: an acknowledgement does nothing for one.
  if (isLive) return desk.inbox !== undefined
  if (position !== undefined && desk.inbox?.find(position, subscriptionId) !== undefined) return true
  return desk.live.some(subscription => subscription.wasGiven(messageId))
}

/**
 * Choice: an acknowledgement on an `auto` subscription does nothing, since some clients acknowledge everything. Live
 * subscriptions do not remember what they were given in that mode, so any id that is none of the inbox may be theirs.
 */
function mayBeOfAuto({ live, inbox }: Desk, { position, subscriptionId }: Acknowledgement): boolean {
  if (subscriptionId === undefined) return position === undefined && live.some(({ mode }) => mode === 'auto')
  const isMeant = ({ named, mode }: LiveSubscription | QueueSubscription) =>
    mode === 'auto' && named.id === subscriptionId
  return live.some(isMeant) || (inbox?.subscriptions.some(isMeant) ?? false)
}

function causeOfUnknown(desk: Desk, { position, subscriptionId }: Acknowledgement): string {
  if (subscriptionId !== undefined && !desk.hasSubscription(subscriptionId)) {
    return 'names a subscription that is not there'
  }
  const { userId, deviceId } = desk.device
  const head = desk.deps.inbox.head(userId, deviceId)
  const isInInbox = position?.epoch === head.epoch && position.offset < head.nextOffset
  if (isInInbox) return 'names a message that an earlier connection was given, it comes again on this one'
  return desk.peer.version === '1.2'
    ? 'has an id that no MESSAGE of this connection had as its ack header'
    : 'has a message-id that no MESSAGE of this connection had'
}

/** Offsets thereby settled. Messages settled before, or on another subscription, are skipped. */
function acknowledge(
  { inbox }: Desk,
  { position, isLive, subscriptionId, outcome }: Acknowledgement,
): readonly number[] {
  if (inbox === undefined || position === undefined) return []
  const holder = isLive ? holderBefore(inbox, position, subscriptionId) : inbox.find(position, subscriptionId)
  if (holder === undefined || holder === 'passed') return []
  if (outcome === 'settle') return inbox.acknowledge(holder, position.offset)
  inbox.keep(holder, position.offset)
  return []
}

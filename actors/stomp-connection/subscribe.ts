/**
 * SUBSCRIBE (STOMP 1.2, "SUBSCRIBE"; contract 7.2), and what live topics send. The RECEIPT of a SUBSCRIBE precedes its
 * first MESSAGE; a client takes it for the sign that it misses nothing from then on.
 */

import type { SignalError } from '../../src/errors.ts'
import { PREFETCH_MAX, SUBSCRIPTIONS_MAX, UNACKNOWLEDGED_MAX } from '../../src/limits.ts'
import type { Broadcast } from '../../src/stomp/broadcast.ts'
import type { Destination } from '../../src/stomp/destination.ts'
import type { Frame, StompVersion } from '../../src/stomp/frame.ts'
import { ACCOUNT_QUEUE, tellBadge } from './badge.ts'
import { refuse } from './ending.ts'
import { destinationOf, forbidden, missingHeader, requiredHeader } from './headers.ts'
import { InboxDelivery } from './inbox-delivery.ts'
import { limitRefusal, overloadRefusal, protocolRefusal } from './refusal.ts'
import type { ConnectionState } from './state.ts'
import {
  type AckMode,
  CALL_TOPIC,
  ERRORS_TOPIC,
  LiveSubscription,
  QueueSubscription,
} from './subscription.ts'

export function onSubscribe(connection: ConnectionState, frame: Frame): void {
  const request = readSubscribe(frame, connection.peer.version)
  if (connection.subscriptionCount >= SUBSCRIPTIONS_MAX) {
    throw limitRefusal('too_many_subscriptions', `more than ${SUBSCRIPTIONS_MAX} subscriptions`)
  }
  // STOMP 1.2, "SUBSCRIBE id Header": different subscriptions of one connection have different ids.
  if (request.id !== undefined && connection.hasSubscription(request.id)) {
    throw protocolRefusal('subscription_exists', 'a subscription of that id is there already')
  }
  const destination = destinationOf(connection, request.destination, isOpenToAll)
  switch (destination.kind) {
    case 'queue':
      return subscribeToQueue(connection, destination.queue, request)
    case 'errors':
      addLive(connection, ERRORS_TOPIC, request).isJoined = true
      return connection.peer.receipt(request.receipt)
    case 'call-topic':
      return subscribeToCall(connection, destination.callId, request)
    case 'dev-topic':
      return subscribeToTopic(connection, destination.name, request)
    case 'call-command':
      throw forbidden('that destination takes messages and has none to give')
  }
}

/** Where a device that may do little hears of the account, and why a frame was refused. */
function isOpenToAll(destination: Destination): boolean {
  return (
    destination.kind === 'errors' || (destination.kind === 'queue' && destination.queue === ACCOUNT_QUEUE)
  )
}

/** The topic has accepted a subscription. */
export function onTopicJoined({ live, peer }: ConnectionState, tag: number): void {
  const subscription = live.find(each => each.tag === tag)
  if (subscription === undefined || subscription.isJoined) return
  subscription.isJoined = true
  peer.receipt(subscription.takeReceipt())
}

/** The call's room has refused a subscription. */
export function onTopicRefused(connection: ConnectionState, tag: number, error: SignalError): void {
  const subscription = connection.live.find(each => each.tag === tag)
  if (subscription === undefined || subscription.isJoined) return
  connection.live = connection.live.filter(each => each !== subscription)
  const receipt = subscription.takeReceipt()
  refuse(connection, { command: 'SUBSCRIBE', destination: subscription.named.destination, receipt }, error)
}

/** Hot: a broadcast reaches every subscriber through here (`fan-out` in `bench/`). */
export function onTopicMessage({ live, peer }: ConnectionState, topic: string, broadcast: Broadcast): void {
  for (let at = 0; at < live.length; at++) {
    const subscription = live[at]!
    if (subscription.topic !== topic || !subscription.isJoined) continue
    subscription.noteGiven(broadcast.messageId)
    peer.send(broadcast.encode(subscription.named.head), broadcast.isText)
  }
}

interface SubscribeRequest {
  /** Undefined only in 1.0. */
  readonly id: string | undefined
  readonly destination: string
  readonly mode: AckMode
  /** How many messages may be out unacknowledged. */
  readonly window: number
  /** The position where the client says it left off. */
  readonly since: string | undefined
  readonly receipt: string | undefined
}

/** STOMP 1.2, "SUBSCRIBE": `destination` and `id` are required; the header `id` came with 1.1. */
function readSubscribe(frame: Frame, version: StompVersion): SubscribeRequest {
  const id = frame.header('id')
  if (id === undefined && version !== '1.0') throw missingHeader('SUBSCRIBE', 'id')
  return {
    id,
    destination: requiredHeader(frame, 'destination'),
    mode: readAckMode(frame.header('ack'), version),
    window: readWindow(frame.header('prefetch-count')),
    since: frame.header('since'),
    receipt: frame.header('receipt'),
  }
}

/** STOMP 1.2, "SUBSCRIBE ack Header": `auto` where it is absent. */
function readAckMode(value: string | undefined, version: StompVersion): AckMode {
  switch (value) {
    case undefined:
    case 'auto':
      return 'auto'
    case 'client':
      return 'client'
    case 'client-individual':
      // Not `value`: each subscription would keep the text that its frame brought.
      if (version !== '1.0') return 'client-individual'
  }
  throw protocolRefusal('ack_mode_invalid', 'ack is auto, client or, from 1.1 on, client-individual')
}

/** Choice: what RabbitMQ's clients call `prefetch-count`, within our own bounds. */
function readWindow(value: string | undefined): number {
  if (value === undefined) return UNACKNOWLEDGED_MAX
  if (!/^[1-9][0-9]{0,8}$/.test(value)) {
    throw protocolRefusal('prefetch_count_invalid', 'prefetch-count is not a positive number')
  }
  return Math.min(Number(value), PREFETCH_MAX)
}

function subscribeToQueue(connection: ConnectionState, queue: string, request: SubscribeRequest): void {
  const { deps, peer, heads, order, context, device } = connection
  const { id, destination, mode, window, since, receipt } = request
  const named = heads.of(peer.version, id, destination, mode !== 'auto')
  connection.inbox ??= new InboxDelivery(deps, device, peer, order, context)
  const { inbox } = connection
  const { isRecovered, isEmpty } = inbox.add(new QueueSubscription(named, queue, mode, window), since)
  peer.receipt(receipt, since === undefined ? [] : ['recovered', String(isRecovered)])
  // To look into an empty inbox costs as much as the rest of a SUBSCRIBE, and most are (`connect-rate` in `bench/`).
  if (!isEmpty) inbox.pump()
  if (queue === ACCOUNT_QUEUE) tellBadge(connection)
}

/** The room decides whether the device may subscribe, so the RECEIPT waits for it. */
function subscribeToCall(connection: ConnectionState, callId: string, request: SubscribeRequest): void {
  const { deps, device, context } = connection
  const subscription = addLive(connection, CALL_TOPIC + callId, request)
  const { tag } = subscription
  subscription.receipt = request.receipt
  context.tellOutcome(
    deps.calls.subscribe(callId, device, context.self, tag),
    () => ({ kind: 'topic-joined', tag }),
    error => ({ kind: 'topic-refused', tag, error }),
  )
}

/** The RECEIPT need not wait: the topic delivers everything published after it took the message. */
function subscribeToTopic(connection: ConnectionState, name: string, request: SubscribeRequest): void {
  const { deps, context, peer } = connection
  const { tag } = addLive(connection, name, request)
  const told = deps.topics(name).tell({ kind: 'subscribe', subscriber: context.self, tag })
  if (told === 'overloaded') throw overloadRefusal(OVERLOADED_PAUSE_MS)
  peer.receipt(request.receipt)
}

function addLive(
  connection: ConnectionState,
  topic: string,
  { id, destination, mode }: SubscribeRequest,
): LiveSubscription {
  const named = connection.heads.of(connection.peer.version, id, destination, mode !== 'auto')
  const subscription = new LiveSubscription(named, topic, mode, connection.nextTag())
  // `concat` makes an array of that very length, where a spread leaves room for more in each idle connection.
  connection.live = connection.live.concat(subscription)
  return subscription
}

const OVERLOADED_PAUSE_MS = 1_000

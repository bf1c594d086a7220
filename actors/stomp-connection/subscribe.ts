/**
 * SUBSCRIBE and UNSUBSCRIBE (STOMP 1.2, contract 7.2), and what live topics say. The RECEIPT of a SUBSCRIBE comes before
 * its first MESSAGE; a client takes it for the sign that nothing is missed from then on.
 */

import type { SignalError } from '../../src/errors.ts'
import { SUBSCRIPTIONS_MAX } from '../../src/limits.ts'
import type { Broadcast } from '../../src/stomp/broadcast.ts'
import type { Frame } from '../../src/stomp/frame.ts'
import type { NamedHead } from '../../src/stomp/subscription-heads.ts'
import { CALL_TOPIC, type Desk, ERRORS_TOPIC } from './desk.ts'
import { InboxDelivery, QueueSubscription } from './inbox-delivery.ts'
import { BADGE_QUEUE, tellBadge } from './live-badge.ts'
import { limitRefusal, overloadRefusal, protocolRefusal } from './refusal.ts'
import {
  destinationOf,
  forbidden,
  LiveSubscription,
  missingHeader,
  readSubscribe,
  type SubscribeRequest,
} from './subscription.ts'

export function onSubscribe(desk: Desk, frame: Frame): void {
  const request = readSubscribe(frame, desk.peer.version)
  if (desk.subscriptionCount >= SUBSCRIPTIONS_MAX) {
    throw limitRefusal('too_many_subscriptions', `more than ${SUBSCRIPTIONS_MAX} subscriptions`)
  }
  if (request.id !== undefined && desk.hasSubscription(request.id)) {
    throw protocolRefusal('subscription_exists', 'a subscription of that id is there already')
  }
  const destination = destinationOf(desk, request.destination)
  switch (destination.kind) {
    case 'queue':
      return subscribeToQueue(desk, destination.queue, request)
    case 'errors':
      addLive(desk, ERRORS_TOPIC, request).isJoined = true
      return desk.peer.receipt(request.receipt)
    case 'call-topic':
      return subscribeToCall(desk, destination.callId, request)
    case 'dev-topic':
      return subscribeToTopic(desk, destination.name, request)
    case 'call-command':
      throw forbidden('that destination takes messages and has none to give')
  }
}

export function onUnsubscribe(desk: Desk, frame: Frame): void {
  const id = frame.header('id')
  const destination = desk.peer.version === '1.0' ? frame.header('destination') : undefined
  if (id === undefined && destination === undefined) throw missingHeader('UNSUBSCRIBE', 'id')
  const isMeant = ({ named }: { readonly named: NamedHead }) =>
    id === undefined ? named.destination === destination : named.id === id
  const live = desk.live.filter(isMeant)
  const queues = (desk.inbox?.subscriptions ?? []).filter(isMeant)
  if (live.length + queues.length === 0) {
    throw protocolRefusal('subscription_unknown', 'there is no such subscription')
  }
  for (const subscription of live) dropLive(desk, subscription)
  for (const subscription of queues) desk.dropFromInbox(subscription)
  desk.peer.receipt(frame.header('receipt'))
}

/** A topic has taken a subscription in. */
export function onTopicJoined(desk: Desk, tag: number): void {
  const subscription = desk.live.find(each => each.tag === tag)
  if (subscription === undefined || subscription.isJoined) return
  subscription.isJoined = true
  answerJoined(desk, subscription)
}

/** The room of a call will have none of it. */
export function onTopicRefused(desk: Desk, tag: number, error: SignalError): void {
  const subscription = desk.live.find(each => each.tag === tag)
  if (subscription === undefined || subscription.isJoined) return
  const { named, receipt } = subscription
  desk.live = desk.live.filter(each => each !== subscription)
  desk.refuse({ command: 'SUBSCRIBE', destination: named.destination, receipt }, error)
}

/** Hot: a broadcast reaches every subscriber through here (`fan-out` in `bench/`). */
export function onTopicMessage(desk: Desk, topic: string, broadcast: Broadcast): void {
  const { live } = desk
  for (let at = 0; at < live.length; at++) {
    const subscription = live[at]!
    if (subscription.topic !== topic || !subscription.isJoined) continue
    subscription.noteGiven(broadcast.messageId)
    desk.peer.send(broadcast.encode(subscription.named.head), broadcast.isText)
  }
}

function subscribeToQueue(desk: Desk, queue: string, request: SubscribeRequest): void {
  const { id, destination, mode, window, since, receipt } = request
  const named = desk.heads.of(desk.peer.version, id, destination, mode !== 'auto')
  desk.inbox ??= new InboxDelivery(desk.deps, desk.device, desk.peer)
  const subscription = new QueueSubscription(named, queue, mode, window)
  const { isRecovered, isEmpty } = desk.inbox.add(subscription, since)
  desk.peer.receipt(receipt, since === undefined ? [] : ['recovered', String(isRecovered)])
  // To look into an empty inbox costs as much as the rest of a SUBSCRIBE, and most are (`connect-rate` in `bench/`).
  if (!isEmpty) desk.pump()
  if (queue === BADGE_QUEUE) tellBadge(desk)
}

/** Whether the device may is for the room to say, so the RECEIPT waits for it. */
function subscribeToCall(desk: Desk, callId: string, request: SubscribeRequest): void {
  const subscription = addLive(desk, CALL_TOPIC + callId, request)
  const { tag } = subscription
  subscription.receipt = request.receipt
  desk.context.tellOutcome(
    desk.deps.calls.subscribe(callId, desk.device, desk.self, tag),
    () => ({ kind: 'topic-joined', tag }),
    error => ({ kind: 'topic-refused', tag, error }),
  )
}

/** A topic that was asked delivers every later event, even before it has answered. */
function subscribeToTopic(desk: Desk, name: string, request: SubscribeRequest): void {
  const subscription = addLive(desk, name, request)
  const told = desk.deps
    .topics(name)
    .tell({ kind: 'subscribe', subscriber: desk.self, tag: subscription.tag })
  if (told === 'overloaded') throw overloadRefusal(OVERLOADED_PAUSE_MS)
  desk.peer.receipt(request.receipt)
}

function addLive(desk: Desk, topic: string, { id, destination, mode }: SubscribeRequest): LiveSubscription {
  const named = desk.heads.of(desk.peer.version, id, destination, mode !== 'auto')
  const subscription = new LiveSubscription(named, topic, mode, desk.nextTag())
  // `concat` makes an array of that very length, where a spread leaves room for more in each idle connection.
  desk.live = desk.live.concat(subscription)
  return subscription
}

function dropLive(desk: Desk, subscription: LiveSubscription): void {
  desk.live = desk.live.filter(each => each !== subscription)
  desk.leave(subscription)
  // A frame waits for it, and neither refusal nor grant comes any more.
  if (!subscription.isJoined) answerJoined(desk, subscription)
}

function answerJoined(desk: Desk, subscription: LiveSubscription): void {
  desk.peer.receipt(subscription.receipt)
  subscription.receipt = undefined
}

const OVERLOADED_PAUSE_MS = 1_000

/** UNSUBSCRIBE (STOMP 1.2, "UNSUBSCRIBE"), and taking leave of a live topic. */

import type { Frame } from '../../src/stomp/frame.ts'
import type { NamedHead } from '../../src/stomp/subscription-heads.ts'
import { leaveTopic } from '../live-topic.ts'
import { missingHeader } from './headers.ts'
import { protocolRefusal } from './refusal.ts'
import type { ConnectionState } from './state.ts'
import { CALL_TOPIC, ERRORS_TOPIC, type LiveSubscription } from './subscription.ts'

/** STOMP 1.2, "UNSUBSCRIBE": `id` is required and names an existing subscription. STOMP 1.0 allows the destination. */
export function onUnsubscribe(connection: ConnectionState, frame: Frame): void {
  const { peer, live, inbox } = connection
  const id = frame.header('id')
  const destination = peer.version === '1.0' ? frame.header('destination') : undefined
  if (id === undefined && destination === undefined) throw missingHeader('UNSUBSCRIBE', 'id')
  const isMeant = ({ named }: { readonly named: NamedHead }) =>
    id === undefined ? named.destination === destination : named.id === id
  const topics = live.filter(isMeant)
  const queues = (inbox?.subscriptions ?? []).filter(isMeant)
  if (topics.length + queues.length === 0) {
    throw protocolRefusal('subscription_unknown', 'there is no such subscription')
  }
  for (const subscription of topics) dropLive(connection, subscription)
  for (const subscription of queues) inbox?.remove(subscription)
  peer.receipt(frame.header('receipt'))
}

/** Takes a subscription back from its topic. */
export function leave({ deps, context }: ConnectionState, { topic }: LiveSubscription): void {
  const connectionId = context.self.id
  if (topic.startsWith(CALL_TOPIC)) deps.calls.unsubscribe(topic.slice(CALL_TOPIC.length), connectionId)
  else if (topic !== ERRORS_TOPIC) leaveTopic(deps.topics(topic), connectionId)
}

function dropLive(connection: ConnectionState, subscription: LiveSubscription): void {
  connection.live = connection.live.filter(each => each !== subscription)
  leave(connection, subscription)
  // The SUBSCRIBE waits for its RECEIPT, and the topic's answer comes too late.
  if (!subscription.isJoined) connection.peer.receipt(subscription.takeReceipt())
}

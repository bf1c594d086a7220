/**
 * The shared state of one connection's handlers: its client, its device, its subscriptions, and the order of its
 * effects.
 */

import type { Language } from '../../src/delivery/texts.ts'
import type { Context } from '../../src/runtime/actor.ts'
import type { SubscriptionHeads } from '../../src/stomp/subscription-heads.ts'
import type { StompConnectionMessage } from '../messages.ts'
import type { ConnectedDevice, StompConnectionDeps } from './deps.ts'
import type { EffectOrder } from './effect-order.ts'
import type { InboxDelivery } from './inbox-delivery.ts'
import type { Peer } from './peer.ts'
import type { LiveSubscription, QueueSubscription } from './subscription.ts'
import type { Transactions } from './transactions.ts'

/** The server reads frames in the first two stages. */
export type Stage = 'connecting' | 'live' | 'ending' | 'over'

export class ConnectionState {
  readonly deps: StompConnectionDeps
  readonly heads: SubscriptionHeads
  readonly context: Context<StompConnectionMessage>
  readonly peer: Peer
  readonly order: EffectOrder
  stage: Stage = 'connecting'
  live: readonly LiveSubscription[] = NONE
  /** Made by the first subscription to a queue of the inbox. */
  inbox: InboxDelivery | undefined = undefined
  /** Made by the first BEGIN. */
  transactions: Transactions | undefined = undefined
  /** The signed-in device; undefined before CONNECT. */
  signedIn: ConnectedDevice | undefined = undefined
  /** For the titles of refusals; undefined before CONNECT. */
  language: Language | undefined = undefined
  #lastTag = 0

  constructor(
    deps: StompConnectionDeps,
    heads: SubscriptionHeads,
    context: Context<StompConnectionMessage>,
    peer: Peer,
    order: EffectOrder,
  ) {
    this.deps = deps
    this.heads = heads
    this.context = context
    this.peer = peer
    this.order = order
  }

  /** The signed-in device. Valid after CONNECT. */
  get device(): ConnectedDevice {
    if (this.signedIn === undefined) throw new Error('no device has signed in')
    return this.signedIn
  }

  get isReading(): boolean {
    return this.stage === 'connecting' || this.stage === 'live'
  }

  /** Number of subscriptions of all kinds. */
  get subscriptionCount(): number {
    return this.live.length + (this.inbox === undefined ? 0 : this.inbox.subscriptions.length)
  }

  hasSubscription(id: string): boolean {
    const isMeant = ({ named }: LiveSubscription | QueueSubscription) => named.id === id
    return this.live.some(isMeant) || (this.inbox?.subscriptions.some(isMeant) ?? false)
  }

  /** A number that no earlier subscription of this connection had. */
  nextTag(): number {
    this.#lastTag += 1
    return this.#lastTag
  }
}

const NONE: readonly LiveSubscription[] = []

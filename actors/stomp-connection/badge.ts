/**
 * The badge over a connection (contract 7.3). It is state: sent live, kept nowhere. Each subscription to its queue
 * gets the badge as it begins, and again when it differs from what the client knows, by a badge or by a notice that
 * carries one. A client that does not read gets only the last of several.
 *
 * Choice: a badge's message-id names the kept message before it. So `since` works with the last message-id of any
 * kind, and an acknowledgement of the badge covers earlier messages in the mode `client`, and nothing in
 * `client-individual`.
 */

import type { NoticeQueue } from '../../src/domain/messages/inbox.ts'
import { formatLiveId, type InboxPosition } from '../../src/domain/messages/inbox-position.ts'
import { type Badge, isSameBadge } from '../../src/domain/messages/notice.ts'
import type { Holder, InboxDelivery } from './inbox-delivery.ts'
import type { ConnectionState } from './state.ts'
import { QueueSubscription } from './subscription.ts'

/**
 * Tells the badge to each subscription whose client does not know it. Does nothing while the client does not read, or is a
 * device that may do little.
 */
export function tellBadge(connection: ConnectionState): void {
  const { inbox, peer, deps } = connection
  if (inbox === undefined || !inbox.subscriptions.some(hasBadge)) return
  // The look that finds it reading again tells it.
  if (peer.isHeld || deps.restrictionOf(connection.device) !== undefined) return
  const badge = deps.badgeOf(connection.device.userId)
  for (const subscription of inbox.subscriptions) {
    const { badgeTold } = subscription
    const isKnown = badgeTold !== undefined && isSameBadge(badgeTold, badge)
    if (hasBadge(subscription) && !isKnown) send(connection, inbox, subscription, badge)
  }
}

/** The subscription whose client acknowledges the messages before a badge by acknowledging it; undefined for none. */
export function holderBefore(
  inbox: InboxDelivery,
  { epoch, offset }: InboxPosition,
  subscriptionId: string | undefined,
): Holder | undefined {
  const holder = inbox.subscriptions.find(each => {
    const isMeant = subscriptionId === undefined || each.named.id === subscriptionId
    const isBehind = each.mode === 'client' && each.hasOpen(offset) && inbox.lastSeenBy(each).epoch === epoch
    return isMeant && isBehind && hasBadge(each)
  })
  if (holder !== undefined) return holder
  const former = inbox.find({ epoch, offset }, subscriptionId)
  const isFormer = former !== undefined && former !== 'passed' && !(former instanceof QueueSubscription)
  return isFormer && former.mode === 'client' && former.queue === ACCOUNT_QUEUE ? former : undefined
}

function send(
  connection: ConnectionState,
  inbox: InboxDelivery,
  subscription: QueueSubscription,
  badge: Badge,
): void {
  const { deps, context } = connection
  const [eventId, sentAtMs] = [deps.newEventId(), context.nowMs()]
  const messageId = formatLiveId(inbox.lastSeenBy(subscription), eventId)
  const place = { head: subscription.named.head, messageId, isRedelivered: false }
  subscription.badgeTold = badge
  connection.peer.send(deps.frames.badge(place, { kind: 'badge', badge, eventId, sentAtMs }), true)
}

function hasBadge({ queue }: QueueSubscription): boolean {
  return queue === ACCOUNT_QUEUE
}

/** Has the badge, too. */
export const ACCOUNT_QUEUE: NoticeQueue = 'account'

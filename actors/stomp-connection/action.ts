/**
 * What SEND, ACK and NACK do, once it is known that they may: at once, or at the COMMIT of their transaction. Everything
 * that can be refused by looking at the frame is refused before there is an action.
 */

import { type InboxPosition, isLiveId, parsePosition } from '../../src/domain/messages/inbox.ts'
import type { SaidCallCommand } from '../../src/schema/call.ts'
import type { Frame, Headers, StompVersion } from '../../src/stomp/frame.ts'
import { userHeaders } from '../../src/stomp/user-headers.ts'
import type { DevelopmentItem } from '../../src/store/messages/device-inbox.ts'
import { protocolRefusal } from './refusal.ts'
import { requiredHeader } from './subscription.ts'

export type Action =
  | { readonly kind: 'publish'; readonly topic: string; readonly headers: Headers; readonly body: Uint8Array }
  | { readonly kind: 'keep'; readonly item: DevelopmentItem }
  | {
      readonly kind: 'command'
      readonly callId: string
      readonly said: SaidCallCommand
      /** Octets it was said in. */
      readonly bytes: number
    }
  | ({ readonly kind: 'acknowledge' } & Acknowledgement)

/** The content of an ACK or NACK. */
export interface Acknowledgement {
  readonly messageId: string
  /** The named position in an inbox, if the name is one. */
  readonly position: InboxPosition | undefined
  /** Whether it names a message that no inbox keeps, sent after the one at the position. */
  readonly isLive: boolean
  /** Where the frame names one; in 1.1 it has to. */
  readonly subscriptionId: string | undefined
  /** `keep`: this device could not use it, and may be given it on another connection. */
  readonly outcome: 'settle' | 'keep'
}

/**
 * Reads an ACK or NACK. 1.2 names the message by `id`, the earlier versions by `message-id`, 1.1 also its
 * subscription. A NACK with `requeue:false` drops the message, as in RabbitMQ. Throws a `ConnectionRefusal`.
 */
export function readAcknowledgement(frame: Frame, version: StompVersion): Acknowledgement {
  const messageId = requiredHeader(frame, version === '1.2' ? 'id' : 'message-id')
  const subscriptionId = frame.header('subscription')
  if (subscriptionId === undefined && version === '1.1') requiredHeader(frame, 'subscription')
  const isKept = frame.command === 'NACK' && frame.header('requeue') !== 'false'
  const position = parsePosition(messageId)
  const isLive = position !== undefined && isLiveId(messageId)
  return { messageId, position, isLive, subscriptionId, outcome: isKept ? 'keep' : 'settle' }
}

/** A message to a queue of the development surface. */
export function developmentItem(queue: string, { headers, body }: Frame): DevelopmentItem {
  const kept = userHeaders(headers)
  const pairs = Array.from(
    { length: kept.length / 2 },
    (_, at) => [kept[2 * at]!, kept[2 * at + 1]!] as const,
  )
  return { kind: 'dev', queue, headers: pairs, body }
}

/** The refusal of an ACK or NACK that names nothing; `cause` is a clause about the frame. */
export function unknownMessage({ command }: Frame, cause: string): Error {
  return protocolRefusal('message_unknown', `the ${command} ${cause}`)
}

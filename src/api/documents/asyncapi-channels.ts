/**
 * What is said over STOMP (contract 7.2), as a table: each destination, who sends to it, and the messages there with the
 * schemas that make and check them. Topics and queues of the development surface are not in it.
 */

import Type, { type TSchema } from 'typebox'
import { type NoticeQueue, queueOfNotice } from '../../domain/messages/inbox.ts'
import type { Notice } from '../../domain/messages/notice.ts'
import { TOPIC_EVENTS } from '../../schema/call-event.ts'
import {
  AcceptRejoinRequest,
  DeclineRequest,
  KeysRequest,
  RingingRequest,
  type SaidCallCommand,
} from '../../schema/call-request.ts'
import { EVENTS } from '../../schema/event.ts'
import { type EventType, SentAt } from '../../schema/event-form.ts'
import { WEBHOOKS } from '../../schema/webhook.ts'

export interface Channel {
  readonly id: string
  /** A destination, with `{callId}` where it names a call. */
  readonly address: string
  readonly summary: string
  /** Who may use it, and how. */
  readonly description: string
  /** `queue` and `topic`: the server sends to devices; `command`: a device sends; `webhook`: the server posts to the operator's. */
  readonly kind: 'queue' | 'topic' | 'command' | 'webhook'
  readonly messages: Readonly<Record<string, TSchema>>
}

/** The destinations; `problem` is the schema of a refusal. */
export function channels(problem: TSchema): readonly Channel[] {
  return [
    queue('calls', 'Invitations, their ends, keys: what concerns this device in its calls'),
    queue('contacts', 'Friend requests and contacts'),
    queue('account', 'Devices, sessions, the profile, the badge', BADGE_IS_LIVE),
    {
      id: 'errors',
      address: '/user/queue/errors',
      summary: 'Refusals of a SEND or SUBSCRIBE, which then has no RECEIPT and does not end the connection',
      description: 'A device may SUBSCRIBE to its own. Live only, for the frames of this connection.',
      kind: 'topic',
      messages: { error: errorSchema(problem) },
    },
    {
      id: 'callTopic',
      address: '/topic/call.{callId}',
      summary: 'Events of a call, live only: read the participants after subscribing',
      description:
        'Devices of those who are or were asked into the call may SUBSCRIBE, but not of people whom the host removed.',
      kind: 'topic',
      messages: schemasOf(isTopicEvent),
    },
    WEBHOOKS_CHANNEL,
    ...COMMANDS,
  ]
}

function queue(name: NoticeQueue, summary: string, exception = ''): Channel {
  const messages = schemasOf(type => !isTopicEvent(type) && queueOfNotice(type as Notice['kind']) === name)
  return {
    id: name,
    address: `/user/queue/${name}`,
    summary,
    kind: 'queue',
    messages,
    description: `A device may SUBSCRIBE to its own. Kept on disk until acknowledged or expired.${exception}`,
  }
}

function command(name: SaidCallCommand['kind'], id: string, schema: TSchema, summary: string): Channel {
  const address = `/app/call/{callId}/${name}`
  return {
    id,
    address,
    summary,
    kind: 'command',
    messages: { [id]: schema },
    description: `${SENDERS[name]} may SEND. A RECEIPT says that it is carried out and on disk.`,
  }
}

function schemasOf(isMeant: (type: EventType) => boolean): Record<string, TSchema> {
  const meant = Object.entries(EVENTS).filter(([type]) => isMeant(type as EventType))
  return Object.fromEntries(meant.map(([type, { schema }]) => [type, schema]))
}

function isTopicEvent(type: EventType): boolean {
  return type in TOPIC_EVENTS
}

function errorSchema(problem: TSchema): TSchema {
  return Type.Object({
    v: Type.Literal(1),
    type: Type.Literal('error'),
    eventId: Type.String(),
    sentAt: SentAt,
    destination: Type.String({ description: 'Of the frame that was refused' }),
    receiptId: Type.Optional(Type.String({ description: "The frame's `receipt`" })),
    problem,
  })
}

/** Not of STOMP: the operator's own services get these by HTTP (docs/build/backend.md). */
const WEBHOOKS_CHANNEL: Channel = {
  id: 'webhooks',
  address: 'webhooks',
  summary: 'Events for the operator’s own services, by HTTP and not by STOMP',
  description:
    'The server posts each to the endpoints that its operator has named, signed as Standard Webhooks are.',
  kind: 'webhook',
  messages: Object.fromEntries(Object.entries(WEBHOOKS).map(([kind, { schema }]) => [kind, schema])),
}

const BADGE_IS_LIVE =
  ' `badge` alone is state and live only: told to each SUBSCRIBE, and when no other event carries the change.'
/** Messages of queues that no inbox keeps. */
export const LIVE_IN_QUEUES: ReadonlySet<string> = new Set<EventType>(['badge'])

const SENDERS: Readonly<Record<SaidCallCommand['kind'], string>> = {
  ringing: 'A device that is invited',
  decline: 'A device that is invited',
  leave: 'A device that is in the call or invited',
  'accept-rejoin': 'A device that is in the call',
  keys: 'A device that is in the call; only the host’s for a new epoch',
}

const COMMANDS: readonly Channel[] = [
  command(
    'ringing',
    'ringing',
    RingingRequest,
    'This device rings; the caller may show it. The body may be empty',
  ),
  command('decline', 'decline', DeclineRequest, 'As `POST call/{callId}/decline`. The body may be empty'),
  command('leave', 'leave', Type.Object({}), 'As `POST call/{callId}/leave`. The body may be empty'),
  command('accept-rejoin', 'acceptRejoin', AcceptRejoinRequest, 'As `POST call/{callId}/accept-rejoin`'),
  command('keys', 'keys', KeysRequest, 'As `POST call/{callId}/keys`, for maps that fit into a frame'),
]

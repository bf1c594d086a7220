/**
 * What is said over STOMP (contract 7.2), as a table: each destination, who sends to it, and the messages there with the
 * schemas that make and check them. Topics and queues of the development surface are not in it.
 */

import Type, { type TSchema } from 'typebox'
import { type NoticeQueue, queueOfNotice } from '../domain/inbox.ts'
import type { Notice } from '../domain/notice.ts'
import {
  AcceptRejoinRequest,
  DeclineRequest,
  KeysRequest,
  RingingRequest,
  type SaidCallCommand,
} from '../schema/call.ts'
import { EVENT_SCHEMAS, type EventType } from '../schema/event.ts'

export interface Channel {
  readonly id: string
  /** A destination, with `{callId}` where it names a call. */
  readonly address: string
  readonly summary: string
  /** `queue` and `topic`: the server sends to devices; `command`: a device sends. */
  readonly kind: 'queue' | 'topic' | 'command'
  readonly messages: Readonly<Record<string, TSchema>>
}

/** The destinations; `problem` is the schema of a refusal. */
export function channels(problem: TSchema): readonly Channel[] {
  return [
    queue('calls', 'Invitations, their ends, keys: what concerns this device in its calls'),
    queue('contacts', 'Friend requests and contacts'),
    queue('account', 'Devices, sessions, the profile, the badge'),
    {
      id: 'errors',
      address: '/user/queue/errors',
      summary: 'Refusals of a SEND or SUBSCRIBE, which then has no RECEIPT and does not end the connection',
      kind: 'topic',
      messages: { error: errorSchema(problem) },
    },
    {
      id: 'callTopic',
      address: '/topic/call.{callId}',
      summary: 'What happens in a call, live only: read the participants after subscribing',
      kind: 'topic',
      messages: schemasOf(isTopicEvent),
    },
    ...COMMANDS,
  ]
}

function queue(name: NoticeQueue, summary: string): Channel {
  const messages = schemasOf(type => !isTopicEvent(type) && queueOfNotice(type as Notice['kind']) === name)
  return { id: name, address: `/user/queue/${name}`, summary, kind: 'queue', messages }
}

function command(name: SaidCallCommand['kind'], id: string, schema: TSchema, summary: string): Channel {
  const address = `/app/call/{callId}/${name}`
  return { id, address, summary, kind: 'command', messages: { [id]: schema } }
}

function schemasOf(isMeant: (type: EventType) => boolean): Record<string, TSchema> {
  return Object.fromEntries(Object.entries(EVENT_SCHEMAS).filter(([type]) => isMeant(type as EventType)))
}

function isTopicEvent(type: EventType): boolean {
  return (TOPIC_EVENTS as readonly string[]).includes(type)
}

function errorSchema(problem: TSchema): TSchema {
  return Type.Object({
    v: Type.Literal(1),
    type: Type.Literal('error'),
    eventId: Type.String(),
    sentAt: Type.Integer({ description: 'Milliseconds since 1970' }),
    destination: Type.String({ description: 'Of the frame that was refused' }),
    receiptId: Type.Optional(Type.String({ description: "The frame's `receipt`" })),
    problem,
  })
}

const TOPIC_EVENTS = [
  'participant_invited',
  'participant_ringing',
  'participant_joined',
  'participant_left',
  'participant_declined',
  'host_changed',
  'call_status',
] as const satisfies readonly EventType[]

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

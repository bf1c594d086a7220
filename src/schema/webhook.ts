/** Bodies of webhooks, by the kind of their event. The same table makes their part of the AsyncAPI document. */

import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import type { UserId } from '../domain/ids.ts'
import type {
  ChangedMember,
  MissedReason,
  WebhookEvent,
  WebhookEventKind,
} from '../domain/operators/webhook-event.ts'
import { CallStatusText, EndReasonText, ParticipantStateText } from './call.ts'
import { formatJson, type Written } from './json.ts'
import { oneOf } from './one-of.ts'
import { optionalTimeText, Time, timeText } from './time.ts'
import { Uint64Text } from './uint64.ts'

/** An event with its place among those of its endpoint. */
export interface WrittenWebhook {
  readonly seq: number
  /** Such as `user:42`. */
  readonly subject: string
  readonly atMs: number
  readonly event: WebhookEvent
  readonly externalIds: readonly (readonly [UserId, string])[]
}

export interface WebhookForm {
  readonly summary: string
  /** The whole body's. */
  readonly schema: TObject
}

/** The body in JSON, the same at each try. Ids are decimal strings: a receiver may be a program without 64-bit integers. */
export function webhookBody({ seq, subject, atMs, event, externalIds }: WrittenWebhook): string {
  const names = new Map(externalIds)
  const who = (userId: UserId) => ({ userId, externalId: names.get(userId) })
  const data = { seq, subject, ...FORMS[event.kind].data(event, who) }
  return formatJson({ type: event.kind, timestamp: timeText(atMs), data }, 'string')
}

/** A body that the operator's command asks for, to see whether the endpoint takes one. */
export function testWebhookBody(atMs: number): string {
  const data = { seq: 0, subject: TEST_SUBJECT }
  return formatJson({ type: TEST_KIND, timestamp: timeText(atMs), data }, 'string')
}

const Person = Type.Object(
  {
    userId: Uint64Text,
    externalId: Type.Optional(
      Type.String({ description: 'Your own id of the user, if you have given them one' }),
    ),
  },
  { description: 'A user, by ids alone' },
)
const CHANGED_MEMBERS = [
  'displayName',
  'settings',
  'externalId',
  'contactData',
  'loginMethods',
  'erasesAt',
] as const satisfies readonly ChangedMember[]
const MISSED_REASONS = [
  'unanswered',
  'cancelled',
  'busy',
  'removed',
] as const satisfies readonly MissedReason[]
const Milliseconds = Type.Integer({ minimum: 0, description: 'Milliseconds' })
const CallId = Uint64Text

type Who = (userId: UserId) => { readonly userId: UserId; readonly externalId: string | undefined }

interface TypedForm {
  readonly summary: string
  readonly members: TProperties
  /** A method, since its parameter is narrower in the form of one kind. */
  data(event: WebhookEvent, who: Who): object
}

function form<Kind extends WebhookEventKind, Members extends TProperties>(
  _: Kind,
  summary: string,
  members: Members,
  data: (
    event: WebhookEvent & { readonly kind: Kind },
    who: Who,
  ) => { readonly [Name in keyof Members]: Written<Static<Members[Name] & TSchema>> | undefined },
): TypedForm {
  return { summary, members, data }
}

function contactForm(kind: 'contact.added' | 'contact.removed', summary: string): TypedForm {
  return form(
    kind,
    summary,
    {
      users: Type.Array(Person, { minItems: 2, maxItems: 2, description: 'The one with the lower id first' }),
    },
    ({ userIds }, who) => ({ users: userIds.map(who) }),
  )
}

const FORMS: Readonly<Record<WebhookEventKind, TypedForm>> = {
  'user.created': form('user.created', 'An account exists', { user: Person }, ({ userId }, who) => ({
    user: who(userId),
  })),
  'user.changed': form(
    'user.changed',
    'Members of a user differ: ask the server API what they are',
    {
      user: Person,
      changed: Type.Array(oneOf(CHANGED_MEMBERS)),
      erasesAt: Type.Optional({
        ...Time,
        description: 'The account will be erased then, unless its user comes back',
      }),
    },
    ({ userId, changed, erasesAtMs }, who) => ({
      user: who(userId),
      changed,
      erasesAt: optionalTimeText(erasesAtMs),
    }),
  ),
  'user.ended': form('user.ended', 'An account is erased', { user: Person }, ({ userId }, who) => ({
    user: who(userId),
  })),
  'user.suspended': form(
    'user.suspended',
    'A moderator suspended a user',
    { user: Person, reason: Type.String(), until: Type.Optional(Time) },
    ({ userId, reason, untilMs }, who) => ({ user: who(userId), reason, until: optionalTimeText(untilMs) }),
  ),
  'user.unsuspended': form(
    'user.unsuspended',
    'A suspension has ended',
    { user: Person },
    ({ userId }, who) => ({
      user: who(userId),
    }),
  ),
  'session.started': form(
    'session.started',
    'A user signed in',
    {
      user: Person,
      sessionId: Type.String(),
      deviceId: Type.Optional({ ...Uint64Text, description: 'Left out until the session has a device' }),
    },
    ({ userId, sessionId, deviceId }, who) => ({
      user: who(userId),
      sessionId: Buffer.from(sessionId).toString('base64url'),
      deviceId,
    }),
  ),
  'device.added': form(
    'device.added',
    'A user has another device, whose key is in the log',
    { user: Person, deviceId: Uint64Text, platform: Type.String() },
    ({ userId, deviceId, platform }, who) => ({ user: who(userId), deviceId, platform }),
  ),
  'call.started': form(
    'call.started',
    'A user calls',
    { callId: CallId, caller: Person, callees: Type.Array(Person), isVideo: Type.Boolean() },
    ({ callId, callerId, calleeIds, isVideo }, who) => ({
      callId,
      caller: who(callerId),
      callees: calleeIds.map(who),
      isVideo,
    }),
  ),
  'call.answered': form(
    'call.answered',
    'A person who was called has come in for the first time',
    { callId: CallId, caller: Person, user: Person, deviceId: Uint64Text, rangMs: Milliseconds },
    ({ callId, callerId, userId, deviceId, rangMs }, who) => ({
      callId,
      caller: who(callerId),
      user: who(userId),
      deviceId,
      rangMs,
    }),
  ),
  'call.missed': form(
    'call.missed',
    'A person who was called has not come in',
    { callId: CallId, caller: Person, user: Person, reason: oneOf(MISSED_REASONS) },
    ({ callId, callerId, userId, reason }, who) => ({
      callId,
      caller: who(callerId),
      user: who(userId),
      reason,
    }),
  ),
  'call.declined': form(
    'call.declined',
    'A person who was called has said no',
    { callId: CallId, caller: Person, user: Person },
    ({ callId, callerId, userId }, who) => ({ callId, caller: who(callerId), user: who(userId) }),
  ),
  'call.ended': form(
    'call.ended',
    'A call has ended for all',
    {
      callId: CallId,
      caller: Person,
      status: CallStatusText,
      reason: EndReasonText,
      endedBy: Type.Optional(Person),
      isVideo: Type.Boolean(),
      talkedMs: {
        ...Milliseconds,
        description: 'Milliseconds since the first callee came in; 0 if none did',
      },
      participants: Type.Array(
        Type.Object({
          ...Person.properties,
          state: ParticipantStateText,
          talkedMs: { ...Milliseconds, description: 'Milliseconds that this person spent in it' },
        }),
      ),
    },
    ({ callId, callerId, status, reason, endedBy, isVideo, talkedMs, participants }, who) => ({
      callId,
      caller: who(callerId),
      status,
      reason,
      endedBy: endedBy === undefined ? undefined : who(endedBy),
      isVideo,
      talkedMs,
      participants: participants.map(({ userId, state, talkedMs }) => ({ ...who(userId), state, talkedMs })),
    }),
  ),
  'report.created': form(
    'report.created',
    'A user reported another; the server API says who',
    { reportId: Type.String(), user: Person, callId: Type.Optional(CallId), reason: Type.String() },
    ({ reportId, userId, callId, reason }, who) => ({ reportId, user: who(userId), callId, reason }),
  ),
  'contact.added': contactForm('contact.added', 'Two users are contacts'),
  'contact.removed': contactForm('contact.removed', 'Two users are contacts no more'),
}

function wholeForm(kind: string, { summary, members }: Pick<TypedForm, 'summary' | 'members'>): WebhookForm {
  const schema = Type.Object({
    type: Type.Literal(kind),
    timestamp: { ...Time, description: 'When it happened' },
    data: Type.Object({
      seq: Type.Integer({
        minimum: 0,
        format: 'int64',
        description: 'Grows with each event of the endpoint; order what you keep by it',
      }),
      subject: Type.String({
        description: 'The user or call that it is about, such as `user:42`: their events come in order',
      }),
      ...members,
    }),
  })
  return { summary, schema }
}

const TEST_KIND = 'webhook.test'
const TEST_SUBJECT = 'test'

/** By `type`, in the order of the document. */
export const WEBHOOKS: Readonly<Record<WebhookEventKind | typeof TEST_KIND, WebhookForm>> = {
  ...(Object.fromEntries(
    Object.entries(FORMS).map(([kind, form]) => [kind, wholeForm(kind, form)]),
  ) as Record<WebhookEventKind, WebhookForm>),
  [TEST_KIND]: wholeForm(TEST_KIND, {
    summary: 'The operator tries whether the endpoint takes one',
    members: {},
  }),
}

/** The kinds that an endpoint may choose from. */
export const WEBHOOK_KINDS = Object.keys(FORMS) as WebhookEventKind[]

/** The form of an event (contract 7.3): its sentence, the schema of its body, and the function that writes the body. */

import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import type { CallTopicEvent } from '../domain/calls/call-notice.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import type { NoticeItem } from '../domain/messages/inbox.ts'
import type { BadgeEvent, Badge as BadgeFigures, Notice } from '../domain/messages/notice.ts'
import type { UserView } from './account.ts'
import type { Admit } from './call.ts'
import type { WrittenMember } from './json.ts'

/** An event of a live call, on its way to those who watch. */
export type TopicEvent = CallTopicEvent & {
  /** 22 base64url characters. */
  readonly eventId: string
  readonly sentAtMs: number
}

export type DeviceEvent = Notice | BadgeEvent | TopicEvent

export type EventType = DeviceEvent['kind']

/** Facts in a body that depend on its receiver. */
export interface EventReader {
  readonly userId?: UserId
  readonly deviceId?: DeviceId
  /** See `Admit`, for `media_ready`. */
  readonly admit?: Admit | undefined
  /** The user as `GET user` has them, for `profile_changed`. */
  readonly user?: () => MembersOf<typeof UserView.properties>
  /** The user's badge as it is now, for events that carry it. */
  readonly badge?: BadgeFigures | undefined
}

export interface EventForm {
  /** Stands in the AsyncAPI document. */
  readonly summary: string
  readonly schema: TObject
  /**
   * Writes an event of this kind for `formatJson`: flat, ids as bigints. A method, since its parameter is narrower in the form of
   * one kind: `EVENTS[event.kind]` is the one to ask.
   */
  body(event: DeviceEvent, reader: EventReader): object
  /** Members of the body that differ between the devices that a change notifies; 'all' where no member is shared. */
  readonly own: OwnMembers | 'all'
}

/** By name, the value in the body for one device. */
export type OwnMembers = Readonly<Record<string, (item: NoticeItem, reader: EventReader) => unknown>>

/** Each device's own in every notice. */
const OWN_OF_ALL: OwnMembers = { eventId: ({ eventId }) => eventId }

/**
 * A form whose body has the members of its schema. A missing member, one too many or one of another type does not compile.
 *
 * Each body names all of its members: to spread what all have in common takes longer than all the rest (`invitations` in
 * `bench/`).
 */
export function eventForm<Kind extends EventType, Members extends TProperties, Body>(
  kind: Kind,
  summary: string,
  members: Members,
  body: (event: EventOf<Kind>, reader: EventReader) => Body & Exactly<Body, BodyOf<Kind, Members>>,
  own: OwnOf<Members> | 'all' = {},
): EventForm {
  const schema = Type.Object({
    v: Type.Literal(VERSION),
    type: Type.Literal(kind),
    eventId: Type.String({ description: 'Names the event; the same in its push' }),
    sentAt: SentAt,
    ...members,
  })
  return { summary, schema, body, own: own === 'all' ? own : { ...OWN_OF_ALL, ...own } }
}

type EventOf<Kind extends EventType, Event = DeviceEvent> = Event extends { readonly kind: infer Kinds }
  ? Kind extends Kinds
    ? Event & { readonly kind: Kind }
    : never
  : never

type BodyOf<Kind, Members extends TProperties> = {
  readonly v: typeof VERSION
  readonly type: Kind
  readonly eventId: string
  readonly sentAt: number
} & MembersOf<Members>

type MembersOf<Members extends TProperties> = {
  readonly [Name in keyof Members]: WrittenMember<Static<Members[Name] & TSchema>> | undefined
}

type OwnOf<Members extends TProperties> = {
  readonly [Name in keyof Members]?: (item: NoticeItem, reader: EventReader) => MembersOf<Members>[Name]
}

type Exactly<Given, Wanted> = Wanted & { readonly [Name in Exclude<keyof Given, keyof Wanted>]: never }

/** Says that it is beyond 32 bits, as which generators take an integer otherwise. */
export const SentAt = Type.Integer({ format: 'int64', description: 'Milliseconds since 1970' })

/** The version of bodies. */
export const VERSION = 1

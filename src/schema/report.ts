/** Wire shapes of reports: as a user sends them, and as moderators read and close them. */

import Type from 'typebox'
import { REPORT_REASONS, REPORT_STATES } from '../domain/operators/report.ts'
import { Person } from './contact.ts'
import { oneOf } from './one-of.ts'
import { PAGE_MEMBERS, page } from './page.ts'
import { Time } from './time.ts'
import { Uint64, Uint64Text } from './uint64.ts'

const Reason = oneOf(REPORT_REASONS)
const State = oneOf(REPORT_STATES)

export const ReportRequest = Type.Object(
  {
    userId: Uint64,
    callId: Type.Optional(Uint64),
    reason: Reason,
    text: Type.Optional(
      Type.String({ maxLength: 2000, description: 'In the words of the user, who reads no answer to it' }),
    ),
  },
  { examples: [{ userId: '42', reason: 'harassment', text: 'They call me at night' }] },
)

export const ReportReply = Type.Object({ reportId: Uint64Text, createdAt: Time })

export const ReportReasons = Type.Object({
  items: Type.Array(
    Type.Object({
      reason: Reason,
      title: Type.String({ description: 'In English, for apps without words of their own' }),
    }),
  ),
})

export const ReportView = Type.Object({
  reportId: Uint64Text,
  state: State,
  stateSince: Time,
  createdAt: Time,
  reason: Reason,
  text: Type.Optional(Type.String()),
  reported: Person,
  reporter: Type.Optional(
    Type.Object(Person.properties, {
      description: 'Missing once their account is erased, as is `text`. The reported user never reads it',
    }),
  ),
  callId: Type.Optional(Uint64Text),
  isCallKnown: Type.Boolean({
    description: 'Whether the server itself knows that both were in the call; else only the reporter says so',
  }),
  note: Type.Optional(Type.String({ description: "The moderators' own words" })),
  handledBy: Type.Optional(
    Type.String({ description: 'The person or the key that changed the report last' }),
  ),
})

export const ReportPage = page(ReportView)

export const ReportsQuery = Type.Object({
  state: Type.Optional(oneOf(REPORT_STATES, 'Left out: open')),
  about: Type.Optional(
    Type.String({
      maxLength: 800,
      description: 'In place of `state`: all reports about this user, `id:…` or `ext:…`',
    }),
  ),
  ...PAGE_MEMBERS,
})

export const ChangeReportRequest = Type.Object(
  {
    state: Type.Optional(State),
    note: Type.Optional(
      Type.String({ maxLength: 2000, description: 'In place of the note before; empty: takes it away' }),
    ),
  },
  { minProperties: 1, examples: [{ state: 'resolved', note: 'Suspended for a week' }] },
)

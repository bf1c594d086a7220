/** All tables by subject: each module's exported tables. Those of the log and its index have a check of their own. */

import * as index from '../../keyserver/index/index-tables.ts'
import * as log from '../../keyserver/log-store.ts'
import * as accounts from '../../store/accounts/account-tables.ts'
import * as codes from '../../store/accounts/code-tables.ts'
import * as calls from '../../store/calls/call-tables.ts'
import * as contacts from '../../store/contacts/contact-tables.ts'
import * as devices from '../../store/devices/device-tables.ts'
import { EXPIRIES } from '../../store/engine/expiries.ts'
import { COPY_STATE } from '../../store/engine/ledger-copy.ts'
import type { AnyTable } from '../../store/engine/table.ts'
import * as messages from '../../store/messages/message-tables.ts'
import * as circles from '../../store/operators/circle-tables.ts'
import * as operators from '../../store/operators/operator-tables.ts'
import * as reports from '../../store/operators/report-tables.ts'
import * as serverUsers from '../../store/operators/user-tables.ts'
import * as webhooks from '../../store/operators/webhook-tables.ts'
import { DEFERRED_TASKS } from '../../store/tables/deferred-tasks.ts'
import { ID_LISTS } from '../../store/tables/id-lists.ts'
import { IDEMPOTENCY } from '../../store/tables/idempotency-store.ts'
import { RATES } from '../../store/tables/rate-store.ts'

const LOG = 'the log'
const INDEX = 'the index'
export const TABLES_BY_SUBJECT: ReadonlyMap<string, readonly AnyTable[]> = new Map([
  [LOG, tablesOf(log)],
  [INDEX, tablesOf(index)],
  ['accounts and sessions', tablesOf(accounts)],
  ['codes and counts', [...tablesOf(codes), RATES]],
  ['devices', tablesOf(devices)],
  ['contacts', [...tablesOf(contacts), ID_LISTS]],
  ['calls', tablesOf(calls)],
  ['messages that wait', tablesOf(messages)],
  ['the server API and webhooks', [operators, serverUsers, circles, reports, webhooks].flatMap(tablesOf)],
  ['endings, tasks for later, kept replies', [EXPIRIES, DEFERRED_TASKS, IDEMPOTENCY]],
  ['the copy of a ledger', [COPY_STATE]],
])

/** By name: all but those of the log and its index. */
export const CHECKED_TABLES: ReadonlyMap<string, AnyTable> = new Map(
  [...TABLES_BY_SUBJECT]
    .filter(([subject]) => subject !== LOG && subject !== INDEX)
    .flatMap(([, tables]) => tables.map(table => [table.name, table])),
)

function tablesOf(module: object): readonly AnyTable[] {
  return Object.values(module).filter(isTable)
}

function isTable(exported: unknown): exported is AnyTable {
  return typeof exported === 'object' && exported !== null && 'description' in exported
}

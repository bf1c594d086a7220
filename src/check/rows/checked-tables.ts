/** The tables whose rows are checked one by one: all but the log's. */

import { ACCOUNT_TABLES } from '../../store/accounts/account-tables.ts'
import { CODE_TABLES } from '../../store/accounts/code-tables.ts'
import { CALL_TABLES } from '../../store/calls/call-tables.ts'
import { CONTACT_TABLES } from '../../store/contacts/contact-tables.ts'
import { DEVICE_TABLES } from '../../store/devices/device-tables.ts'
import { EXPIRIES } from '../../store/engine/expiries.ts'
import { COPY_STATE } from '../../store/engine/ledger-copy.ts'
import type { AnyTable } from '../../store/engine/table.ts'
import { MESSAGE_TABLES } from '../../store/messages/message-tables.ts'
import { DEFERRED_TASKS } from '../../store/tables/deferred-tasks.ts'
import { ID_LISTS } from '../../store/tables/id-lists.ts'
import { IDEMPOTENCY } from '../../store/tables/idempotency-store.ts'
import { RATES } from '../../store/tables/rate-store.ts'

const TABLES: readonly AnyTable[] = [
  ...ACCOUNT_TABLES,
  ...DEVICE_TABLES,
  ...CONTACT_TABLES,
  ID_LISTS,
  ...CALL_TABLES,
  ...MESSAGE_TABLES,
  ...CODE_TABLES,
  RATES,
  EXPIRIES,
  DEFERRED_TASKS,
  IDEMPOTENCY,
  COPY_STATE,
]

/** By name. */
export const CHECKED_TABLES: ReadonlyMap<string, AnyTable> = new Map(TABLES.map(table => [table.name, table]))

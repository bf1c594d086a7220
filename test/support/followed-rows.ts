/** The tables that a follower of tests reads beside their writer. */

import { plainBytesTable, plainTable } from './plain-tables.ts'

/** A row has the number of the change that wrote it. */
export const FOLLOWED_ROWS = plainTable<{ readonly number: number; readonly padding: Buffer }>('followed')
/** A row for each change, by its number; it is not watched. */
export const LOGGED_ROWS = plainBytesTable('logged')
export const ROW_KEYS = Array.from({ length: 12 }, (_, at) => Buffer.from(`row ${at}`))

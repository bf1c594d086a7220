/** The tables that a follower of tests reads beside their writer. */

import { bytesTable, recordTable } from '../../src/store/engine/store.ts'

/** A row has the number of the change that wrote it. */
export const FOLLOWED_ROWS = recordTable<{ readonly number: number; readonly padding: Buffer }>('followed')
/** A row for each change, by its number; it is not watched. */
export const LOGGED_ROWS = bytesTable('logged')
export const ROW_KEYS = Array.from({ length: 12 }, (_, at) => Buffer.from(`row ${at}`))

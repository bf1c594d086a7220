/** Pages of lists (contract 1.9): newest first, a cursor that is the place of the last item that was seen. */

import type { Static } from 'typebox'
import { invalidMember } from '../../schema/check.ts'
import type { PageQuery } from '../../schema/page.ts'
import type { ListEntry, ListRange } from '../../store/tables/id-lists.ts'

/** The range that a query asks for, and one more, which tells whether another page follows. */
export function rangeOf({ limit = LIMIT, cursor }: Static<typeof PageQuery>): ListRange {
  return { limit: limit + 1, after: cursor === undefined ? undefined : parseCursor(cursor) }
}

/** The parts of a list's answer. */
export interface Page {
  readonly items: readonly object[]
  readonly nextCursor: string | undefined
}

/** `found` was read for `rangeOf(query)`. */
export function pageOf<Found>(
  { limit = LIMIT }: Static<typeof PageQuery>,
  found: readonly Found[],
  entryOf: (found: Found) => ListEntry,
  itemOf: (found: Found) => object,
): Page {
  const shown = found.slice(0, limit)
  const last = shown.at(-1)
  const nextCursor = found.length > limit && last !== undefined ? formatCursor(entryOf(last)) : undefined
  return { items: shown.map(itemOf), nextCursor }
}

/** Base64url of time (6 bytes) and id (8). What it says is in the list, too, so it is not sealed. */
function formatCursor({ atMs, id }: ListEntry): string {
  const bytes = Buffer.alloc(CURSOR_BYTES)
  bytes.writeUIntBE(atMs, 0, TIME_BYTES)
  bytes.writeBigUInt64BE(id, TIME_BYTES)
  return bytes.toString('base64url')
}

function parseCursor(text: string): ListEntry {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length !== CURSOR_BYTES || bytes.toString('base64url') !== text) {
    throw invalidMember('/cursor', 'FORMAT', 'is no cursor of this list', 'the query')
  }
  return { atMs: bytes.readUIntBE(0, TIME_BYTES), id: bytes.readBigUInt64BE(TIME_BYTES) }
}

const LIMIT = 50
const TIME_BYTES = 6
const CURSOR_BYTES = 14

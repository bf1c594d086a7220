/** Wire shapes of lists (contract 1.9): newest first, a page at a time. */

import Type, { type TObject } from 'typebox'

/** Members of a query that may have more. */
export const PAGE_MEMBERS = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'Left out: 50' })),
  cursor: Type.Optional(Type.String({ maxLength: 64, description: 'The `nextCursor` of the page before' })),
}

/** The query of every list. */
export const PageQuery = Type.Object(PAGE_MEMBERS)

/** A page of such items. */
export function page<Item extends TObject>(item: Item) {
  return Type.Object({
    items: Type.Array(item),
    nextCursor: Type.Optional(Type.String({ description: 'Of the next page; left out behind the last' })),
  })
}

/** Tables by which the server API finds users. */

import type { User } from '../../domain/accounts/account.ts'
import type { UserId } from '../../domain/ids.ts'
import { HASH } from '../engine/key-parts.ts'
import { idsKey, textKey } from '../engine/keys.ts'
import { id, object } from '../engine/row-form.ts'
import { rowTable } from '../engine/table.ts'

/** Whose an external id is; by its hash, since a key has a fixed length. */
export const EXTERNAL_IDS = rowTable(
  'external-ids',
  { 'external id': HASH },
  object({ userId: id<UserId>() }),
  {
    holds: 'whose the id is that the operator’s backend has for a user',
    relations: [
      {
        in: 'users',
        under: (_, { userId }) => idsKey(userId),
        where: ({ externalId }: User, key) => externalId !== undefined && textKey(externalId).equals(key),
        what: (_, { userId }) => `its user ${userId} with this external id`,
      },
    ],
    remedy: 'the backend does not find the user: restore a backup',
  },
)

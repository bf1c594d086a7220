/** Reads a user's members from a request of the backend, or from a line of an import, by the rules of the application API. */

import type { Static } from 'typebox'
import { isExternalId, type UserRef } from '../../domain/operators/user-ref.ts'
import { invalidMember } from '../../schema/check.ts'
import type { PutServerUserRequest } from '../../schema/server-user.ts'
import type { SaidOfUser } from '../../store/operators/server-users.ts'
import { readDisplayName } from '../accounts/addresses.ts'
import type { ApiDeps } from '../deps.ts'

/** Throws `VALIDATION_FAILED`, `BLOCKED_COUNTRY`. */
export function readSaid(
  { addresses }: Pick<ApiDeps, 'addresses'>,
  ref: UserRef,
  body: Static<typeof PutServerUserRequest>,
): SaidOfUser {
  const { country, reachable, externalId } = body
  const kinds = (['email', 'phone'] as const).filter(kind => body[kind] !== undefined)
  const read = kinds.map(kind => {
    const text = body[kind]!
    return [kind, text === '' ? undefined : addresses.read(kind, text, country, `/${kind}`)] as const
  })
  return {
    displayName: readDisplayName(body.displayName),
    addresses: new Map(read),
    isReachableByAll: reachable && reachable === 'all',
    externalId: readExternalId(ref, externalId),
  }
}

function readExternalId(ref: UserRef, externalId: string | undefined): string | undefined {
  if (externalId === undefined || externalId === '') return externalId
  if (!isExternalId(externalId))
    throw invalidMember('/externalId', 'FORMAT', 'is a text of 1 to 256 octets in UTF-8')
  // Said again, such a request would make a second user.
  if (ref.kind === 'ext' && ref.externalId !== externalId)
    throw invalidMember('/externalId', 'REF', 'is changed where the user is named by id:')
  return externalId
}

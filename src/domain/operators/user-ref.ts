/** How requests of the server API name a user: by the id that the server gave, or by the id that the operator's backend has. */

import { SignalError } from '../../errors.ts'
import { parseUint64, type UserId } from '../ids.ts'

export type UserRef =
  | { readonly kind: 'id'; readonly userId: UserId }
  | { readonly kind: 'ext'; readonly externalId: string }

/**
 * Reads `id:<userId>` or `ext:<external id>`, percent-decoded where it stood in a path. `pointer` names the member that has it.
 * Throws `VALIDATION_FAILED`.
 */
export function readUserRef(text: string, pointer = '/ref'): UserRef {
  const ref = parseUserRef(text)
  if (ref !== undefined) return ref
  const detail = `is id:<userId>, or ext: with an external id of 1 to ${EXTERNAL_ID_BYTES_MAX} octets of UTF-8`
  throw new SignalError('VALIDATION_FAILED', `${pointer} ${detail}`, {
    errors: [{ pointer, code: 'FORMAT', detail }],
  })
}

function parseUserRef(text: string): UserRef | undefined {
  if (text.startsWith(EXT)) {
    const externalId = text.slice(EXT.length)
    return isExternalId(externalId) ? { kind: 'ext', externalId } : undefined
  }
  if (!text.startsWith(ID)) return undefined
  const userId = parseUint64(text.slice(ID.length))
  return userId === undefined ? undefined : { kind: 'id', userId: userId as UserId }
}

/** Whether a text names something of the backend's: its octets in UTF-8 are compared, and nothing is normalized. */
export function isExternalId(text: string): boolean {
  if (text.length > EXTERNAL_ID_BYTES_MAX || LONE_SURROGATE.test(text)) return false
  const bytes = Buffer.byteLength(text)
  return bytes >= 1 && bytes <= EXTERNAL_ID_BYTES_MAX
}

/** It has no octets. */
const LONE_SURROGATE = /\p{Cs}/u
const EXTERNAL_ID_BYTES_MAX = 256
const ID = 'id:'
const EXT = 'ext:'

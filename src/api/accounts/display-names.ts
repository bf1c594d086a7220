/** Display names as requests send them (contract 2.1). */

import { normalizeDisplayName } from '../../domain/accounts/display-name.ts'
import { invalidMember } from '../../schema/check.ts'

/** The name as it is kept, undefined where none was sent. Throws `VALIDATION_FAILED` at `/displayName`. */
export function readDisplayName(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const name = normalizeDisplayName(text)
  if (name !== undefined) return name
  const detail = 'has 1 to 50 characters in at most 200 bytes, one of them visible, and no line breaks'
  throw invalidMember('/displayName', 'FORMAT', detail)
}

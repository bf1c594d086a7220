/**
 * Circles (operators.md section 2): groups of users that the operator's backend makes. The members of a circle may call each other
 * and read each other's keys, as contacts may. A circle is made by its first member and gone with its last.
 */

import { createHash } from 'node:crypto'

/** The circle in the audit log, where no name may stand that an erasure would have to find. */
export function circleTarget(name: string): string {
  return `circle:${createHash('sha256').update(name).digest('hex').slice(0, TARGET_HEX)}`
}

export const CIRCLE_MEMBERS_MAX = 10_000
/** Circles of one user. */
export const CIRCLES_MAX = 32
const TARGET_HEX = 16

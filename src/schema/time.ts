/** Moments on the wire (contract 1.2): RFC 3339 in UTC, with milliseconds. */

import Type from 'typebox'

export const Time = Type.String({ format: 'date-time' })

/** The text of a moment, given in milliseconds since 1970. */
export function timeText(atMs: number): string {
  return new Date(atMs).toISOString()
}

/** The same for a moment that may not have come. */
export function optionalTimeText(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : timeText(atMs)
}

/** Moments on the wire (contract 1.2): RFC 3339 in UTC, with milliseconds. */

import Type from 'typebox'

export const Time = Type.String({ format: 'date-time' })

/**
 * The text of a moment, given in milliseconds since 1970. The last one is remembered: whatever a call tells its devices
 * tells them of one moment, and a date costs as much as a message's frame (`invitations` in `bench/`).
 */
export function timeText(atMs: number): string {
  if (atMs !== lastMs) {
    lastText = new Date(atMs).toISOString()
    lastMs = atMs
  }
  return lastText
}

/** The same for a moment that may not have come. */
export function optionalTimeText(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : timeText(atMs)
}

let lastMs = Number.NaN
let lastText = ''

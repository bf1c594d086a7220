/** Moments on the wire (contract 1.2): RFC 3339 in UTC, with milliseconds. */

import Type from 'typebox'

export const Time = Type.String({ format: 'date-time' })

/**
 * The text of a moment, given in milliseconds since 1970. Some are remembered: whatever calls tell their devices tells them of
 * a few moments, and a date costs as much as a message's frame (`invitations` in `bench/`).
 */
export function timeText(atMs: number): string {
  const place = atMs % KEPT
  if (momentsMs[place] !== atMs) {
    texts[place] = new Date(atMs).toISOString()
    momentsMs[place] = atMs
  }
  return texts[place]!
}

/** The same for a moment that may not have come. */
export function optionalTimeText(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : timeText(atMs)
}

/** By the last digits of their milliseconds. */
const KEPT = 64
const momentsMs = new Float64Array(KEPT).fill(Number.NaN)
const texts: string[] = Array(KEPT).fill('')

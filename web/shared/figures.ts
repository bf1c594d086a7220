/** How figures are written on pages. */

/** The time of day, to the second: `14:03:09`. */
export function timeOf(atMs: number): string {
  return TIME.format(atMs)
}

/** Day and time, to the minute: `12 Jan 2026, 14:03`. */
export function whenOf(time: string): string {
  return WHEN.format(new Date(time))
}

/** From one moment to another: `+0.25 s`, `+12.3 s`, `+4 min 5 s`. */
export function lapseOf(fromMs: number, toMs: number): string {
  return `+${spanOf(Math.max(0, toMs - fromMs))}`
}

/** A span of time: `0.25 s`, `12.3 s`, `4 min 5 s`, `3 h 2 min`. */
export function spanOf(spanMs: number): string {
  const seconds = spanMs / 1000
  if (seconds < 10) return `${seconds.toFixed(2)} s`
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Since then, in the largest unit: `5 s`, `3 min`, `2 h`, `4 d`. */
export function ageOf(sinceMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - sinceMs) / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

/** `12,345`. */
export function countOf(count: number): string {
  return COUNT.format(count)
}

/** `1 leaf`, `2 leaves`. */
export function manyOf(count: number, one: string, more = `${one}s`): string {
  return `${countOf(count)} ${count === 1 ? one : more}`
}

/** Bytes with one digit behind the point from a kilobyte on: `812 B`, `1.4 kB`. */
export function bytesOf(bytes: number): string {
  return bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} kB`
}

/** The end of an id, by which people tell ids apart. */
export function tailOf(id: string): string {
  return id.length <= 4 ? id : `…${id.slice(-4)}`
}

const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
const WHEN = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
const COUNT = new Intl.NumberFormat('en-US')

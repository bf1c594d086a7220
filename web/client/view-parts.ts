/** Small parts that several views draw. */

import { html, type nothing, type TemplateResult } from 'lit-html'
import type { CallPerson } from '../../src/app/app.ts'
import type { Connection } from './state.ts'

export type View = TemplateResult | typeof nothing

/** The first letter of a name, in one of six colours that goes with it. */
export function avatar({ displayName }: Pick<CallPerson, 'displayName'>): TemplateResult {
  const [first] = new Intl.Segmenter().segment(displayName)
  const letter = first?.segment.toUpperCase() ?? '?'
  return html`<span class="avatar tint${letter.codePointAt(0)! % 6}" aria-hidden="true">${letter}</span>`
}

/** `3:07`, or `1:02:07`. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const tail = `${hours > 0 ? String(minutes).padStart(2, '0') : minutes}:${String(rest).padStart(2, '0')}`
  return hours > 0 ? `${hours}:${tail}` : tail
}

/** The time of today; of an earlier day that, too. */
export function whenText(at: Date): string {
  const time = { hour: '2-digit', minute: '2-digit' } as const
  if (at.toDateString() === new Date().toDateString()) return at.toLocaleTimeString([], time)
  const day = { month: 'short', day: 'numeric', ...time } as const
  if (at.getFullYear() === new Date().getFullYear()) return at.toLocaleString([], day)
  return at.toLocaleString([], { year: 'numeric', ...day })
}

export function timeView(at: string): TemplateResult {
  return html`<time datetime=${at}>${whenText(new Date(at))}</time>`
}

/** `Ann`, `Ann and Bob`, `Ann, Bob and 2 more`. */
export function namesText(names: readonly string[]): string {
  const [first = 'nobody', second, ...more] = names
  if (second === undefined) return first
  if (more.length === 0) return `${first} and ${second}`
  return `${first}, ${second} and ${more.length} more`
}

export const CONNECTIONS: Readonly<Record<Connection, string>> = {
  off: 'not connected',
  waiting: 'connecting …',
  connecting: 'connecting …',
  connected: 'connected',
  elsewhere: 'connected elsewhere',
  blocked: 'not connected',
  unanswered: 'not connected',
}

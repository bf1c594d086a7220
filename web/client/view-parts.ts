/** Small parts that several views draw. */

import { html, type nothing, type TemplateResult } from 'lit-html'
import { whenText } from '../../src/ui/when.ts'
import type { Connection } from './state.ts'

export type View = TemplateResult | typeof nothing

/** The first letter of a name, in one of six colours that goes with it. */
export function avatar(name: string): TemplateResult {
  const [first] = new Intl.Segmenter().segment(name)
  const letter = first?.segment.toUpperCase() ?? '?'
  return html`<span class="avatar tint${letter.codePointAt(0)! % 6}" aria-hidden="true">${letter}</span>`
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

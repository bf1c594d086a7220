/** Small parts that several views draw. */

import type { nothing, TemplateResult } from 'lit-html'
import type { Connection } from './state.ts'

export type View = TemplateResult | typeof nothing

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

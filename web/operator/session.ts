/**
 * The session that a key was traded for. The key itself is kept nowhere; the session lasts a quarter of an hour and is this
 * tab's alone.
 */

import { ServerLink } from '../../src/backend/server-link.ts'
import type { Operations } from '../../src/backend/wire.ts'

export type Session = Operations['POST console-sessions']['reply']

export async function startSession(key: string): Promise<Session> {
  const session = await linkBy(key).ask('POST console-sessions')
  sessionStorage.setItem(NAME, JSON.stringify(session))
  return session
}

/** Asks the server API of this page's own server. */
export function linkBy(key: string): ServerLink {
  return new ServerLink({ url: location.origin, key, fetch: (url, init) => fetch(url, init) })
}

/** The tab's, after the page was loaded anew. */
export function keptSession(): Session | undefined {
  try {
    const session = JSON.parse(sessionStorage.getItem(NAME) ?? 'null') as Session | null
    return session === null || isOver(session) ? undefined : session
  } catch {
    return undefined
  }
}

export function endSession(): void {
  sessionStorage.removeItem(NAME)
}

export function isOver({ expiresAt }: Session): boolean {
  return Date.parse(expiresAt) <= Date.now()
}

/** Whole minutes that are left, at least one. */
export function minutesLeft({ expiresAt }: Session): number {
  return Math.max(1, Math.ceil((Date.parse(expiresAt) - Date.now()) / 60_000))
}

const NAME = 'callsign operator session'

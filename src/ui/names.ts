/** Names of people, devices and programs. Most come from other people, and are shown with care. */

import type { Callsign } from '../app/app.ts'
import { word } from './words.ts'

/** The name of a user: a contact's, or one in a call. */
export function nameIn(me: Callsign | undefined, userId: string): string {
  const inCalls = me?.calls.flatMap(({ caller, participants }) => [caller, ...participants]) ?? []
  const name = inCalls.find(person => person.userId === userId)?.name
  if (name !== undefined || me?.userId === undefined) return name ?? word('name-somebody')
  return me.contacts.nameOf({ userId, displayName: word('name-somebody') })
}

/** A name must not change its sentence's direction, and must be visible. */
export function shownName(name: string): string {
  return visible(name) ?? word('name-unnamed-device')
}

/** A program by its own name. The server leaves out the words that all browsers begin with. */
export function programName(userAgent: string): string {
  const system = nameOf(userAgent, SYSTEMS)
  if (system === undefined || !userAgent.startsWith('(')) {
    return visible(userAgent) ?? word('name-unknown-program')
  }
  return word('name-program', nameOf(userAgent, BROWSERS) ?? word('name-browser'), system)
}

/** This browser, as the person's other devices may call it: `Chrome, Linux`. */
export function browserName(): string {
  const { userAgent } = navigator
  const names = [nameOf(userAgent, BROWSERS) ?? word('name-browser'), nameOf(userAgent, SYSTEMS)]
  return names.filter(name => name !== undefined).join(', ')
}

function visible(name: string): string | undefined {
  const plain = name.replace(/[\u202a-\u202e\u2066-\u2069]/g, '')
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(plain) ? plain : undefined
}

function nameOf(userAgent: string, names: typeof BROWSERS | typeof SYSTEMS): string | undefined {
  return names.find(([mark]) => userAgent.includes(mark))?.[1]
}

/** Edge and Opera call themselves Chrome too, and Chrome calls itself Safari. */
const BROWSERS = [
  ['Firefox/', 'Firefox'],
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const
/** Android calls itself Linux too, and iOS calls itself like Mac OS. */
const SYSTEMS = [
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Windows', 'Windows'],
  ['Mac OS', 'Mac'],
  ['Linux', 'Linux'],
] as const

/**
 * What the page keeps. Each tab is a person of its own, so session and call are the tab's, or outlive it where the person
 * wants to be rung when it is closed; keys, which can't be read out, and the state of the key log are the browser's, so that a
 * later sign-in finds the same device.
 */

import { type AppStorage, indexedDbStorage } from '../../src/app/app.ts'
import { keptName, waitingName } from './tabs.ts'

const browser = indexedDbStorage()

export const storage: AppStorage = {
  keepsCryptoKeys: true,
  async get(key) {
    const place = placeOf(key)
    return place === undefined ? browser.get(key) : JSON.parse(place.in.getItem(place.name) ?? 'null')
  },
  async put(key, value) {
    const place = placeOf(key)
    if (place === undefined) await browser.put(key, value)
    else if (value === null) place.in.removeItem(place.name)
    else place.in.setItem(place.name, JSON.stringify(value))
  },
}

/** Undefined for the browser's own. */
function placeOf(key: string): { readonly in: Storage; readonly name: string } | undefined {
  if (key === 'waiting-sign-in') return { in: localStorage, name: waitingName() }
  if (!OF_PERSON.test(key)) return undefined
  return isKept() ? { in: localStorage, name: keptName(key) } : { in: sessionStorage, name: PREFIX + key }
}

/** Whether the person stays when this tab is closed. */
export function isKept(): boolean {
  return localStorage.getItem(keptName(MARK)) !== null
}

/** Has the person stay when this tab is closed, or not. */
export function keepPerson(isToStay: boolean): void {
  if (isToStay === isKept()) return
  const [from, to] = isToStay ? [sessionStorage, localStorage] : [localStorage, sessionStorage]
  const nameIn = (place: Storage, key: string) => (place === localStorage ? keptName(key) : PREFIX + key)
  const prefix = nameIn(from, '')
  for (const name of Object.keys(from)) {
    const key = name.slice(prefix.length)
    if (!name.startsWith(prefix) || !OF_PERSON.test(key)) continue
    to.setItem(nameIn(to, key), from.getItem(name)!)
    from.removeItem(name)
  }
  if (isToStay) localStorage.setItem(keptName(MARK), '')
  else localStorage.removeItem(keptName(MARK))
}

const OF_PERSON = /^(session|address|call\..*)$/
const MARK = 'on'

const PREFIX = 'callsign.'

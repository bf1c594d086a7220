/**
 * What the page keeps. Each tab is a person of its own, so session and call are the tab's; keys, which can't be read out,
 * and the state of the key log are the browser's, so that a later sign-in finds the same device.
 */

import { type AppStorage, indexedDbStorage } from '../../src/app/app.ts'
import { waitingName } from './tabs.ts'

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
  return /^(session|address|call\..*)$/.test(key) ? { in: sessionStorage, name: PREFIX + key } : undefined
}

const PREFIX = 'callsign.'

/**
 * What the page keeps. Each tab is a person of its own, so session and call are the tab's; keys, which can't be read out,
 * and the state of the key log are the browser's, so that a later sign-in finds the same device.
 */

import { type AppStorage, indexedDbStorage } from '../../src/app/app.ts'

const browser = indexedDbStorage()

export const storage: AppStorage = {
  keepsCryptoKeys: true,
  async get(key) {
    return isOfTab(key) ? JSON.parse(sessionStorage.getItem(PREFIX + key) ?? 'null') : browser.get(key)
  },
  async put(key, value) {
    if (isOfTab(key)) sessionStorage.setItem(PREFIX + key, JSON.stringify(value))
    else await browser.put(key, value)
  },
}

function isOfTab(key: string): boolean {
  return /^(session|address|call\..*)$/.test(key)
}

const PREFIX = 'callsign.'

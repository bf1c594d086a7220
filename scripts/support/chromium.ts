/** Where a Chromium is installed. It is the system's own; nothing is fetched. */

import { existsSync } from 'node:fs'

const { CALLSIGN_CHROMIUM } = process.env
const PROGRAMS = [
  // Costs half the processor time of the whole browser.
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** Undefined where there is none. */
export const CHROMIUM = (CALLSIGN_CHROMIUM ? [CALLSIGN_CHROMIUM] : PROGRAMS).find(path => existsSync(path))

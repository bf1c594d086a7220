/** Chromium for tests of pages, where one is installed. It is the system's own; nothing is fetched. */

import { type Browser, type BrowserContext, chromium } from 'playwright-core'
import type { Test } from 'tap'
import { CHROMIUM } from '../../scripts/support/chromium.ts'

/** The `skip` of a test that needs a browser: false where there is one, else the reason. */
export const skipWithoutChromium: string | false =
  CHROMIUM === undefined && 'needs Chromium: the Debian package chromium, or CALLSIGN_CHROMIUM=PATH'

/** Phone and desktop, as the pages are looked at. */
export const PHONE = { width: 390, height: 844 } as const
export const DESKTOP = { width: 1280, height: 800 } as const

/** A pretended camera of few pictures a second, for each is coded and decoded by the processor; and a microphone. */
export const FAKE_CAMERA = ['--use-fake-device-for-media-stream=fps=5', '--use-fake-ui-for-media-stream']

/** For a machine on which much else runs. A test has its own limit; this one says where it was. */
export const PATIENCE_MS = 120_000

export interface BrowserOptions {
  /** Further switches, such as those of a pretended camera. */
  readonly args?: readonly string[]
}

/**
 * A headless browser that ends with the test. An error that a page does not catch, and whatever the content security
 * policy of a page refuses, fails the test. Without a Chromium it comments why and gives undefined; a whole
 * test is better skipped by `skipWithoutChromium`.
 */
export async function openBrowser(t: Test, { args = [] }: BrowserOptions = {}): Promise<Browser | undefined> {
  if (CHROMIUM === undefined) {
    t.comment(skipWithoutChromium)
    return undefined
  }
  const switches = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', ...args]
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: switches, timeout: PATIENCE_MS })
  browser.on('context', context => watch(t, context))
  t.teardown(() => browser.close())
  return browser
}

function watch(t: Test, context: BrowserContext): void {
  context.setDefaultTimeout(PATIENCE_MS)
  context.on('weberror', event => {
    const { stack, name, message } = event.error()
    // A DOMException has no stack.
    t.fail(`the page throws: ${stack || `${name}: ${message}`}`)
  })
  context.on('console', message => {
    if (message.type() === 'error' && /Content Security Policy/.test(message.text())) t.fail(message.text())
  })
}

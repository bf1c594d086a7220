/** Firefox for tests of media, where one is installed. It is the system's own, driven by WebDriver BiDi. */

import { existsSync } from 'node:fs'
import puppeteer from 'puppeteer-core'
import type { Test } from 'tap'
import { type BrowserPage, PATIENCE_MS } from './browser.ts'

const FIREFOX = ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find(path => existsSync(path))

/** The `skip` of a test that needs it: false where there is one, else the reason. */
export const skipWithoutFirefox: string | false =
  FIREFOX === undefined && 'needs Firefox: the Debian package firefox-esr'

/** Opens pages of one headless Firefox, which ends with the test. An error that a page does not catch fails the test. */
export async function openFirefox(t: Test): Promise<(url: string) => Promise<BrowserPage>> {
  const browser = await puppeteer.launch({
    browser: 'firefox',
    executablePath: FIREFOX!,
    headless: true,
    timeout: PATIENCE_MS,
    protocolTimeout: PATIENCE_MS,
    extraPrefsFirefox: PREFERENCES,
  })
  t.teardown(() => browser.close())
  t.comment(await browser.version())
  return async url => {
    const page = await browser.newPage()
    page.on('pageerror', error => t.fail(`the page throws: ${error instanceof Error ? error.stack : error}`))
    await page.goto(url)
    return page
  }
}

const PREFERENCES = {
  'media.navigator.streams.fake': true,
  'media.navigator.permission.disabled': true,
  'media.autoplay.default': 0,
  'media.autoplay.blocking_policy': 0,
}

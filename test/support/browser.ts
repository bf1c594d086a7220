/** Chromium for tests of pages, where one is installed. It is the system's own; nothing is fetched. */

import {
  type Browser,
  type BrowserContext,
  type CDPSession,
  chromium,
  type LaunchOptions,
} from 'playwright-core'
import type { Test } from 'tap'
import { CHROMIUM } from '../../scripts/support/chromium.ts'

/** The `skip` of a test that needs a browser: false where there is one, else the reason. */
export const skipWithoutChromium: string | false =
  CHROMIUM === undefined && 'needs Chromium: the Debian package chromium, or CALLSIGN_CHROMIUM=PATH'

/** Phone and desktop, as the pages are looked at. */
export const PHONE = { width: 390, height: 844 } as const
export const DESKTOP = { width: 1280, height: 800 } as const

/** A page as tests use it, with any library that drives its browser. */
export interface BrowserPage {
  goto(url: string): Promise<unknown>
  evaluate(script: string): Promise<unknown>
  close(): Promise<void>
}

/** For a context whose pages may use camera and microphone, which are pretended. */
export const WITH_CAMERA = { permissions: ['camera', 'microphone'] }

/** For a machine on which much else runs. A test has its own limit; this one says where it was. */
export const PATIENCE_MS = 120_000

/**
 * A headless browser until the end of the test: the run's, or one of the test's own where a file runs alone. An error that a
 * page does not catch, and whatever the content security policy of a page refuses, fails the test. Without a Chromium it
 * comments why and gives undefined; a whole test is better skipped by `skipWithoutChromium`.
 */
export async function openBrowser(t: Test): Promise<Browser | undefined> {
  if (CHROMIUM === undefined) {
    t.comment(skipWithoutChromium)
    return undefined
  }
  const endpoint = process.env[SHARED]
  const browser = await (endpoint === undefined
    ? chromium.launch(launchOptions(CHROMIUM))
    : chromium.connect(endpoint, { timeout: PATIENCE_MS }))
  return watched(t, browser)
}

/** One of the test's own, started by this program and with these switches, too. */
export async function launchBrowser(t: Test, program: string, switches: readonly string[]): Promise<Browser> {
  return watched(t, await chromium.launch(launchOptions(program, switches)))
}

/** Opens pages with camera and microphone, each of a person of its own. */
export function pagesOf(browser: Browser): (url: string) => Promise<BrowserPage> {
  return async url => {
    const context = await browser.newContext(WITH_CAMERA)
    const page = await context.newPage()
    await page.goto(url)
    return {
      goto: url => page.goto(url),
      evaluate: script => page.evaluate(script),
      close: () => context.close(),
    }
  }
}

/**
 * Starts the browser of a run, if there is one. Resolves with the environment of its tests, and a function that ends
 * it.
 */
export async function serveBrowser() {
  if (CHROMIUM === undefined) return undefined
  const server = await chromium.launchServer(launchOptions(CHROMIUM))
  return { environment: { [SHARED]: server.wsEndpoint() }, end: () => server.close() }
}

/** Gives a page an authenticator that asks no user: passkeys are made and used at once. After `WebAuthn.enable`. Resolves with its id. */
export async function addAuthenticator(devtools: CDPSession, isUserVerified = true): Promise<string> {
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: isUserVerified,
      isUserVerified,
      automaticPresenceSimulation: true,
    },
  })
  return authenticatorId
}

function launchOptions(executablePath: string, switches: readonly string[] = []): LaunchOptions {
  return { executablePath, args: [...SWITCHES, ...switches], timeout: PATIENCE_MS }
}

function watched(t: Test, browser: Browser): Browser {
  browser.on('context', context => watch(t, context))
  // One of the run goes on, without the contexts of this test.
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

const SHARED = 'CALLSIGN_TEST_BROWSER'
export const SWITCHES = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  // Few pictures a second, for each is coded and decoded by the processor.
  '--use-fake-device-for-media-stream=fps=5',
  // The headless shell has no other way to grant a camera; it grants one to every page.
  '--use-fake-ui-for-media-stream',
  '--autoplay-policy=no-user-gesture-required',
]

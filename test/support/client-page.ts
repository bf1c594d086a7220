/** The development client as tests use it: a server, tabs of a browser, and people who sign in to them. */

import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import type { Test } from 'tap'
import { PATIENCE_MS, PHONE } from './browser.ts'
import { openServer } from './open-server.ts'
import type { OpenServer } from './server.ts'

/** Where the page of a server is. */
export interface ClientHouse {
  readonly url: string
  /** A browser profile of its own, which ends with the test. */
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>
}

/** Starts a server for the browser, unless there is one; both contexts and server end with the test. */
export async function openHouse(t: Test, browser: Browser, started?: OpenServer): Promise<ClientHouse> {
  const server = started ?? (await openServer({ dataFolder: t.testdir() }))
  t.teardown(() => server.end())
  const newContext = async (options: BrowserContextOptions = {}) => {
    const context = await browser.newContext({ viewport: PHONE, ...options })
    t.teardown(() => context.close())
    if (options.permissions === undefined) await context.addInitScript(REFUSE_CAMERA)
    return context
  }
  return { url: `${server.http}/dev/client`, newContext }
}

/** A button by its name, or a part of it. */
export function button(page: Page, name: string) {
  return page.getByRole('button', { name })
}

/** Two clicks: who one is, and the code. */
export async function signIn(page: Page, name: string): Promise<void> {
  await askToBe(page, name)
  await page.getByText('connected', { exact: true }).waitFor()
}

/** The same, whatever comes of it. */
export async function askToBe(page: Page, name: string): Promise<void> {
  await button(page, `Be ${name}`).click()
  await button(page, 'Fetch the code').click()
}

/** A tab of a new person. */
export async function newTab(context: BrowserContext, url: string, name: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(url)
  await signIn(page, name)
  return page
}

/** Opens the link of one tab in another person's, who asks, and is accepted. */
export async function befriend(one: Page, other: Page, name: string): Promise<void> {
  const link = await one.getByRole('textbox', { name: 'Your link' }).inputValue()
  await other.goto(link)
  await button(other, 'to be contacts').click()
  await button(one, 'Accept').click()
  await button(one, `Video call to ${name}`).waitFor()
}

/** Ann and Bob, who are contacts, each in a browser profile of their own. */
export async function contacts({ url, newContext }: ClientHouse): Promise<[ann: Page, bob: Page]> {
  const ann = await newTab(await newContext(), url, 'Ann')
  const bob = await newTab(await newContext(), url, 'Bob')
  await befriend(ann, bob, 'Bob')
  await button(bob, 'Video call to Ann').waitFor()
  return [ann, bob]
}

/** The digits with this label, once they are there. */
export async function digits(page: Page, label: string): Promise<string> {
  const shown = page.getByLabel(label, { exact: true }).filter({ hasText: /\d/ })
  await shown.waitFor()
  return (await shown.textContent()) ?? ''
}

/** How wide the page is, and the window. */
export function widthsOf(page: Page): Promise<unknown> {
  return page.evaluate('[document.documentElement.scrollWidth, innerWidth]')
}

/** The digits of the call's key, once it has this epoch. Its panel may be closed. */
export async function callDigits(page: Page, epoch?: number): Promise<string> {
  const panel = page.locator('#panel-key')
  const ofEpoch = epoch === undefined ? panel : panel.filter({ hasText: `Key ${epoch},` })
  return (await ofEpoch.locator('.digits').textContent()) ?? ''
}

/** Ends the call for all, which the page asks about. */
export async function endForAll(page: Page): Promise<void> {
  await button(page, 'More').click()
  await button(page, 'End for all').click()
  await page.getByRole('dialog').getByRole('button', { name: 'End for all' }).click()
}

/** Resolves when so many tiles have other people's moving pictures. */
export function seesPictures(page: Page, count: number): Promise<void> {
  return untilPictures(
    page,
    `.filter(({ videoWidth, currentTime }) => videoWidth > 0 && currentTime > 1).length === ${count}`,
  )
}

/** Until this holds for the videos of other people's pictures: elements keep them in shadow roots. */
export async function untilPictures(page: Page, condition: string): Promise<void> {
  const script = `(async () => {
    const inside = (root, of) => [...root.querySelectorAll('*')].flatMap(one => [
      ...(one.matches(of) ? [one] : []), ...(one.shadowRoot === null ? [] : inside(one.shadowRoot, of)),
    ])
    const began = performance.now()
    while (!inside(document, '.tile:not(.own, .floating) video.picture')${condition}) {
      if (performance.now() - began > ${PATIENCE_MS}) return false
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    return true
  })()`
  if (!(await page.evaluate(script))) throw new Error(`not within ${PATIENCE_MS} ms: pictures${condition}`)
}

/** As a person does who is asked for camera and microphone. */
const REFUSE_CAMERA = `if (navigator.mediaDevices) navigator.mediaDevices.getUserMedia = async () => {
  throw new DOMException('denied', 'NotAllowedError')
}`

/** Two people and the app of a template: sign-in, contacts, a call with all its buttons, a second device. */

import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'
import { sentCode } from '../../src/app/development.ts'
import { WITH_CAMERA } from './browser.ts'
import { faultsOf } from './operator-page.ts'

export interface AppPlace {
  /** Where the app is served. */
  readonly url: string
  /** Its server. */
  readonly server: string
}

/** A browser profile of its own, with the app open. */
async function openApp(t: Test, browser: Browser, { url }: AppPlace): Promise<Page> {
  const context = await browser.newContext({ ...WITH_CAMERA, locale: 'en-GB' })
  t.teardown(() => context.close())
  await context.addInitScript(FAKE_SCREEN)
  const page = await context.newPage()
  page.on('console', message => {
    if (/Content Security Policy/i.test(message.text())) t.fail(message.text())
  })
  await page.goto(url)
  return page
}

async function enterCode(page: Page, { server }: AppPlace, name: string): Promise<void> {
  const address = `${name.toLowerCase()}@example.org`
  await page.getByLabel('Email or phone').fill(address)
  await page.getByLabel('Your name').fill(name)
  await button(page, 'Send me a code').click()
  await page.getByLabel('Code', { exact: true }).waitFor()
  await page.getByLabel('Code', { exact: true }).fill(await sentCode(server, address))
  await button(page, 'Sign in').click()
}

export async function signIn(t: Test, browser: Browser, place: AppPlace, name: string): Promise<Page> {
  const page = await openApp(t, browser, place)
  await page.getByLabel('Email or phone').waitFor()
  t.same(await faultsOf(page), [], 'the sign-in has no fault')
  await enterCode(page, place, name)
  await page.getByText('connected', { exact: true }).waitFor()
  return page
}

/** Bob opens Ann's link, and she accepts. */
async function befriend(ann: Page, bob: Page): Promise<void> {
  const link = await ann.getByRole('textbox', { name: 'Your link' }).inputValue()
  await bob.goto(link)
  await button(bob, 'Ask Ann to be contacts').click()
  await button(ann, 'Accept Bob').click()
  await button(bob, 'Video call to Ann').waitFor()
}

/** The whole story. `hasWorker`: the app is served with its service worker. */
export async function twoPeopleCall(
  t: Test,
  browser: Browser,
  place: AppPlace,
  hasWorker = true,
): Promise<void> {
  const ann = await signIn(t, browser, place, 'Ann')
  const bob = await signIn(t, browser, place, 'Bob')
  await befriend(ann, bob)

  await button(bob, 'Video call to Ann').click()
  await bob.locator('callsign-lobby video').waitFor()
  await button(bob, 'Start the call').click()
  await ann.getByText('Verified').waitFor()
  await button(ann, 'Answer').click()
  await seesPicture(ann, 'Bob')
  await seesPicture(bob, 'Ann')
  const [anns, bobs] = await Promise.all([digits(ann), digits(bob)])
  t.match(anns, /^\d{5}( \d{5}){5}$/)
  t.equal(anns, bobs, 'both see the same digits')

  await ann.keyboard.press('m')
  await pressed(ann, 'Microphone', false)
  await bob.getByText('Ann: microphone off.').waitFor({ state: 'attached' })
  await ann.keyboard.press('v')
  await pressed(ann, 'Camera', false)
  await ann.keyboard.press('v')
  await pressed(ann, 'Camera', true)
  await button(bob, 'Share the screen').click()
  await pressed(bob, 'Share the screen', true)
  await ann.getByLabel('Bob’s screen').waitFor()

  await ann.reload()
  t.equal(await digits(ann), bobs, 'a page that was loaded again is back in the call')
  await pressed(ann, 'Microphone', false)
  await seesPicture(ann, 'Bob')
  await button(bob, 'Leave').click()
  await button(bob, 'Video call to Ann').waitFor()
  await button(ann, 'Leave').click()
  await button(ann, 'Video call to Bob').waitFor()

  await secondDeviceRings(t, browser, place, ann, bob)
  if (!hasWorker) return
  const worker = await ann.evaluate('navigator.serviceWorker.ready.then(({ active }) => active.scriptURL)')
  t.match(worker, '/service-worker.js')
}

/** Ann's second device is approved by her first one, and then both ring. */
async function secondDeviceRings(t: Test, browser: Browser, place: AppPlace, ann: Page, bob: Page) {
  const second = await openApp(t, browser, place)
  await enterCode(second, place, 'Ann')
  await second.getByText('Approve this device').waitFor()
  await button(ann, 'It shows this code: approve').click()
  await button(second, 'Video call to Bob').waitFor()
  await button(bob, 'Audio call to Ann').click()
  await button(bob, 'Start the call').click()
  await button(ann, 'Answer').waitFor()
  await button(second, 'Answer').click()
  t.equal(await digits(second), await digits(bob))
  await button(ann, 'Answer').waitFor({ state: 'detached' })
  await button(second, 'Leave').click()
}

function button(page: Page, name: string) {
  return page.getByRole('button', { name, exact: true })
}

async function pressed(page: Page, name: string, isPressed: boolean): Promise<void> {
  await page.getByRole('button', { name, exact: true, pressed: isPressed }).waitFor()
}

/** Resolves with the digits of the call's key once they are shown. */
async function digits(page: Page): Promise<string> {
  const shown = page.locator('[aria-label="Digits of the call’s key"]')
  await shown.filter({ hasText: /\d/ }).waitFor({ state: 'attached' })
  return (await shown.textContent()) ?? ''
}

/** Resolves once the person's camera moves. */
async function seesPicture(page: Page, name: string): Promise<void> {
  const video = page.getByLabel(`${name}’s camera`)
  await video.waitFor()
  const isMoving = (video: unknown) => {
    const { videoWidth, currentTime } = video as { readonly videoWidth: number; readonly currentTime: number }
    return videoWidth > 0 && currentTime > 0
  }
  const handle = await video.elementHandle()
  await page.waitForFunction(isMoving, handle, { polling: 100 })
}

/** The browsers of tests have no screen to choose. */
const FAKE_SCREEN = `navigator.mediaDevices && (navigator.mediaDevices.getDisplayMedia = async () => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 180 })
  const paper = canvas.getContext('2d')
  setInterval(() => paper.fillRect(0, 0, Math.random() * 320, 180), 200)
  return canvas.captureStream(5)
})`

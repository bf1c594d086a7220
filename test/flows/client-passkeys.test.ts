/**
 * Passkeys in the development client, in headless Chromium with an authenticator of its own: added, used to sign in and to prove
 * who one is, removed; then the export of the account, and its end.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { addAuthenticator, DESKTOP, openBrowser, PHONE, skipWithoutChromium } from '../support/browser.ts'
import { button, focused, newTab, openHouse, signIn, widthsOf } from '../support/client-page.ts'

const browser = (await openBrowser(t)) as Browser
/** Older browsers have WebAuthn without its JSON. */
const WITHOUT_JSON = `if (globalThis.PublicKeyCredential) {
  delete PublicKeyCredential.parseCreationOptionsFromJSON
  delete PublicKeyCredential.parseRequestOptionsFromJSON
  delete PublicKeyCredential.prototype.toJSON
}`

/** Ann is signed in; the page is of `localhost`, whose passkeys a development server takes. */
async function setUp(t: Test, prepare: (context: BrowserContext) => Promise<unknown> = async () => {}) {
  const house = await openHouse(t, browser)
  const url = house.url.replace('127.0.0.1', 'localhost')
  const context = await house.newContext()
  await prepare(context)
  const ann = await newTab(context, url, 'Ann')
  const devtools = await context.newCDPSession(ann)
  await devtools.send('WebAuthn.enable')
  await addAuthenticator(devtools)
  return { ...house, url, ann }
}

function dialog(page: Page) {
  return page.getByRole('dialog', { name: 'Is it you?' })
}

function passkeys(page: Page) {
  return page.locator('.passkeys li')
}

async function addPasskey(page: Page): Promise<void> {
  await button(page, 'Add a passkey').click()
  await button(page, 'Fetch the code and confirm').click()
  await passkeys(page).waitFor()
}

for (const [kind, script] of [
  ['a browser', ''],
  ['a browser without the JSON of WebAuthn', WITHOUT_JSON],
] as const) {
  t.test(
    `a passkey of ${kind} is added, signs in, and proves who one is`,
    { skip: skipWithoutChromium },
    async t => {
      const { ann } = await setUp(t, context => context.addInitScript(script))
      await addPasskey(ann)
      t.equal(await dialog(ann).count(), 0)
      t.match(await passkeys(ann).textContent(), /Chrome, development client/)
      await button(ann, 'Sign out').click()
      await button(ann, 'Sign in with a passkey').click()
      await ann.getByText('connected', { exact: true }).waitFor()
      await passkeys(ann).getByRole('button', { name: 'Remove' }).click()
      await button(ann, 'Use a passkey').click()
      await passkeys(ann).waitFor({ state: 'detached' })
      await button(ann, 'Sign out').click()
      await button(ann, 'Sign in with a passkey').click()
      await ann.getByText('This passkey is not valid any more').waitFor()
    },
  )
}

t.test(
  'the dialog takes the keyboard, says why a code is wrong, and can be put away',
  { skip: skipWithoutChromium },
  async t => {
    const { ann } = await setUp(t)
    const add = button(ann, 'Add a passkey')
    await add.click()
    const code = dialog(ann).getByRole('textbox')
    await code.waitFor()
    t.equal(await focused(ann, 'name'), 'otp')
    t.equal(await add.isDisabled(), true)
    await code.fill('000000')
    await code.press('Enter')
    await dialog(ann).getByText('4 more tries').waitFor()
    for (const viewport of [PHONE, DESKTOP]) {
      await ann.setViewportSize(viewport)
      const [page, window] = (await widthsOf(ann)) as [number, number]
      t.equal(page, window)
    }
    await code.press('Escape')
    await ann.getByText('Confirm who you are first.').waitFor()
    t.equal(await dialog(ann).count(), 0)
    t.equal(await add.isDisabled(), false)
    await addPasskey(ann)
  },
)

t.test(
  'the account is saved as a file, ends, and is kept by signing in again',
  { skip: skipWithoutChromium },
  async t => {
    const { ann } = await setUp(t)
    const saving = ann.waitForEvent('download')
    await button(ann, 'Save what the server has of it').click()
    await button(ann, 'Send me a code').click()
    await button(ann, 'Fetch the code and confirm').click()
    const file = join(t.testdirName, 'account.json')
    await (await saving).saveAs(file)
    const saved = JSON.parse(readFileSync(file, 'utf8'))
    t.match(saved, { user: { displayName: 'Ann' }, contacts: [], sessions: [{}] })
    await ann.getByText('End the account').click()
    await button(ann, 'End it').click()
    await ann.getByText('Your account is erased').waitFor()
    await signIn(ann, 'Ann')
  },
)

t.test(
  'at an address without a domain the page says where passkeys can be added',
  { skip: skipWithoutChromium },
  async t => {
    const { url, newContext } = await openHouse(t, browser)
    const ann = await newTab(await newContext(), url, 'Ann')
    const link = ann.getByRole('link', { name: 'localhost' })
    t.equal(await link.getAttribute('href'), url.replace('127.0.0.1', 'localhost'))
    t.equal(await button(ann, 'Add a passkey').count(), 0)
  },
)

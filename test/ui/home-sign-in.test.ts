/** Signing in by `<callsign-sign-in>` in headless Chromium: codes, passkeys, and what else stands before the first call. */

import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { addAuthenticator, openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { button, digits } from '../support/client-page.ts'
import { newPhone, registrationOf } from '../support/device-lists.ts'
import { askForCode, newPerson, openHome } from '../support/home-page.ts'
import { faultsOf } from '../support/operator-page.ts'
import { postJson } from '../support/server.ts'

const browser = (await openBrowser(t)) as Browser
const DEVICES_MAX = 10

const isConnected = (page: Page) => page.getByText('connected', { exact: true }).waitFor()
const title = (page: Page, name: string) => page.getByRole('heading', { name }).waitFor()

t.test(
  'a wrong code is said with the tries left and a right one signs in, by the keyboard alone',
  { skip: skipWithoutChromium },
  async t => {
    const { server, url, newContext } = await openHome(t, browser)
    const page = await (
      await newContext({ viewport: { width: 320, height: 640 }, colorScheme: 'dark' })
    ).newPage()
    await page.goto(url)
    await title(page, 'Sign in')
    t.same(await faultsOf(page), [])
    await page.keyboard.press('Tab')
    await page.keyboard.type('ann@example.org')
    await page.keyboard.press('Tab')
    await page.keyboard.type('Ann')
    await page.keyboard.press('Enter')
    const code = page.getByLabel('Code', { exact: true })
    await title(page, 'Enter the code')
    t.same(await faultsOf(page), [])
    t.equal(await button(page, 'Another code in').isDisabled(), true)
    const shown = page.getByRole('link', { name: '/dev' })
    t.equal(await shown.count(), 0, 'the page fetches codes by itself')
    const signIn = `document.querySelector('callsign-sign-in')`
    await page.evaluate(
      `globalThis.inbox = ${signIn}.developmentInbox; ${signIn}.developmentInbox = undefined`,
    )
    t.equal(await shown.getAttribute('href'), `${new URL(url).origin}/dev`)
    t.same(await faultsOf(page), [])
    await page.evaluate(`Object.defineProperty(me, 'pins', { value: { vkey: 'calls.example.org+1c14b4a8+AUM' } })
      ${signIn}.requestUpdate()`)
    await shown.waitFor({ state: 'detached' })
    await page.evaluate(`${signIn}.developmentInbox = inbox`)
    await page.keyboard.type('000000')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('4 more tries.').waitFor()
    t.equal(await code.getAttribute('aria-invalid'), 'true')
    const inbox = await (await fetch(`${server.http}/dev/inbox?to=ann@example.org`)).json()
    const { otp } = (inbox as { items: { otp: string }[] }).items[0]!
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type(otp)
    await page.keyboard.press('Enter')
    await isConnected(page)
    t.equal(await page.evaluate('me.user.displayName'), 'Ann')
    const [width, window] = (await page.evaluate(
      '[document.documentElement.scrollWidth, innerWidth]',
    )) as number[]
    t.equal(width, window, 'nothing is wider than the phone')
    await button(page, 'Sign out').click()
    await title(page, 'Sign in')
    await askForCode(page, 'Bob')
    await button(page, 'Back').click()
    await title(page, 'Sign in')
    t.same(await page.locator('.failure').allInnerTexts(), [], 'going back is no failure')
  },
)

t.test(
  'a passkey is added with a proof, signs in and is removed; a proof can be refused',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const page = await newPerson(house, 'Ann')
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    await addAuthenticator(devtools)
    await button(page, 'Add a passkey').click()
    const dialog = page.getByRole('dialog', { name: 'Is it you?' })
    await dialog.getByLabel('Code').waitFor()
    t.same(await faultsOf(page), [])
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('Confirm who you are first.').waitFor()
    await button(page, 'Add a passkey').click()
    await dialog.getByLabel('Code').fill('000000')
    await dialog.getByRole('button', { name: 'Confirm', exact: true }).click()
    await dialog.getByText('more tries').waitFor()
    await button(page, 'Fetch the code and confirm').click()
    const passkeys = page.locator('.passkeys li')
    await passkeys.waitFor()
    t.match(await passkeys.innerText(), /^Chrome, Linux/)
    await button(page, 'Sign out').click()
    await button(page, 'Sign in with a passkey').click()
    await isConnected(page)
    await passkeys.getByRole('button', { name: 'Remove' }).click()
    await button(page, 'Use a passkey').click()
    await passkeys.waitFor({ state: 'detached' })
  },
)

t.test(
  'a sign-in waits through a reload until another device lets it in, or refuses it',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser, { CALLSIGN_SIGN_IN_WAIT_HOURS: '72' })
    const ann = await newPerson(house, 'Ann')
    const page = await (await house.newContext()).newPage()
    await page.goto(house.url)
    const ask = async () => {
      await askForCode(page, 'Ann')
      await button(page, 'Fetch the code').click()
      return digits(page, 'Code of this sign-in')
    }
    const code = await ask()
    t.match(code, /^\d{5}( \d{5}){3}$/)
    t.same(await faultsOf(page), [])
    await page.reload()
    t.equal(await digits(page, 'Code of this sign-in'), code)
    t.equal(await digits(ann, 'Code of the sign-in'), code, 'both screens show one code')
    t.same(await faultsOf(ann), [])
    await button(page, 'Sign in as somebody else').click()
    await title(page, 'Sign in')
    t.equal(await ask(), code, 'the way back leads to the same wait')
    await button(ann, 'It shows these: approve').click()
    await title(page, 'Approve this device')
    await ann.getByText('The sign-in is approved.').waitFor()

    const thief = await (await house.newContext()).newPage()
    await thief.goto(house.url)
    await askForCode(thief, 'Ann')
    await button(thief, 'Fetch the code').click()
    await button(ann, 'It is not me: refuse').click()
    await thief.getByText('has refused the sign-in. Until').waitFor()
    t.same(await faultsOf(thief), [])
    await button(thief, 'Begin again').click()
    await title(thief, 'Sign in')
  },
)

t.test('one device too many takes the place of another', { skip: skipWithoutChromium }, async t => {
  const house = await openHome(t, browser)
  const ann = await newPerson(house, 'Ann')
  // The session is the last one's whose key it registers.
  const second = await newPerson(house, 'Ann')
  const tokens = (await second.evaluate(SESSION)) as { accessToken: string; challenge: string }
  for (let at = 2; at < DEVICES_MAX; at++) await register(house.server.http, tokens, { name: `Phone ${at}` })
  const page = await (await house.newContext()).newPage()
  await page.goto(house.url)
  await askForCode(page, 'Ann')
  await button(page, 'Fetch the code').click()
  await title(page, 'as many devices as you may')
  t.same(await faultsOf(page), [])
  t.equal(await page.locator('.devices li').count(), DEVICES_MAX)
  t.equal(await page.locator('.devices summary').count(), 0, 'nobody has approved this one: it removes none')
  await ann.locator('.devices li').filter({ hasText: 'Phone 7' }).locator('summary').click()
  await button(ann, 'Remove it').click()
  await ann.getByText('was removed from your devices').waitFor()
  await page.reload()
  await title(page, 'Approve this device')
})

/** Reads the session from the page's storage. */
const SESSION = `new Promise(resolve => {
  indexedDB.open('callsign-app').onsuccess = ({ target }) => {
    target.result.transaction('values').objectStore('values').get('session').onsuccess = ({ target }) => resolve(target.result)
  }
})`

/** A device with the page's session and keys of its own. */
async function register(
  url: string,
  { accessToken, challenge }: { accessToken: string; challenge: string },
  deviceInfo: object,
): Promise<void> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${accessToken}` }
  const body = { ...registrationOf(newPhone(JSON.stringify(deviceInfo)), challenge), deviceInfo }
  const { status } = await postJson(`${url}/app/api/register_device`, body, headers)
  if (status !== 201) throw new Error(`a device was answered with ${status}`)
}

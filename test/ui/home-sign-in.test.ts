/** Signing in by `<callsign-sign-in>` in headless Chromium: codes, passkeys, and what else stands before the first call. */

import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { addAuthenticator, openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { askForCode, newPerson, openHome, signInAs } from '../support/home-page.ts'
import { faultsOf } from '../support/operator-page.ts'

const browser = (await openBrowser(t)) as Browser
const button = (page: Page, name: string) => page.getByRole('button', { name })

t.test(
  'a wrong code is said with the tries left, a right one signs in',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const page = await (await house.newContext()).newPage()
    await page.goto(house.url)
    await askForCode(page, 'Ann')
    const code = page.getByLabel('Code', { exact: true })
    await code.waitFor()
    t.same(await faultsOf(page), [])
    await code.fill('000000')
    await code.press('Enter')
    await page.getByText('4 more tries.').waitFor()
    t.equal(await button(page, 'Another code in').isDisabled(), true)
    await button(page, 'Back').click()
    await askForCode(page, 'Ann')
    await button(page, 'Fetch the code').click()
    await page.waitForFunction("me.connection === 'connected'")
    t.equal(await page.evaluate('me.user.displayName'), 'Ann')
  },
)

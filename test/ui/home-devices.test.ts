/** `<callsign-devices>` in headless Chromium: a second device is approved, removed, or becomes the only one. */

import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { DESKTOP, openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { button, digits } from '../support/client-page.ts'
import { newPerson, openHome } from '../support/home-page.ts'
import { faultsOf } from '../support/operator-page.ts'

const browser = (await openBrowser(t)) as Browser
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const rows = (page: Page) => page.locator('.devices li')
const contactsOf = (page: Page) => page.getByRole('heading', { name: 'Contacts', exact: true })

t.test(
  'a second device shows its code, and is approved by it on the first',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const first = await newPerson(house, 'Ann', { colorScheme: 'dark', viewport: DESKTOP })
    const second = await newPerson(house, 'Ann', {
      userAgent: FIREFOX,
      viewport: { width: 320, height: 700 },
    })
    const code = await digits(second, 'Code of this device')
    t.match(code, /^\d{5}( \d{5}){3}$/)
    t.equal(await digits(first, 'Code of Firefox, Linux'), code, 'both screens show one code')
    t.same([...(await faultsOf(first)), ...(await faultsOf(second))], [])
    t.equal(await contactsOf(second).count(), 0, 'it reads no contacts yet')
    const alarm = first.getByText('Signed in as you: Firefox on Linux')
    await alarm.waitFor()
    await button(first, 'It shows this code: approve').click()
    await alarm.waitFor({ state: 'detached' })
    await contactsOf(second).waitFor()
    t.match(await rows(first).allInnerTexts(), [
      /^Chrome, Linux[\s\S]*this device$/,
      /^Firefox, Linux[\s\S]*last seen/,
    ])

    await rows(first).nth(1).locator('summary').press('Enter')
    await button(first, 'Keep it').press('Enter')
    t.equal(await button(first, 'Remove it').count(), 0)
    await first.keyboard.press('Enter')
    t.same(await faultsOf(first), [])
    await button(first, 'Remove it').press('Enter')
    await rows(first).nth(1).waitFor({ state: 'detached' })
    await second.getByText('This device was removed from your account').waitFor()
  },
)

t.test(
  'an impostor’s device is removed where it asks to be approved',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const ann = await newPerson(house, 'Ann')
    const thief = await newPerson(house, 'Ann', { userAgent: FIREFOX })
    await button(ann, 'That is not me: remove').click()
    await thief.getByRole('heading', { name: 'Sign in' }).waitFor()
    await rows(ann).nth(1).waitFor({ state: 'detached' })
    await button(ann, 'approve').waitFor({ state: 'detached' })
    await ann.getByText('Signed in as you').waitFor({ state: 'detached' })
  },
)

t.test(
  'a device becomes the only one, after a question and a proof',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const first = await newPerson(house, 'Ann')
    const second = await newPerson(house, 'Ann', { userAgent: FIREFOX })
    await second.getByText('Make this the only device').click()
    await second.getByText('No call rings on your other devices any more. Your contacts are told').waitFor()
    t.same(await faultsOf(second), [])
    await button(second, 'Start over').click()
    await button(second, 'Fetch the code and confirm').click()
    await second.getByText('This is your only device now.').waitFor()
    await contactsOf(second).waitFor()
    await digits(first, 'Code of this device')
    await first.getByText('Your devices were started over on a new one.').waitFor()
    t.equal(await contactsOf(first).count(), 0, 'the first one waits now')
  },
)

/**
 * The user's own devices and sessions in the development client, in headless Chromium: the lists of both, how one is removed
 * or ended and what its page says, and a sign-in that waits for its owner.
 */

import type { Browser, Locator, Page } from 'playwright-core'
import t from 'tap'
import { openBrowser, PHONE, skipWithoutChromium } from '../support/browser.ts'
import {
  askToBe,
  button,
  contacts,
  digits,
  focused,
  newTab,
  openHouse,
  widthsOf,
} from '../support/client-page.ts'
import { newPhone, registrationOf } from '../support/device-lists.ts'
import { openServer } from '../support/open-server.ts'
import { postJson } from '../support/server.ts'
import { long } from '../support/size.ts'

const browser = (await openBrowser(t)) as Browser
const EDGE =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0'
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const DEVICES_MAX = 10

/** Its rows, or those of this name. */
function rows(page: Page, name = ''): Locator {
  return page.locator('.devices li').filter({ hasText: name })
}

/** Opens the question, by the keyboard: what the page does then is where the next Tab goes on. */
async function askToRemove(row: Locator): Promise<void> {
  await row.locator('summary').press('Enter')
}

async function remove(row: Locator): Promise<void> {
  await askToRemove(row)
  await row.getByRole('button', { name: 'Remove it' }).click()
}

/** Rows of the sessions. */
function sessions(page: Page): Locator {
  return page.locator('.sessions li')
}

function tokensOf(page: Page): Promise<string> {
  return page.evaluate('sessionStorage.getItem("callsign.session")')
}

t.test(
  'a lost device is removed from the list, says so itself and goes no further',
  { skip: skipWithoutChromium },
  async t => {
    const { url, newContext } = await openHouse(t, browser)
    const ann = await newTab(await newContext(), url, 'Ann')
    await rows(ann, 'this device').waitFor()
    const third = await newTab(await newContext({ userAgent: FIREFOX }), url, 'Ann')
    await button(ann, 'approve').click()
    await rows(third, 'Chrome').locator('summary').waitFor()
    const lost = await newTab(await newContext({ userAgent: EDGE }), url, 'Ann')
    await rows(ann, 'Edge').waitFor()
    t.match(await rows(ann).allInnerTexts(), [/^Chrome/, /^Edge.*\n.*web, added .+, last seen/, /^Firefox/])
    t.match(await rows(lost, 'this device').innerText(), /^Edge/)
    t.equal(await rows(ann, 'this device').locator('summary').count(), 0, 'signing out is the way for that')
    t.equal(await rows(lost).locator('summary').count(), 0, 'nobody has approved that one: it removes none')

    await askToRemove(rows(ann, 'Edge'))
    await rows(ann, 'Edge').getByRole('button', { name: 'Keep it' }).press('Enter')
    t.equal(await focused(ann, 'textContent'), 'Remove', 'the keyboard is where it was')
    t.equal(await button(ann, 'Remove it').count(), 0)
    await askToRemove(rows(third, 'Edge'))
    const tokens = await tokensOf(lost)

    await remove(rows(ann, 'Edge'))
    await rows(ann, 'Edge').waitFor({ state: 'detached' })
    await ann.getByText('Edge, development client was removed from your devices.').waitFor()
    t.equal(await focused(ann, 'textContent'), 'Your devices', 'the keyboard stays with the list')
    await rows(third, 'Edge').waitFor({ state: 'detached' })
    await third.getByText('Edge, development client was removed from your devices.').waitFor()
    await lost.getByText('This device was removed from your account').waitFor()
    await button(lost, 'Be Ann').waitFor()

    await lost.evaluate(`sessionStorage.setItem('callsign.session', ${JSON.stringify(tokens)})`)
    await lost.reload()
    await lost.getByText('This session has ended. Sign in again.').waitFor()
    await button(lost, 'Be Ann').waitFor()
  },
)

t.test(
  'a removal without an answer is said, and may be tried again when it was carried out after all',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await openHouse(t, browser)
    const context = await newContext()
    // Else the list would show by itself what became of the try without an answer.
    await context.routeWebSocket('**/ws', route => {
      route.connectToServer().onMessage(message => {
        if (!String(message).includes('device_removed')) route.send(message)
      })
    })
    const ann = await newTab(context, url, 'Ann')
    await newTab(await newContext({ userAgent: EDGE }), url, 'Ann')
    await rows(ann, 'Edge').waitFor()
    const removals = '**/app/api/devices/*'
    await ann.route(removals, async route => {
      await route.fetch()
      await route.abort()
    })
    await remove(rows(ann, 'Edge'))
    await ann.getByText('The server can’t be reached.').waitFor()
    t.equal(await rows(ann, 'Edge').count(), 1, 'nothing is shown that is not known')
    await ann.unroute(removals)
    await button(ann, 'Remove it').click()
    await rows(ann, 'Edge').waitFor({ state: 'detached' })
    await ann.getByText('Edge, development client was removed').waitFor()
  },
)

t.test(
  'a device is shown by the name it gives itself, whatever that is',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await openHouse(t, browser)
    const ann = await newTab(await newContext(), url, 'Ann')
    const names = {
      '<img src=x onerror="throw 1">': '<img src=x onerror="throw 1">',
      ['M'.repeat(100)]: 'M'.repeat(100),
      '\u202eenohp': 'enohp',
    }
    const stranger = await newTab(await newContext({ userAgent: EDGE }), url, 'Ann')
    const tokens = await tokensOf(stranger)
    for (const [name, shown] of Object.entries(names)) {
      await register(url, tokens, { platform: 'P'.repeat(32), name })
      await ann.getByText(`A new device signs in as you: ${shown}. Was that you?`).waitFor()
      await rows(ann).locator('.name').getByText(shown, { exact: true }).waitFor()
    }
    await askToRemove(rows(ann, 'MMM'))
    t.same(await widthsOf(ann), [PHONE.width, PHONE.width])
  },
)

t.test(
  'who has as many devices as may be removes one, and is signed in with the new one',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await openHouse(t, browser)
    const ann = await newTab(await newContext(), url, 'Ann')
    // The session is the last one's whose key it registers.
    const tokens = await tokensOf(await newTab(await newContext({ userAgent: FIREFOX }), url, 'Ann'))
    for (let at = 2; at < DEVICES_MAX; at++) await register(url, tokens, { name: `Phone ${at}` })
    const page = await (await newContext({ userAgent: EDGE })).newPage()
    await page.goto(url)
    await askToBe(page, 'Ann')
    const heading = page.getByRole('heading', { name: 'as many devices as you may' })
    await heading.waitFor()
    await page.reload()
    await heading.waitFor()
    t.equal(await rows(page).count(), DEVICES_MAX)
    t.equal(
      await rows(page).locator('summary').count(),
      0,
      'all were seen today, and nobody has approved this one',
    )
    await remove(rows(ann, 'Phone 7'))
    await rows(ann, 'Phone 7').waitFor({ state: 'detached' })
    await page.reload()
    await page.getByText('connected', { exact: true }).waitFor()
    await rows(page, 'this device').waitFor()
    t.equal(await rows(page).count(), DEVICES_MAX)
    t.equal(await rows(page, 'Phone 7').count(), 0)
    t.match(await rows(page, 'this device').innerText(), /^Edge/)
  },
)

t.test(
  'a session that begins is shown on the page, which ends it, or all but its own',
  { skip: skipWithoutChromium },
  async t => {
    const { url, newContext } = await openHouse(t, browser)
    const ann = await newTab(await newContext(), url, 'Ann')
    const isOver = (page: Page) => page.getByText('You are signed out. Sign in again.').waitFor()
    const other = await newTab(await newContext({ userAgent: EDGE }), url, 'Ann')
    await ann.getByText('Signed in as you: Edge on Linux, from 127.0.0.0/24. Was that you?').waitFor()
    await sessions(ann).getByText('Edge, development client').waitFor()
    t.match(await sessions(ann).allInnerTexts(), [
      /^Edge.*\nfrom 127\.0\.0\.0\/24, since .+, used .+\nEnd$/,
      /^Chrome.*\n.+\nthis one$/,
    ])
    await button(ann, 'End that session').click()
    await isOver(other)
    t.equal(await sessions(ann).count(), 1)
    t.equal(await button(ann, 'End that session').count(), 0, 'the notice has done its part')

    const pages: Page[] = []
    for (const userAgent of [FIREFOX, EDGE])
      pages.push(await newTab(await newContext({ userAgent }), url, 'Ann'))
    await sessions(ann).nth(2).waitFor()
    await ann.getByText('End all others').click()
    await button(ann, 'End them').click()
    await Promise.all(pages.map(isOver))
    t.match(await sessions(ann).allInnerTexts(), [/this one$/])
  },
)

t.test(
  'a sign-in waits until its owner approves or refuses it, through reloads and a closed page',
  { skip: skipWithoutChromium },
  async t => {
    const environment = { CALLSIGN_SIGN_IN_WAIT_HOURS: '72' }
    const server = await openServer({ dataFolder: t.testdir(), environment })
    const { url, newContext } = await openHouse(t, browser, server)
    const ann = await newTab(await newContext(), url, 'Ann')
    const context = await newContext({ userAgent: EDGE })
    const closed = await context.newPage()
    await closed.goto(url)
    await askToBe(closed, 'Ann')
    const code = await digits(closed, 'Code of this sign-in')
    t.match(code, /^\d{5}( \d{5}){3}$/)
    t.equal(await digits(ann, 'Code of the sign-in'), code, 'both screens show one code')

    await closed.close()
    const page = await context.newPage()
    await page.goto(url)
    t.equal(await digits(page, 'Code of this sign-in'), code)
    await ann.reload()
    await ann
      .getByText('Edge on Linux at 127.0.0.0/24 has the code that went to your email address')
      .waitFor()
    t.equal(await digits(ann, 'Code of the sign-in'), code)
    await button(ann, 'It shows these: approve').click()
    await ann.getByText('The sign-in is approved.').waitFor()
    const ofDevice = await digits(page, 'Code of this device')
    t.same(
      await page.locator('h2').allInnerTexts(),
      ['Approve this device', 'Your devices'],
      'and no more yet',
    )
    t.same(await page.locator('.notice.bad').allInnerTexts(), [])
    t.equal(await digits(ann, 'Code of Edge, development client'), ofDevice)
    await button(ann, 'It shows this code: approve').click()
    await page.getByRole('textbox', { name: 'Your link' }).waitFor()
    await sessions(page).getByText('this one').waitFor()

    const thief = await (await newContext({ userAgent: FIREFOX })).newPage()
    await thief.goto(url)
    await askToBe(thief, 'Ann')
    await button(ann, 'It is not me: refuse').click()
    await ann.getByText('Nobody can sign in with that address for seven days').waitFor()
    await page.getByText('Nobody can sign in with that address for seven days').waitFor()
    t.equal(await page.getByLabel('Code of the sign-in').count(), 0, 'no device asks any more')
    await thief.getByText('Another device of this account has refused the sign-in. Until').waitFor()
    await button(thief, 'Begin again').click()
    await askToBe(thief, 'Ann')
    await thief.locator('.notice').getByText('has refused the sign-in. Until').waitFor()
  },
)

t.test(
  'who calls a person whose only open device is not approved is told so',
  long({ skip: skipWithoutChromium }),
  async t => {
    const house = await openHouse(t, browser)
    const [ann, bob] = await contacts(house)
    await bob.context().close()
    const waiting = await newTab(await house.newContext(), house.url, 'Bob')
    await digits(waiting, 'Code of this device')
    await button(ann, 'Audio call to Bob').click()
    await ann.getByRole('status').filter({ hasText: 'Their new device is not approved yet' }).waitFor()
  },
)

/** A device with the page's session and keys of its own. */
async function register(url: string, tokens: string, deviceInfo: object): Promise<void> {
  const { accessToken, challenge } = JSON.parse(tokens)
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${accessToken}` }
  const address = new URL('/app/api/register_device', url).href
  const body = { ...registrationOf(newPhone(JSON.stringify(deviceInfo)), challenge), deviceInfo }
  const { status } = await postJson(address, body, headers)
  if (status !== 201) throw new Error(`a device was answered with ${status}`)
}

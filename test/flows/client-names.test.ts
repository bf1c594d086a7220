/** Names in the development client: the person's own for a contact, and a stranger who has the name of one. */

import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { settingsFor } from '../support/call-people.ts'
import { button, contacts, endForAll, newTab, openHouse } from '../support/client-page.ts'
import { openServer } from '../support/open-server.ts'
import { newPerson } from '../support/whole-apps.ts'

const browser = (await openBrowser(t)) as Browser

/** Lets strangers call the page's user, with the token that the page sends. */
async function takeCallsFromAll(page: Page, http: string): Promise<string> {
  const sent = page.waitForRequest(request => 'authorization' in request.headers())
  await page.reload()
  const headers = { authorization: (await sent).headers().authorization!, 'content-type': 'application/json' }
  const body = JSON.stringify({ settings: { callsFromContactsOnly: false } })
  const answer = await fetch(`${http}/app/api/user`, { method: 'PUT', headers, body })
  return ((await answer.json()) as { user: { userId: string } }).user.userId
}

t.test(
  'a contact is shown by the person’s own name for them on every screen, and a stranger as one',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHouse(t, browser)
    const [ann, bob] = await contacts(house)
    await ann.getByLabel('More about Bob').click()
    await button(ann, 'Change the name').click()
    const field = ann.getByRole('textbox', { name: 'Your name for Bob' })
    await field.fill('My brother')
    await ann.getByRole('button', { name: 'Save', exact: true }).click()
    await button(ann, 'Video call to My brother').waitFor()
    await ann.locator('.own-name').getByText('Bob', { exact: true }).waitFor()

    await button(bob, 'Audio call to Ann').click()
    await ann.locator('.ring').getByText('My brother', { exact: true }).waitFor()
    await ann.getByText('Calls themselves Bob').waitFor()
    t.match(await ann.title(), /My brother calls · Ann/)
    t.equal(await ann.locator('.stranger').count(), 0)
    await button(ann, 'Answer').click()
    await ann.getByRole('heading', { name: 'My brother' }).waitFor()
    await ann.locator('figcaption').filter({ hasText: 'My brother' }).waitFor()
    await button(ann, '2 people').click()
    await ann.locator('#panel-people').getByText('My brother', { exact: true }).waitFor()
    await bob.getByRole('heading', { name: 'Ann' }).waitFor()
    t.notOk((await bob.content()).includes('brother'), 'who never sees it')
    await endForAll(bob)
    await ann.locator('.history').getByText('My brother', { exact: true }).waitFor()

    await ann.getByLabel('More about My brother').click()
    await button(ann, 'Change the name').click()
    await field.fill('')
    await ann.getByRole('button', { name: 'Save', exact: true }).click()
    await button(ann, 'Video call to Bob').waitFor()
    await ann.locator('.history').getByText('Bob', { exact: true }).waitFor()
  },
)

t.test('a stranger rings as one, by whatever name', { skip: skipWithoutChromium }, async t => {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(1) })
  const { url, newContext } = await openHouse(t, browser, server)
  const ann = await newTab(await newContext(), url, 'Ann')
  const userId = await takeCallsFromAll(ann, server.http)
  const { me } = await newPerson(t, server.http, 0)
  await me.account.update({ displayName: 'Mum' })
  const call = await me.call([userId])
  await ann.locator('.ring').getByText('Mum', { exact: true }).waitFor()
  await ann.locator('.ring').getByText('Not one of your contacts').waitFor()
  t.match(await ann.title(), /Mum, not a contact, calls · Ann/)
  await call.end()
})

/** `<callsign-contacts>` in headless Chromium: people find each other by link and QR code, and are named, called and removed. */

import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { DESKTOP, openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { button, digits } from '../support/client-page.ts'
import { type HomeHouse, newPerson, openHome, signInAs } from '../support/home-page.ts'
import { faultsOf } from '../support/operator-page.ts'

const browser = (await openBrowser(t)) as Browser
const OTHERS = 'I have somebody else’s link or code'

const link = (page: Page) => page.getByRole('textbox', { name: 'Your link' })

/** They are contacts once the second has opened the first one's link. */
async function befriend(one: Page, other: Page, [name, otherName]: [string, string]): Promise<void> {
  await other.goto(await link(one).inputValue())
  await button(other, `Ask ${name} to be contacts`).click()
  await button(one, `Accept ${otherName}`).click()
  await button(one, `Video call to ${otherName}`).waitFor()
}

async function annAndBob(house: HomeHouse): Promise<[Page, Page]> {
  const ann = await newPerson(house, 'Ann')
  const bob = await newPerson(house, 'Bob')
  await befriend(ann, bob, ['Ann', 'Bob'])
  return [ann, bob]
}

t.test(
  'a link leads a newcomer through the sign-in to its owner, who accepts and is called',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const ann = await newPerson(house, 'Ann')
    const context = await house.newContext({ colorScheme: 'dark', viewport: { width: 320, height: 700 } })
    const bob = await context.newPage()
    await bob.goto(await link(ann).inputValue())
    await signInAs(bob, 'Bob')
    await bob.getByText('has shared a link with you.').waitFor()
    t.equal(await button(ann, 'Accept').count(), 0, 'nothing is asked yet')
    t.equal(new URL(bob.url()).hash, '', 'a reload asks nothing again')
    t.same(await faultsOf(bob), [])
    await button(bob, 'Ask Ann to be contacts').press('Enter')
    await bob.getByText('has not answered yet').waitFor()
    await button(ann, 'Accept Bob').waitFor()
    t.same(await faultsOf(ann), [])
    await button(ann, 'Accept Bob').press('Enter')
    await button(bob, 'Video call to Ann').press('Enter')
    await button(bob, 'Audio call to Ann').press('Enter')
    t.same(await bob.evaluate('calls'), [
      [['Ann'], true],
      [['Ann'], false],
    ])
    const [width, window] = (await bob.evaluate(
      '[document.documentElement.scrollWidth, innerWidth]',
    )) as number[]
    t.equal(width, window, 'nothing is wider than the phone')
    await bob.goto(await link(ann).inputValue())
    await bob.getByText('Ann is a contact of yours.').waitFor()
    await ann.goto(await link(ann).inputValue())
    await ann.reload()
    await ann.getByText('This link is your own.').waitFor()
  },
)

t.test('a QR code is shown, and read from a picture', { skip: skipWithoutChromium }, async t => {
  const house = await openHome(t, browser)
  const ann = await newPerson(house, 'Ann')
  const bob = await newPerson(house, 'Bob')
  await ann.getByText('Show it as a QR code').click()
  const buffer = await ann.locator('svg.qr').screenshot()
  await bob.getByText(OTHERS).click()
  t.same([...(await faultsOf(ann)), ...(await faultsOf(bob))], [])
  const choose = (picture: Buffer) =>
    bob
      .getByLabel('Choose a picture of it')
      .setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: picture })
  await choose(await ann.locator('h1').screenshot())
  await bob.getByText('There is no QR code in that picture').waitFor()
  await choose(buffer)
  await button(bob, 'Ask Ann to be contacts').waitFor()
  t.equal(await bob.getByText('There is no QR code').count(), 0)
})

t.test(
  'a contact is renamed, compared with and removed after a question',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const [ann, bob] = await annAndBob(house)
    await button(ann, 'More about Bob').press('Enter')
    await button(ann, 'Change the name').press('Enter')
    await ann.keyboard.type('Bobby')
    await ann.keyboard.press('Enter')
    await button(ann, 'Video call to Bobby').waitFor()
    await ann.locator('.contact').getByText('Bob', { exact: true }).waitFor()
    for (const [page, name] of [
      [ann, 'Bobby'],
      [bob, 'Ann'],
    ] as const) {
      await button(page, `More about ${name}`).click()
      await button(page, 'Compare a code').click()
    }
    const code = await digits(ann, 'Code to compare with Bobby')
    t.match(code, /^\d{5}( \d{5}){11}$/)
    t.equal(await digits(bob, 'Code to compare with Ann'), code)
    t.same(await faultsOf(ann), [])
    await button(ann, 'Remove from contacts').press('Enter')
    await ann
      .getByRole('group', { name: 'Remove Bobby' })
      .getByRole('button', { name: 'Remove' })
      .press('Enter')
    await button(bob, 'Video call to Ann').waitFor({ state: 'detached' })
    await ann.getByText('Bobby is no longer a contact.').waitFor()
  },
)

t.test(
  'a code on the screen is made anew once either person has other devices',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const [ann, bob] = await annAndBob(house)
    await button(ann, 'More about Bob').click()
    await button(ann, 'Compare a code').click()
    const before = await digits(ann, 'Code to compare with Bob')
    const isGone = (code: string) => ann.getByText(code, { exact: true }).waitFor({ state: 'detached' })
    const codeOf = (page: Page, name: string) =>
      page.evaluate(`me.contacts.all().then(all =>
        me.contacts.comparisonCode(all.find(one => one.displayName === '${name}').userId))`)
    const approveAnother = async (page: Page, name: string) => {
      const another = await newPerson(house, name)
      await digits(another, 'Code of this device')
      await button(page, 'It shows this code: approve').click()
      await another.getByRole('heading', { name: 'Contacts', exact: true }).waitFor()
    }
    await approveAnother(bob, 'Bob')
    // Ann's app reads Bob's list, as for a call.
    await codeOf(ann, 'Bob')
    await isGone(before)
    const next = await digits(ann, 'Code to compare with Bob')
    t.equal(next, await codeOf(bob, 'Ann'), 'for their new device')
    await approveAnother(ann, 'Ann')
    await isGone(next)
    t.equal(await digits(ann, 'Code to compare with Bob'), await codeOf(bob, 'Ann'), 'for an own one')
  },
)

t.test(
  'several contacts are called together; one who is no contact is not',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const [ann, bob] = await annAndBob(house)
    const cleo = await newPerson(house, 'Cleo', { viewport: DESKTOP })
    await ann.getByText('Your link').first().waitFor()
    await befriend(ann, cleo, ['Ann', 'Cleo'])
    await ann.getByLabel('Mark Bob').check()
    t.equal(await button(ann, 'Video call to 2 contacts').count(), 0)
    await ann.getByLabel('Mark Cleo').check()
    await button(ann, 'Video call to 2 contacts').click()
    t.same(await ann.evaluate('calls'), [[['Cleo', 'Bob'], true]])
    t.same(await faultsOf(ann), [])
    const userId = await cleo.evaluate('me.userId')
    await bob.evaluate(
      `me.call(['${userId}']).catch(error => document.querySelector('callsign-notices').tell(error))`,
    )
    await bob.getByText('Ask them to be contacts first').waitFor()
  },
)

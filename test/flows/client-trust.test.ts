/**
 * Device lists in the development client, in headless Chromium: a user approves a device on another device, a user
 * starts over, two people compare, and a server that lies gets nothing out of it.
 */

import type { Browser, Page, Route } from 'playwright-core'
import t, { type Test } from 'tap'
import { newPublicKey } from '../support/app.ts'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import {
  askToBe,
  befriend,
  button,
  callDigits,
  contacts,
  digits,
  newTab,
  openHouse,
} from '../support/client-page.ts'
import { long } from '../support/size.ts'

const browser = (await openBrowser(t)) as Browser
const setUp = (t: Test) => openHouse(t, browser)
const KEYS = '**/app/api/user/publicKeys*'
/** The link, once it names its person. */
async function linkOf(page: Page): Promise<string> {
  const link = page.getByRole('textbox', { name: 'Your link' })
  for (;;) {
    const value = await link.inputValue()
    if (value.includes('&l=')) return value
  }
}

async function decline(caller: Page, callee: Page, name: string): Promise<void> {
  await button(caller, `Audio call to ${name}`).click()
  await button(callee, 'Decline').click()
  await caller.getByText('The call was declined').waitFor()
}

/** Changes what the server says of other people's devices. */
async function lie(page: Page, change: (user: Record<string, unknown>) => void): Promise<void> {
  await page.route(KEYS, async (route: Route) => {
    const answer = await route.fetch()
    const body = await answer.json()
    if (route.request().url().includes('userIds')) body.users.forEach(change)
    await route.fulfill({ response: answer, json: body })
  })
}

t.test(
  'a new device waits until another one has approved it, and contacts hear of it',
  { skip: skipWithoutChromium },
  async t => {
    const { url, newContext } = await setUp(t)
    const ann = await newTab(await newContext(), url, 'Ann')
    const bob = await newTab(await newContext(), url, 'Bob')
    await befriend(ann, bob, 'Bob')
    await decline(bob, ann, 'Ann')
    const second = await newTab(await newContext(), url, 'Ann')
    const code = await digits(second, 'Code of this device')
    t.match(code, /^\d{5}( \d{5}){3}$/)
    t.equal(await digits(ann, 'Code of Chrome, development client'), code, 'both screens show one code')

    await button(bob, 'Audio call to Ann').click()
    await button(ann, 'Decline').click()
    await bob.getByText('The call was declined').waitFor()
    t.equal(await button(second, 'Decline').count(), 0, 'a device that waits does not ring')

    await button(ann, 'It shows this code: approve').click()
    await ann.getByText('is on your device list now').waitFor()
    await second.getByText('Approve this device').waitFor({ state: 'detached' })
    await button(bob, 'Audio call to Ann').click()
    await bob.getByText('Ann has a new device, which another device of theirs has approved.').waitFor()
    await button(second, 'Answer').click()
    t.equal(await callDigits(second), await callDigits(bob))
  },
)

t.test(
  'a user who has lost all devices starts over, and contacts hear it',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await setUp(t)
    const [ann, bob] = await contacts({ url, newContext })
    await decline(bob, ann, 'Ann')
    const fresh = await newTab(await newContext(), url, 'Ann')
    await fresh.getByText('Make this the only device').click()
    await button(fresh, 'Start over').click()
    await button(fresh, 'Fetch the code and confirm').click()
    await fresh.getByText('Approve this device').waitFor({ state: 'detached' })
    await ann.getByText('Your devices were started over on a new one').waitFor()
    await digits(ann, 'Code of this device')
    await button(bob, 'Audio call to Ann').click()
    await bob.getByText('Ann has started over on a new device').waitFor()
    await bob.getByText('Ann’s keys are new').waitFor()
    const asked = bob.getByRole('alert').filter({ hasText: 'keys are new' })
    await asked.getByRole('button', { name: 'Compare a code' }).click()
    t.match(await digits(bob, 'Code to compare'), /^\d{5}( \d{5}){11}$/)
    t.equal(await fresh.getByRole('button', { name: 'Answer' }).count(), 0, 'it does not ring yet')
    await asked.getByRole('button', { name: 'Go on' }).click()
    await button(fresh, 'Answer').click()
    t.match(await callDigits(fresh), /^\d{5}/)
  },
)

t.test(
  'two people compare one code, which a new device changes',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await setUp(t)
    const [ann, bob] = await contacts({ url, newContext })
    const codeOn = async (page: Page, name: string) => {
      await page.getByLabel(`More about ${name}`).click()
      await button(page, 'Compare a code').click()
      return digits(page, `Code to compare with ${name}`)
    }
    const code = await codeOn(ann, 'Bob')
    t.match(code, /^\d{5}( \d{5}){11}$/)
    t.equal(await codeOn(bob, 'Ann'), code)
    await newTab(await newContext(), url, 'Bob')
    await button(bob, 'approve').click()
    await bob.getByText('is on your device list now').waitFor()
    await ann.reload()
    t.not(await codeOn(ann, 'Bob'), code)
  },
)

t.test('the page names a ghost device, which gets no key', { skip: skipWithoutChromium }, async t => {
  const { url, newContext } = await setUp(t)
  const [ann, bob] = await contacts({ url, newContext })
  const sealedFor: string[][] = []
  ann.on('request', request => {
    if (request.url().endsWith('/call/start'))
      sealedFor.push(Object.keys(request.postDataJSON().encryptedAESKeys))
  })
  await lie(ann, user => {
    const [device] = user.devices as [Record<string, unknown>]
    user.devices = [device, { ...device, deviceId: '7777777777', publicKey: newPublicKey('P-256 SPKI') }]
  })
  await decline(ann, bob, 'Bob')
  await ann.getByText('The server names a device of Bob’s that Bob has not approved.').waitFor()
  t.equal(sealedFor.length, 1)
  t.equal(sealedFor[0]!.length, 1, 'for the device of the list alone')
  t.notMatch(sealedFor[0]![0], /7777777777/)

  await ann.unroute(KEYS)
  await lie(ann, user => {
    delete user.deviceList
    delete user.deviceListHash
  })
  await button(ann, 'Audio call to Bob').click()
  await ann.getByText('The key of Bob does not verify in the key log').waitFor()
  t.equal(sealedFor.length, 1, 'nothing more was sent')
})

t.test(
  'a link that the server gives to another person adds no contact',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await setUp(t)
    const ann = await newTab(await newContext(), url, 'Ann')
    const bob = await newTab(await newContext(), url, 'Bob')
    const cleo = await newTab(await newContext(), url, 'Cleo')
    const [annLink, cleoLink] = [await linkOf(ann), await linkOf(cleo)]
    // As a server that gives out Cleo for the token in Ann's link.
    await bob.goto(cleoLink.replace(/&.*/, annLink.slice(annLink.indexOf('&'))))
    await button(bob, 'Ask Cleo to be contacts').click()
    await bob.getByText('The server names another person than the link does. They are not added.').waitFor()
    t.equal(await button(cleo, 'Accept').count(), 0)
    await bob.goto(annLink)
    await button(bob, 'Ask Ann to be contacts').click()
    await button(ann, 'Accept').click()
    await button(bob, 'Audio call to Ann').waitFor()
    await decline(bob, ann, 'Ann')
  },
)

t.test(
  'another device gets the key of a call when a person says so',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await setUp(t)
    const [ann, bob] = await contacts({ url, newContext })
    const second = await newTab(await newContext(), url, 'Bob')
    await button(bob, 'approve').click()
    await second.getByText('Approve this device').waitFor({ state: 'detached' })
    await button(ann, 'Audio call to Bob').click()
    await button(bob, 'Answer').click()
    await callDigits(bob)
    await button(bob, 'Leave').click()
    await second.reload()
    await button(second, 'Come back').click()
    const question = ann.getByText('asks for the call’s key. A device with the key hears the call.')
    await question.waitFor()
    t.equal(await second.locator('.call .digits').count(), 0)
    await button(ann, 'Give it the key').click()
    t.equal(await callDigits(second), await callDigits(ann))
    await button(second, 'Leave').click()
    await button(bob, 'Come back').click()
    await question.waitFor()
    await button(ann, 'Don’t').click()
    await question.waitFor({ state: 'detached' })
    t.equal(await bob.locator('.call .digits').count(), 0)
  },
)

t.test(
  'a list that another device signs as this one asks is no alarm',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await setUp(t)
    const ann = await newTab(await newContext(), url, 'Ann')
    const second = await newTab(await newContext(), url, 'Ann')
    await button(ann, 'approve').click()
    await second.getByText('Approve this device').waitFor({ state: 'detached' })
    await newTab(await newContext(), url, 'Ann')
    await second.getByText('A new device of yours?').waitFor()
    let held = 0
    await ann.route(KEYS, async (route: Route) => {
      const response = await route.fetch()
      if (held++ === 0) {
        await button(second, 'approve').click()
        await second.getByText('is on your device list now').waitFor()
      }
      await route.fulfill({ response })
    })
    await ann.reload()
    await linkOf(ann)
    t.ok(held > 1)
    t.equal(await ann.getByText('device list').count(), 0, 'nothing is said')
  },
)

t.test(
  'a server that leaves a person’s own list out, or has another in their link, is found out',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await setUp(t)
    const ann = await newTab(await newContext(), url, 'Ann')
    const link = ann.getByRole('textbox', { name: 'Your link' })
    await linkOf(ann)
    const signed: string[] = []
    ann.on('request', request => void (request.method() === 'PUT' && signed.push(request.url())))
    await lie(ann, user => {
      user.deviceList = user.deviceListHash
    })
    await ann.reload()
    await ann.getByText('The key of Ann does not verify in the key log (deviceList)').waitFor()
    t.notMatch(await link.inputValue(), /&l=/)
    await ann.unroute(KEYS)
    await ann.route(KEYS, async (route: Route) => {
      const response = await route.fetch()
      const { users, ...more } = await response.json()
      const [{ deviceList: _, deviceListHash: __, ...user }] = users
      await route.fulfill({ response, json: { ...more, users: [user] } })
    })
    await ann.reload()
    await ann.getByText('The key of Ann does not verify in the key log (deviceList)').waitFor()
    t.same(signed, [], 'and this device signs no other one')
  },
)

t.test(
  'a browser that has lost its signing key becomes another device',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await setUp(t)
    const ann = await newTab(await newContext(), url, 'Ann')
    await linkOf(ann)
    await ann.evaluate(`new Promise(resolve => {
      indexedDB.open('callsign-app', 1).onsuccess = ({ target: { result } }) => {
        const values = result.transaction('values', 'readwrite').objectStore('values')
        values.openCursor(IDBKeyRange.bound('keys.', 'keys/')).onsuccess = ({ target: { result: cursor } }) => {
          const { signingPrivateKey, ...keys } = cursor.value
          cursor.update(keys).onsuccess = resolve
        }
      }
    })`)
    await ann.reload()
    await ann.getByText('This sign-in belongs to another device. Sign in again.').waitFor()
    await askToBe(ann, 'Ann')
    await ann.getByText('Approve this device').waitFor()
    t.match(await digits(ann, 'Code of this device'), /^\d{5}/)
  },
)

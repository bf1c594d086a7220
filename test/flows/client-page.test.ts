/**
 * The development client in headless Chromium, as a newcomer uses it: tabs that sign in, befriend each other through a
 * link and call, with keys that the log proves. Nothing but what the page shows is looked at.
 */

import type { Browser, Page, Route } from 'playwright-core'
import t, { type Test } from 'tap'
import { openBrowser, PHONE, skipWithoutChromium, WITH_CAMERA } from '../support/browser.ts'
import {
  befriend,
  button,
  callDigits,
  contacts,
  endForAll,
  newTab,
  openHouse,
  signIn,
  untilPictures,
  widthsOf,
} from '../support/client-page.ts'
import { startServer } from '../support/server.ts'
import { long } from '../support/size.ts'

const LOOKUP = '**/api/get-public-keys'

const shared = (await openBrowser(t)) as Browser

const setUp = (t: Test) => openHouse(t, shared)

/** The devices that the page says the key is for. */
async function sealedFor(page: Page): Promise<string | undefined> {
  // Names are isolated from the direction of the sentence.
  return (await page.locator('.sealed-for').textContent())?.replaceAll(/[\u2068\u2069]/g, '')
}

interface Labelled {
  readonly ariaLabel: string
}

/**
 * Resolves when the tab has shown another person's moving pictures for longer than a second: the page is drawn anew
 * in each, and they must go on.
 */
function seesOthers(page: Page): Promise<void> {
  return untilPictures(
    page,
    `.some(video => video.videoWidth > 0 && video.currentTime > 1.2 && video.getVideoPlaybackQuality().totalVideoFrames > 9)`,
  )
}

/** Lets an answer of the log through with one character of each proof's first hash changed. */
async function forgeProofs(route: Route): Promise<void> {
  const answer = await route.fetch()
  const { results } = await answer.json()
  const forged = results.map((result: { proof: string }) => {
    const lines = result.proof.split('\n')
    const at = lines.findIndex((line, number) => number > 2 && /^[A-Za-z0-9+/]{43}=$/.test(line))
    lines[at] = lines[at]!.replace(/^./, first => (first === 'A' ? 'B' : 'A'))
    return { ...result, proof: lines.join('\n') }
  })
  await route.fulfill({ response: answer, json: { results: forged } })
}

/** Resolves when the device has a WebRTC connection to the one of this name. While it rings no tile tells of a link. */
async function isConnectedTo(page: Page, name: string): Promise<void> {
  await page
    .getByRole('status')
    .filter({ hasText: /^(Audio|Video) call$/ })
    .waitFor()
  await page
    .locator('figcaption')
    .filter({ hasText: new RegExp(`^\\s*${name}\\s*$`) })
    .waitFor()
}

t.test(
  'the phone number that the form shows is one that gets a code',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await setUp(t)
    const page = await (await newContext()).newPage()
    await page.goto(url)
    const field = page.getByRole('textbox', { name: 'Email or phone' })
    const shown = await field.getAttribute('placeholder')
    await field.fill(/\+[\d ]+/.exec(shown ?? '')?.[0] ?? '')
    await page.getByRole('textbox', { name: 'Name' }).fill('Ann')
    await button(page, 'Send me a code').click()
    await button(page, 'Fetch the code').waitFor()
  },
)

t.test(
  'from an empty page to a call in two tabs, and back into it',
  { skip: skipWithoutChromium },
  async t => {
    const { url, newContext } = await setUp(t)
    const context = await newContext(WITH_CAMERA)
    const ann = await newTab(context, url, 'Ann')
    await ann
      .getByText(/Verified\. .*(the newest, by an index that auditors check|offers no index)/s)
      .waitFor()
    const opened = context.waitForEvent('page')
    await ann.getByRole('link', { name: 'Open a second tab' }).click()
    const bob = await opened
    await signIn(bob, 'Bob')
    await button(bob, 'Ask Ann to be contacts').click()
    await button(ann, 'Accept').click()
    await button(ann, 'Video call to Bob').click()
    await bob.getByText('the key log proves that').waitFor()
    t.match(await bob.title(), /Ann calls · Bob/, 'the tab in the background says so in its title')
    await button(bob, 'Answer').click()

    const digits = await callDigits(ann, 1)
    t.match(digits, /^\d{5}( \d{5}){5}$/)
    t.equal(await callDigits(bob, 1), digits, 'both have the same key')
    await Promise.all([seesOthers(ann), seesOthers(bob)])

    await bob.reload()
    t.equal(await callDigits(bob, 1), digits, 'after a reload it has the key from the other')
    await Promise.all([seesOthers(ann), seesOthers(bob)])

    await button(ann, 'More').click()
    await button(ann, 'Make a new key now').click()
    const renewed = await callDigits(bob, 2)
    t.not(renewed, digits)
    t.equal(await callDigits(ann, 2), renewed)

    await button(bob, 'Leave').click()
    await ann.getByText('Nobody else is here now').waitFor()
    await button(bob, 'Come back').click()
    t.equal(await callDigits(bob, 2), renewed, 'who left and comes back is given the key')
    await seesOthers(bob)

    await endForAll(ann)
    await bob.getByText('The call is over').waitFor()
    await bob.locator('.call').waitFor({ state: 'detached' })
    await ann.getByText(/^outgoing, video, \d:\d\d$/).waitFor()
    await bob.getByText(/^incoming, video, \d:\d\d$/).waitFor()
  },
)

t.test(
  'a user who closes the page is gone for the rest, at once',
  long({ skip: skipWithoutChromium }),
  async t => {
    const [ann, bob] = await contacts(await setUp(t))
    await button(ann, 'Audio call to Bob').click()
    await button(bob, 'Answer').click()
    await isConnectedTo(ann, 'Bob')
    await bob.goto('about:blank')
    await ann.locator('figcaption').filter({ hasText: 'Bob · gone' }).waitFor()
  },
)

t.test('a call has the window, with every button on it', long({ skip: skipWithoutChromium }), async t => {
  const { url, newContext } = await setUp(t)
  const ann = await newTab(await newContext(WITH_CAMERA), url, 'Ann')
  const bob = await newTab(await newContext(WITH_CAMERA), url, 'Bob')
  await befriend(ann, bob, 'Bob')
  await button(ann, 'Video call to Bob').click()
  await button(bob, 'Answer').click()
  await Promise.all([seesOthers(ann), seesOthers(bob)])
  const { width, height } = PHONE
  t.match(await ann.locator('.call').boundingBox(), { x: 0, y: 0, width, height })
  const picture = (await ann.locator('.person video').boundingBox())!
  t.ok(picture.width >= width - 16 && picture.height >= height * 0.75, 'nearly all of it is the picture')
  t.equal(await ann.getByRole('heading', { name: 'Contacts' }).count(), 0)
  await button(ann, 'More').click()
  for (const name of ['Microphone', 'Camera', 'Sound', 'Leave', 'End for all']) {
    const box = (await button(ann, name).boundingBox())!
    t.ok(box.x >= 0 && box.x + box.width <= width && box.y + box.height <= height, name)
  }
  await ann.keyboard.press('Escape')
  await button(ann, 'Microphone').click()
  t.equal(await button(ann, 'Microphone').getAttribute('aria-pressed'), 'false')
  await endForAll(ann)
  await ann.getByRole('heading', { name: 'Contacts' }).waitFor()
})

t.test('a call declined, one given up, and one without a camera', { skip: skipWithoutChromium }, async t => {
  const [ann, bob] = await contacts(await setUp(t))
  await button(ann, 'Video call to Bob').click()
  await button(bob, 'Decline').click()
  await ann.getByText('The call was declined').waitFor()
  await bob.getByText('incoming, video, declined').waitFor()

  await button(ann, 'Audio call to Bob').click()
  await button(bob, 'Decline').waitFor()
  await button(ann, 'Cancel the call').click()
  await bob.getByText('Ann has given up').waitFor()
  await bob.getByText('1 missed').waitFor()
  await button(bob, 'I have seen them').click()
  await bob.getByText('1 missed').waitFor({ state: 'detached' })
  const when = bob.locator('.history time').first()
  t.match(await when.innerText(), /^\d\d:\d\d/)
  await bob.clock.setFixedTime(Date.now() + 86_400_000)
  await bob.reload()
  t.match(await when.innerText(), /^[A-Z][a-z]+ \d+, \d\d:\d\d/, 'yesterday, by the clock of this browser')
  await bob.clock.resume()

  await button(bob, 'Video call to Ann').click()
  await button(ann, 'Answer').click()
  t.equal(await callDigits(ann, 1), await callDigits(bob, 1))
  await ann.getByText('does not let this page use the camera or microphone').waitFor()
  await isConnectedTo(ann, 'Bob')
  t.pass('the devices are connected to each other all the same')
})

t.test(
  'a key that the log does not prove is neither called nor answered',
  { skip: skipWithoutChromium },
  async t => {
    const [ann, bob] = await contacts(await setUp(t))
    const started: string[] = []
    ann.on('request', request => {
      if (request.url().endsWith('/call/start')) started.push(request.url())
    })
    await ann.route(LOOKUP, forgeProofs)
    await button(ann, 'Video call to Bob').click()
    await ann.getByText('The key of Bob does not verify in the key log (inclusion)').waitFor()
    t.same(started, [], 'nothing was sent')

    await ann.unroute(LOOKUP)
    await bob.route(LOOKUP, forgeProofs)
    await button(ann, 'Video call to Bob').click()
    await bob.getByText('Do not answer. The caller could not be verified').waitFor()
    t.ok(await button(bob, 'Answer').isDisabled())
    await button(bob, 'Decline').click()
    await ann.getByText('The call was declined').waitFor()
  },
)

t.test(
  'a third is invited, and what they knew is of no use when they have left',
  { skip: skipWithoutChromium },
  async t => {
    const house = await setUp(t)
    const [ann, bob] = await contacts(house)
    const cleo = await newTab(await house.newContext(), house.url, 'Cleo')
    await ann.getByText('Add somebody').click()
    await befriend(ann, cleo, 'Cleo')
    await button(ann, 'Video call to Bob').click()
    await button(bob, 'Answer').click()
    const digits = await callDigits(bob, 1)
    t.equal(await sealedFor(bob), 'this device and Ann’s device')
    await button(ann, '2 people').click()
    await button(ann, 'Invite Cleo into the call').click()
    await cleo.getByText('invites you into a call').waitFor()
    await button(cleo, 'Answer').click()
    const ofThree = await callDigits(cleo, 2)
    t.not(ofThree, digits, 'the third opens nothing of before')
    t.equal(await callDigits(ann, 2), ofThree)
    await button(cleo, 'Encrypted').click()
    await cleo.locator('.digits').getByText(ofThree).waitFor()
    t.equal(await sealedFor(ann), 'this device, Bob’s device and Cleo’s device')
    await Promise.all([isConnectedTo(bob, 'Cleo'), isConnectedTo(cleo, 'Ann'), isConnectedTo(cleo, 'Bob')])
    await button(cleo, 'Leave').click()
    t.not(await callDigits(bob, 3), ofThree, 'the host has made a new key')
    t.equal(await callDigits(ann, 3), await callDigits(bob, 3))
    t.equal(await sealedFor(bob), 'this device and Ann’s device', 'which is not for who has left')

    await button(ann, 'Remove Bob').click()
    await bob.getByText('The host has removed you').waitFor()
  },
)

t.test(
  'a menu stays with its contact when another comes, and nobody is called without a connection',
  long({ skip: skipWithoutChromium }),
  async t => {
    const house = await setUp(t)
    const [ann, bob] = await contacts(house)
    await bob.close()
    const cleo = await newTab(await house.newContext(), house.url, 'Cleo')
    await ann.goto(await cleo.getByRole('textbox', { name: 'Your link' }).inputValue())
    await button(ann, 'to be contacts').click()
    await ann.getByText('You have asked Cleo').waitFor()
    await ann.getByLabel('More about Bob').click()
    const open = ann.locator('details.more[open] summary')
    const openOnes = () => open.evaluateAll(all => all.map(one => (one as unknown as Labelled).ariaLabel))
    await button(cleo, 'Accept').click()
    await button(ann, 'Video call to Cleo').waitFor()
    t.same(await openOnes(), ['More about Bob'])
    await ann.keyboard.press('Escape')
    t.same(await openOnes(), [], 'Escape closes it')
    await ann.getByLabel('More about Cleo').click()
    await ann.getByRole('heading', { name: 'Contacts' }).click()
    t.same(await openOnes(), [], 'and so does a click elsewhere')

    await ann.getByLabel('Mark Bob').check()
    await ann.getByLabel('Mark Cleo').check()
    t.ok(await button(ann, 'Video call with 2').isEnabled())
    const second = await ann.context().newPage()
    await second.goto(house.url)
    await second.getByRole('textbox', { name: 'Email or phone' }).fill('ann@example.org')
    await button(second, 'Send me a code').click()
    await button(second, 'Fetch the code').click()
    await button(ann, 'Connect here instead').waitFor()
    t.ok(await button(ann, 'Video call with 2').isDisabled(), 'another tab has the connection')
  },
)

t.test(
  'a connection that breaks while one answers is made anew, and the call goes on',
  long({ skip: skipWithoutChromium }),
  async t => {
    const [ann, bob] = await contacts(await setUp(t))
    let breakOff = () => {}
    await bob.routeWebSocket('**/ws', route => {
      route.connectToServer()
      breakOff = () => void route.close({ code: 1001 })
    })
    await bob.reload()
    await bob.getByText('connected', { exact: true }).waitFor()
    await bob.route('**/join', async route => {
      const answer = await route.fetch()
      breakOff()
      await bob.getByText('connecting').waitFor()
      await route.fulfill({ response: answer })
    })
    await button(ann, 'Audio call to Bob').click()
    await button(bob, 'Answer').click()
    t.equal(await callDigits(bob, 1), await callDigits(ann, 1))
    await isConnectedTo(bob, 'Ann')
    t.same(await bob.locator('.notice.bad').allTextContents(), [])
  },
)

t.test(
  'a device that signs in as oneself is told of by its browser',
  long({ skip: skipWithoutChromium }),
  async t => {
    const { url, newContext } = await setUp(t)
    const ann = await newTab(await newContext(), url, 'Ann')
    const userAgent =
      'Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0'
    const edge = await shared.newContext({ userAgent })
    t.teardown(() => edge.close())
    await newTab(edge, url, 'Ann')
    await ann.getByText('A new device signs in as you: Edge, development client.').waitFor()
  },
)

t.test(
  'who has a keyboard alone is taken along to what comes',
  long({ skip: skipWithoutChromium }),
  async t => {
    const [ann, bob] = await contacts(await setUp(t))
    const focused = (page: Page) => page.locator('h2:focus').textContent()
    await button(ann, 'Audio call to Bob').press('Enter')
    await button(ann, 'Cancel the call').waitFor()
    t.equal(await focused(ann), 'Bob', 'the call')
    await button(bob, 'Answer').press('Enter')
    await callDigits(bob, 1)
    t.equal(await focused(bob), 'Ann', 'the call')
    await button(bob, 'More').press('Enter')
    await button(bob, 'End for all').press('Enter')
    await bob.getByRole('dialog').getByRole('button', { name: 'End for all' }).press('Enter')
    await bob.locator('.call').waitFor({ state: 'detached' })
    t.equal(await focused(bob), 'Contacts')
    await button(bob, 'Sign out').press('Enter')
    await button(bob, 'Be Bob').press('Enter')
    await button(bob, 'Fetch the code').waitFor()
    t.match(await focused(bob), /^The code for b/)
  },
)

t.test('names as long as they may be fit a phone', long({ skip: skipWithoutChromium }), async t => {
  const { url, newContext } = await setUp(t)
  const [ann, bob] = [await newTab(await newContext(), url, 'Ann'), await (await newContext()).newPage()]
  const name = 'Maximiliane-Alexandra von Hohenstein-Wittelsbach'
  await bob.goto(url)
  await bob.getByRole('textbox', { name: 'Email or phone' }).fill('max@example.org')
  await bob.getByRole('textbox', { name: 'Name' }).fill(name)
  await button(bob, 'Send me a code').click()
  await button(bob, 'Fetch the code').click()
  await befriend(ann, bob, name)
  await button(ann, `Video call to ${name}`).click()
  await button(bob, 'Answer').click()
  await callDigits(bob, 1)
  await button(ann, '2 people').click()
  t.same(await widthsOf(ann), [PHONE.width, PHONE.width])
})

t.test('so does a name of one word, wherever it is shown', long({ skip: skipWithoutChromium }), async t => {
  const { url, newContext } = await setUp(t)
  const [ann, max] = [await newTab(await newContext(), url, 'Ann'), await (await newContext()).newPage()]
  const name = 'M'.repeat(50)
  await max.goto(url)
  await max.getByRole('textbox', { name: 'Email or phone' }).fill('max@example.org')
  await max.getByRole('textbox', { name: 'Name' }).fill(name)
  await button(max, 'Send me a code').click()
  await button(max, 'Fetch the code').click()
  const fits = async (where: string) => t.same(await widthsOf(ann), [PHONE.width, PHONE.width], where)

  const link = await ann.getByRole('textbox', { name: 'Your link' }).inputValue()
  await ann.goto(await max.getByRole('textbox', { name: 'Your link' }).inputValue())
  await button(ann, 'to be contacts').waitFor()
  await fits('whose link it is')
  await max.goto(link)
  await button(max, 'to be contacts').click()
  await button(ann, 'Accept').waitFor()
  await fits('who asks')
  await button(ann, 'Accept').click()
  await button(max, 'Audio call to Ann').click()
  await button(ann, 'Answer').waitFor()
  await fits('who calls')
  await button(ann, 'Answer').click()
  await callDigits(ann, 1)
  await fits('who is in the call')
  await endForAll(ann)
  await ann.getByText(/^incoming, audio/).waitFor()
  await fits('who called')
})

t.test('a browser that keeps nothing gets a warning', long({ skip: skipWithoutChromium }), async t => {
  const { url, newContext } = await setUp(t)
  const page = await (await newContext()).newPage()
  // As Chromium does where cookies are blocked.
  const deny = `{ get() { throw new DOMException('denied', 'SecurityError') } }`
  await page.addInitScript(`for (const name of ['sessionStorage', 'localStorage'])
    Object.defineProperty(window, name, ${deny})`)
  await page.goto(url)
  await page.getByText('Allow cookies for this address').waitFor()
})

t.test('a key that all have lost is made anew, by the host', long({ skip: skipWithoutChromium }), async t => {
  const house = await setUp(t)
  const [ann, bob] = await contacts(house)
  await button(ann, 'Audio call to Bob').click()
  await button(bob, 'Answer').click()
  const digits = await callDigits(bob, 1)
  // Both are gone before either comes back: else one still has the key for the other.
  for (const page of [ann, bob]) await page.goto('about:blank')
  await Promise.all([ann.goto(house.url), bob.goto(house.url)])
  const renewed = await callDigits(bob, 2)
  t.not(renewed, digits)
  t.equal(await callDigits(ann, 2), renewed)
})

t.test('a tab that copies another is another person', long({ skip: skipWithoutChromium }), async t => {
  const { url, newContext } = await setUp(t)
  const context = await newContext()
  const ann = await newTab(context, url, 'Ann')
  const opened = context.waitForEvent('page')
  // A tab that is opened by a script gets a copy of the storage, as a duplicated one does.
  await ann.evaluate('void window.open(location.href)')
  const copy = await opened
  await signIn(copy, 'Bob')
  await ann.reload()
  await ann.getByText('connected', { exact: true }).waitFor()
  t.match(await ann.title(), /^Ann/, 'and the first one is who it was')
})

t.test(
  'who gets no connection is told whether the server is gone, or WebSocket blocked',
  long({ skip: skipWithoutChromium }),
  async t => {
    const server = await startServer({ dataFolder: t.testdir() })
    const { url, newContext } = await openHouse(t, shared, server)
    const page = await (await newContext()).newPage()
    // A proxy that knows no WebSocket answers its handshake as it answers any request.
    await page.addInitScript(`{
      const { WebSocket } = window
      window.WebSocket = class extends WebSocket {
        constructor(url, protocols) {
          super(window.isOpen ? url : url.replace(/ws$/, 'not-a-socket'), protocols)
        }
      }
    }`)
    await page.goto(url)
    await button(page, 'Be Ann').click()
    await button(page, 'Fetch the code').click()
    const alert = page.getByRole('alert')
    await alert.getByText('its WebSocket can’t be reached').waitFor()
    t.match(await alert.innerText(), url.replace(/^http(.*)\/dev\/client$/, 'ws$1/ws'))
    await page.evaluate('window.isOpen = true')
    await page.getByText('connected', { exact: true }).waitFor()
    t.equal(await alert.count(), 0, 'it is over by itself')
    await server.end('SIGKILL')
    await alert.getByText('The server does not answer.').waitFor()
  },
)

t.test(
  'a device that a contact has not had before is told of, once',
  long({ skip: skipWithoutChromium }),
  async t => {
    const house = await setUp(t)
    const [ann, bob] = await contacts(house)
    const news = ann.getByText('Bob has a new device')
    const call = async () => {
      await button(ann, 'Audio call to Bob').click()
      await button(bob, 'Decline').click()
      await ann.getByText('The call was declined').waitFor()
    }
    await call()
    t.equal(await news.count(), 0, 'whoever is met for the first time has nothing new')
    await newTab(await house.newContext(), house.url, 'Bob')
    await button(bob, 'approve').click()
    await bob.getByText('is on your device list now').waitFor()
    await call()
    await news.waitFor()
    await ann.reload()
    await call()
    t.equal(await news.count(), 0)
  },
)

t.test(
  'a browser whose clock is wrong asks about an old invitation, and knows how long a call lasts',
  long({ skip: skipWithoutChromium }),
  async t => {
    const [ann, bob] = await contacts(await setUp(t))
    // Playwright's own clock would hold the timers, too.
    const wrongBy = (ms: number) => `{
    const { Date } = window
    window.Date = class extends Date {
      constructor(...of) {
        super(...(of.length === 0 ? [Date.now() + ${ms}] : of))
      }
      static now() {
        return Date.now() + ${ms}
      }
    }
  }`
    await ann.addInitScript(wrongBy(-3_600_000))
    await bob.addInitScript(wrongBy(3_600_000))
    for (const page of [ann, bob]) {
      await page.reload()
      await page.getByText('connected', { exact: true }).waitFor()
    }
    await button(ann, 'Audio call to Bob').click()
    await bob.locator('.ring').getByText('120 minutes old').waitFor()
    await button(bob, 'Answer').click()
    const asked = bob.getByRole('alert').filter({ hasText: '120 minutes old' })
    await asked.waitFor()
    t.equal(await asked.getByRole('button', { name: 'Compare a code' }).count(), 0, 'no keys are new')
    await asked.getByRole('button', { name: 'Go on' }).click()
    for (const page of [ann, bob]) {
      await page.locator('.call .digits').waitFor({ state: 'attached' })
      await page.reload()
      await page.getByText(/^Audio call, 0:\d*[1-9]$/).waitFor()
    }
  },
)

/** `<callsign-call>`: its keys, the people that it counts, what it asks, and what a screen reader gets. */

import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { bundleCallElement, openCallPage } from '../support/call-page.ts'

const browser = (await openBrowser(t)) as Browser
const script = skipWithoutChromium === false ? await bundleCallElement() : ''
const NAMES = ['Ann', 'Bob', 'Cleo']
const DESKTOP = { width: 1280, height: 800 }

const TREE = `
- region "Bob and Cleo":
  - heading "Bob and Cleo" [level=2]
  - paragraph:
    - status: Video call
    - timer: ", 3:07"
  - 'button "Encrypted: the same digits on every screen"'
  - button "3 people"
  - group "People in the call":
    - 'figure "Bob · can’t be decrypted: the key is missing , microphone off"'
    - 'figure "Cleo · can’t be decrypted: the key is missing , microphone off"'
    - figure "You"
  - toolbar "Controls":
    - button "Microphone" [pressed]
    - button "Camera" [pressed]
    - button "Share the screen"
    - button "Sound" [pressed]
    - button "Devices"
    - button "More"
    - button "Leave"
  - log: "Bob: microphone off. Cleo: microphone off."`

const told = (page: Page) => page.evaluate('told.splice(0)')
const button = (page: Page, name: string) => page.getByRole('button', { name })

t.test(
  'M, V and Space switch what is sent, not while a person types',
  { skip: skipWithoutChromium },
  async t => {
    const page = await openCallPage(t, browser, script, NAMES, DESKTOP)
    await page.keyboard.press('m')
    await page.keyboard.press('v')
    t.same(await told(page), [
      ['mute', true],
      ['coverCamera', true],
    ])
    t.equal(await button(page, 'Microphone').getAttribute('aria-keyshortcuts'), 'M')
    t.match(await button(page, 'Camera').getAttribute('title'), /\(V\)$/)

    await page.keyboard.down(' ')
    await page.keyboard.down(' ')
    t.same(await told(page), [['mute', false]], 'as long as it is held')
    await page.keyboard.up(' ')
    t.same(await told(page), [['mute', true]])

    await page.evaluate(`document.querySelector('input').focus()`)
    await page.keyboard.type('my van')
    t.same(await told(page), [])
    t.equal(await page.evaluate(`document.querySelector('input').value`), 'my van')
  },
)

t.test(
  'Space presses a button that the keyboard is on, and talks after a click',
  { skip: skipWithoutChromium },
  async t => {
    const page = await openCallPage(t, browser, script, NAMES, DESKTOP)
    await button(page, 'Microphone').focus()
    await page.keyboard.press(' ')
    t.same(await told(page), [['mute', true]], 'the button')
    await button(page, 'Camera').click()
    t.same(await told(page), [['coverCamera', true]])
    await page.keyboard.press(' ')
    t.same(
      await told(page),
      [
        ['mute', false],
        ['mute', true],
      ],
      'talked, and the camera stays off',
    )
  },
)

t.test('Escape closes what is open, and never leaves', { skip: skipWithoutChromium }, async t => {
  const page = await openCallPage(t, browser, script, NAMES, DESKTOP)
  await button(page, '3 people').press('Enter')
  await button(page, 'Remove Bob').focus()
  await page.keyboard.press('Escape')
  t.equal(await page.locator('#panel-people').isVisible(), false)
  t.equal(await page.locator('button:focus').innerText(), '3 people', 'the focus goes back to its button')
  await button(page, 'More').click()
  await button(page, 'End for all').click()
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('m')
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.keyboard.press('Escape')
  t.same(await told(page), [])
})

t.test(
  'a call ends for all after a question; leaving is one click',
  { skip: skipWithoutChromium },
  async t => {
    const page = await openCallPage(t, browser, script, NAMES, DESKTOP)
    t.equal(await button(page, 'End for all').count(), 0, 'not beside the way out')
    await button(page, 'More').click()
    await button(page, 'End for all').click()
    const question = page.getByRole('dialog', { name: 'End the call for everybody?' })
    await question.getByRole('button', { name: 'Stay in the call' }).click()
    t.same(await told(page), [])
    await button(page, 'More').click()
    await button(page, 'End for all').click()
    await question.getByRole('button', { name: 'End for all' }).click()
    await button(page, 'Leave').click()
    t.same(await told(page), [['end'], ['leave']])
    await page.evaluate(`call.emit('ended', { reason: 'left' })`)
    t.same(await told(page), [['left', 'left']])
  },
)

t.test(
  'people are counted who are there; those who left stand apart',
  { skip: skipWithoutChromium },
  async t => {
    const page = await openCallPage(t, browser, script, NAMES, DESKTOP)
    await page.evaluate(
      `become({ participants: call.participants.map(one => one.name === 'Cleo' ? { ...one, state: 'left' } : one) })`,
    )
    await button(page, '2 people').click()
    const panel = page.locator('#panel-people')
    t.match(
      (await panel.innerText()).replaceAll(/\s+/g, ' '),
      /In the call .*Ann \(You\).*Bob.*Not here any more.*Cleo left.*Invite.*Dora/,
    )
    t.equal(await page.locator('.grid .tile').count(), 1, 'and has no tile')
    await button(page, 'Invite Cleo').click()
    await button(page, 'Remove Bob').click()
    t.same(await told(page), [
      ['invite', ['3']],
      ['remove', '2'],
    ])
  },
)

t.test(
  'a screen reader gets the call by its title, tiles by name, and news',
  { skip: skipWithoutChromium },
  async t => {
    const page = await openCallPage(t, browser, script, NAMES, DESKTOP)
    t.equal(await page.locator('h2:focus').innerText(), 'Bob and Cleo', 'where it begins')
    await page.evaluate(
      `media.show({ peers: media.view.peers.map(one => ({ ...one, isMuted: true, state: 'undecryptable' })) })`,
    )
    const region = page.getByRole('region', { name: 'Bob and Cleo' })
    t.equal(await region.ariaSnapshot(), TREE.trim())
    const log = page.getByRole('log')
    t.match(await log.textContent(), /Bob: microphone off\. Cleo: microphone off\./)
    await page.evaluate(`become({ participants: call.participants.slice(0, 2) })`)
    t.equal(await log.textContent(), 'Cleo left.')
    await page.keyboard.press('m')
    t.equal(await log.textContent(), 'You: microphone off.')
  },
)

t.test('a name from the right turns no sentence around', { skip: skipWithoutChromium }, async t => {
  const page = await openCallPage(t, browser, script, ['Ann', 'שרה', 'Cleo'], DESKTOP)
  await page.evaluate(`become({ participants: call.participants.slice(0, 1) })`)
  t.equal(await page.getByRole('log').textContent(), '\u2068שרה\u2069 left. Cleo left.')
  await page.evaluate(`call.emit('key-asked', { userId: '9', deviceId: '92', displayName: 'שרה' })`)
  t.match(await page.getByRole('alert').innerText(), 'Another device of \u2068שרה\u2069 asks')
})

t.test('the focus goes back to where it was before the call', { skip: skipWithoutChromium }, async t => {
  const page = await openCallPage(t, browser, script, NAMES, DESKTOP)
  await page.evaluate(`(() => {
    const element = document.querySelector('callsign-call')
    element.remove()
    document.querySelector('#before').focus()
    document.body.append(element)
  })()`)
  await page.locator('h2:focus').waitFor()
  await page.evaluate(`document.querySelector('callsign-call').remove()`)
  t.equal(await page.locator('button:focus').innerText(), 'Call Bob')
})

t.test('a device that asks for the key is given it, or not', { skip: skipWithoutChromium }, async t => {
  const page = await openCallPage(t, browser, script, NAMES, DESKTOP)
  await page.evaluate(`call.emit('key-asked', { userId: '2', deviceId: '22', displayName: 'B.' })`)
  await page.evaluate(`call.emit('key-asked', { userId: '1', deviceId: '12', displayName: 'Ann' })`)
  const asks = page.getByRole('alert')
  t.match(await asks.first().innerText(), /Another device of .?Bob.? asks/)
  t.match(await asks.last().innerText(), /Another device of yours asks/)
  await asks.first().getByRole('button', { name: 'Give it the key' }).click()
  await asks.last().getByRole('button', { name: 'Don’t' }).click()
  await asks.waitFor({ state: 'detached' })
  t.match(await told(page), [['grantKey', { deviceId: '22' }]])
})

t.test(
  'questions of a call stay open when its element is taken out and put back, or made anew',
  { skip: skipWithoutChromium },
  async t => {
    const page = await openCallPage(t, browser, script, NAMES, DESKTOP)
    await page.evaluate(`call.emit('key-asked', { userId: '2', deviceId: '22', displayName: 'B.' })`)
    await page.evaluate(`document.querySelector('callsign-call').remove()`)
    await page.evaluate(`call.emit('key-asked', { userId: '1', deviceId: '12', displayName: 'Ann' })`)
    t.equal(await page.evaluate('me.listeners.length + media.listeners.length'), 0)
    await page.evaluate(
      `document.body.append(Object.assign(document.createElement('callsign-call'), { me, call, media }))`,
    )
    const asks = page.getByRole('alert')
    await asks.nth(1).waitFor()
    await asks.last().getByRole('button', { name: 'Don’t' }).click()
    await page.evaluate(`(() => {
      const element = document.querySelector('callsign-call')
      element.remove()
      document.body.append(element)
    })()`)
    await asks.getByRole('button', { name: 'Give it the key' }).click()
    await asks.waitFor({ state: 'detached' })
    t.match(await told(page), [['grantKey', { deviceId: '22' }]])
  },
)

t.test('words for each state of call and connection', { skip: skipWithoutChromium }, async t => {
  const page = await openCallPage(t, browser, script, ['Ann', 'Bob'], DESKTOP)
  const bob = (more: string) =>
    `become({ state: 'ringing', participants: [call.participants[0], { ...call.participants[1], ${more} }] })`
  const status = page.getByRole('status')
  for (const [change, words] of [
    [bob(`state: 'invited'`), 'Calling …'],
    [bob(`state: 'ringing'`), 'Ringing …'],
    [bob(`state: 'invited', isUnreachable: true`), 'Can’t be reached now'],
    [
      bob(`state: 'invited', isUnreachable: true, hasUnapprovedDevice: true`),
      'Their new device is not approved yet',
    ],
    [`become({ state: 'rejoining' })`, 'Coming back: asking the others for the key …'],
    [`become({ state: 'keyless' })`, 'Nobody has given this device the key.'],
  ] as const) {
    await page.evaluate(change)
    t.equal(await status.innerText(), words)
  }
  await button(page, 'Ask again').click()
  t.same(await told(page), [['join', '7']])
  await page.evaluate(
    `become({ state: 'active' }); Object.assign(me, { connection: 'connecting' }).emit('changed')`,
  )
  await page.getByText('No connection to the server.').waitFor()
  await page.evaluate(
    `Object.assign(me, { connection: 'connected' }).emit('changed'); media.show({ isLinkLost: true })`,
  )
  await page.getByText('Your connection is lost.').waitFor()
  await page.evaluate(
    `document.documentElement.lang = 'de'; media.show({ isLinkLost: false, isSpeakingMuted: true })`,
  )
  await page.getByText('Halte die Leertaste').waitFor()
})
